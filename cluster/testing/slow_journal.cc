#include "fraktor/cluster/testing/slow_journal.h"

#include <string>
#include <utility>

namespace fraktor::inline v0 {

std::shared_ptr<SlowJournal> SlowJournal::Make(RuntimeToolbox& toolbox, Random random,
                                               std::shared_ptr<JournalStorage> journal,
                                               std::shared_ptr<const StoreTrouble> trouble) {
  return std::shared_ptr<SlowJournal>(
      new SlowJournal(SlowLine::Make(toolbox, std::move(random), std::move(trouble)), std::move(journal)));
}

template <class T>
Future<T> SlowJournal::Send(std::span<const std::string> persistence_ids, Request<T> request) {
  return line_->Send<T>([journal = journal(), request = std::move(request)](bool) mutable { return request(*journal); },
                        persistence_ids);
}

Future<WriterOpened> SlowJournal::OpenWriter(std::string persistence_id, std::optional<uint64_t> token) {
  return Send<WriterOpened>({&persistence_id, 1}, [persistence_id, token](JournalStorage& journal) {
    return journal.OpenWriter(persistence_id, token);
  });
}

Future<WriteResults> SlowJournal::Write(std::vector<AtomicWrite> writes) {
  std::vector<std::string> ids;
  for (const AtomicWrite& write : writes) ids.push_back(write.persistence_id());
  return Send<WriteResults>(ids,
                            [writes = std::move(writes)](JournalStorage& journal) { return journal.Write(writes); });
}

Future<EventBatch> SlowJournal::Replay(ReplayPage page) {
  const std::string id = page.persistence_id;
  return Send<EventBatch>({&id, 1}, [page = std::move(page)](JournalStorage& journal) { return journal.Replay(page); });
}

Future<uint64_t> SlowJournal::HighestSequenceNr(std::string persistence_id) {
  return Send<uint64_t>({&persistence_id, 1}, [persistence_id](JournalStorage& journal) {
    return journal.HighestSequenceNr(persistence_id);
  });
}

Future<void> SlowJournal::DeleteTo(std::string persistence_id, uint64_t to_sequence_nr, uint64_t epoch) {
  return Send<void>({&persistence_id, 1}, [persistence_id, to_sequence_nr, epoch](JournalStorage& journal) {
    return journal.DeleteTo(persistence_id, to_sequence_nr, epoch);
  });
}

Future<void> SlowJournal::Close() { return MakeReadyFuture(); }

}  // namespace fraktor::inline v0
