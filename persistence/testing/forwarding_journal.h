// ForwardingJournal: a journal that passes everything on to another one. A test derives from it what does some of it in
// another way.
//
//   class DeafJournal final : public ForwardingJournal {
//    public:
//     using ForwardingJournal::ForwardingJournal;
//     Future<EventBatch> Replay(ReplayPage) override { return MakeReadyFuture<EventBatch>(EventBatch()); }
//   };
//
// WriteAtOnce and UsefulActors are not passed on: every write comes by Write, from one journal actor.
//
// Thread safety: as that of the other.
#ifndef FRAKTOR_PERSISTENCE_TESTING_FORWARDING_JOURNAL_H_
#define FRAKTOR_PERSISTENCE_TESTING_FORWARDING_JOURNAL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_limits.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/utils/future/future.h"

namespace fraktor::inline v0 {

class ForwardingJournal : public JournalStorage {
 public:
  explicit ForwardingJournal(std::shared_ptr<JournalStorage> journal) : journal_(std::move(journal)) {}

  Future<WriterOpened> OpenWriter(std::string persistence_id, std::optional<uint64_t> token) override {
    return journal_->OpenWriter(std::move(persistence_id), token);
  }
  Future<WriteResults> Write(std::vector<AtomicWrite> writes) override { return journal_->Write(std::move(writes)); }
  Future<EventBatch> Replay(ReplayPage page) override { return journal_->Replay(std::move(page)); }
  Future<uint64_t> HighestSequenceNr(std::string persistence_id) override {
    return journal_->HighestSequenceNr(std::move(persistence_id));
  }
  Future<void> DeleteTo(std::string persistence_id, uint64_t to_sequence_nr, uint64_t epoch) override {
    return journal_->DeleteTo(std::move(persistence_id), to_sequence_nr, epoch);
  }
  Future<EventBatch> EventsByTag(TagPage page) override { return journal_->EventsByTag(std::move(page)); }
  Future<IdBatch> PersistenceIds(IdPage page) override { return journal_->PersistenceIds(page); }
  Future<uint64_t> AwaitAdvance(JournalSubject subject, uint64_t after) override {
    return journal_->AwaitAdvance(std::move(subject), after);
  }
  Future<void> Close() override { return journal_->Close(); }
  const JournalLimits& limits() const override { return journal_->limits(); }

 protected:
  const std::shared_ptr<JournalStorage>& journal() const { return journal_; }

 private:
  const std::shared_ptr<JournalStorage> journal_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_TESTING_FORWARDING_JOURNAL_H_
