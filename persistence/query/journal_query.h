// EventQuery and IdQuery: what is in a journal, page by page, up to now or for as long as somebody asks.
//
//   EventQuery query(storage, EventQuery::ByTag("red"), {.live = true});
//   while (true) {
//     Task<EventBatch> reading = query.Next();
//     absl::StatusOr<EventBatch> batch = co_await reading;
//     if (!batch.ok()) co_return batch.status();
//     for (const StoredEvent& event : *batch) Show(event);
//     if (query.done()) co_return ...;                       // not in a live one
//     Remember(query.position());                            // to go on from here another time
//   }
//
// In main() and tests, where nobody waits by co_await:
//
//   auto executor = SerialExecutor::Make(*toolbox, {}).value();
//   EventQuery query(*journal, EventQuery::ById("account-7"), {});
//   while (!query.done()) {
//     EventBatch batch = query.Next().Start(*executor).Wait().value();
//     for (const StoredEvent& event : batch) {
//       Deposited deposited = codecs->DecodeAs<Deposited>(        // a CodecRegistry; of several types look at the manifest
//           {.manifest = event.manifest, .version = event.manifest_version, .bytes = event.payload}).value();
//     }
//   }
//
// Events are as they are stored: an EventCodec with adapters gives them as the actor has them (EventCodec::Decode).
//
// A bounded query ends with what the journal had when its last page was read. A live one waits then, without polling:
// Next completes with the next events. It pulls: nothing is read before it is asked for, so a slow reader costs
// nothing. It needs the journal that is open for writing: one that was opened read_only sees nothing new, and Next is
// FailedPrecondition when all is shown. Whoever follows a journal of another process opens it again from time to time,
// and begins a bounded query at position().
//
// Thread safety: an object with one owner, one Next at a time. The storage and the query outlive the task of Next;
// dropping that task stops the wait.
#ifndef FRAKTOR_PERSISTENCE_QUERY_JOURNAL_QUERY_H_
#define FRAKTOR_PERSISTENCE_QUERY_JOURNAL_QUERY_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/utils/future/task.h"

namespace fraktor::inline v0 {

struct QueryOptions {
  // Whether to go on with what comes later.
  bool live = false;
  // Where to begin: a sequence number for an id, an offset for a tag and for ids.
  uint64_t from = 0;
  // The last one that is wanted. Also ends a live query.
  uint64_t to = std::numeric_limits<uint64_t>::max();
  PageLimits page = {};
};

class EventQuery {
 public:
  static JournalSubject ById(std::string persistence_id) { return JournalSubject::OfId(std::move(persistence_id)); }
  static JournalSubject ByTag(std::string tag) { return JournalSubject::OfTag(std::move(tag)); }

  // `subject` is an id or a tag. For all ids there is IdQuery.
  EventQuery(JournalStorage& storage, JournalSubject subject, QueryOptions options)
      : storage_(storage), subject_(std::move(subject)), options_(options), position_(options.from) {}

  // The next events: at least one unless the query is done. InvalidArgument if the subject is no id and no tag.
  Task<EventBatch> Next();

  // Whether everything was shown.
  bool done() const { return is_done_; }
  // QueryOptions::from of a query that goes on behind what Next has given: remember it when the batch is worked off. The
  // events of a batch have offsets of their own (StoredEvent::offset), for whoever remembers them one by one: a query by
  // tag goes on from the next offset, one by id from the next number.
  uint64_t position() const { return position_; }

 private:
  absl::Status CheckSubject() const;
  Future<EventBatch> ReadPage();

  JournalStorage& storage_;
  const JournalSubject subject_;
  const QueryOptions options_;
  uint64_t position_;
  bool is_done_ = false;
};

// All persistence ids, each once, in the order in which the journal first met them.
class IdQuery {
 public:
  IdQuery(JournalStorage& storage, QueryOptions options)
      : storage_(storage), options_(options), position_(options.from) {}

  // The next ids: at least one unless the query is done. QueryOptions::page.max_events bounds their number.
  Task<IdBatch> Next();

  bool done() const { return is_done_; }
  uint64_t position() const { return position_; }

 private:
  JournalStorage& storage_;
  const QueryOptions options_;
  uint64_t position_;
  bool is_done_ = false;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_QUERY_JOURNAL_QUERY_H_
