// JournalActor: the one actor of a system that talks to a journal's storage; all others talk to it.
//
//   PropsPtr props = MakeProps<JournalActor>({}, std::shared_ptr<JournalStorage>(...), JournalActorOptions{});
//   ActorRef journal = system.SpawnSystemActor(*props, "journal");
//   Tell(journal, WriteMessages{...});                        // journal_messages.h
//
// It serves many clients at once and waits for none: what the storage has not answered yet it
// keeps, and goes on. Writes that come while others are under way are collected, from all clients,
// and go to the storage as one, up to max_write_bytes: so one sync of a disk serves many. After a
// write the next one is held back for a moment, until those who were answered have come again: of
// clients that write all the time all share a sync, and not every other half. The moment is at most
// a quarter of what the write took; and if they do not come in time, the next writes are not held
// back.
//
// Openings, writes and deletions of one persistence id reach the storage in the order in which the
// actor receives them.
//
// Changes of the storage, and the search for the highest number, go through a circuit breaker.
// Replays do not. When the journal actor stops or is restarted, everything that is under way is
// answered with a failure.
//
// Thread safety: an actor.
#ifndef FRAKTOR_PERSISTENCE_PROTOCOL_JOURNAL_ACTOR_H_
#define FRAKTOR_PERSISTENCE_PROTOCOL_JOURNAL_ACTOR_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/pattern/circuit_breaker.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/protocol/journal_messages.h"
#include "fraktor/persistence/protocol/store_actor.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"

namespace fraktor::inline v0 {

struct JournalActorOptions {
  // If it does not say which errors are failures, those are that the storage is to blame for.
  // A store that works again, as after a full disk, is used again within seconds.
  CircuitBreakerOptions breaker = {.name = "journal",
                                   .max_failures = 10,
                                   .reset_timeout = absl::Seconds(1),
                                   .backoff_factor = 2,
                                   .max_reset_timeout = absl::Seconds(10)};
  // The number of writes that may be under way in the storage. Further writes are collected. A
  // storage that works on several writes at once gains from more than one.
  size_t max_writes_in_flight = 1;
  // The bytes of one write of the storage, at least 1. Only a write of a single client may have
  // more: it is not divided.
  size_t max_write_bytes = size_t{4} << 20;
  // DeleteMessagesTo is published as an event.
  bool publish_commands = false;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

class JournalActor final : public protocol_internal::StoreActor<JournalStorage, JournalActorOptions> {
 public:
  JournalActor(std::shared_ptr<JournalStorage> storage, const JournalActorOptions& options);

  absl::Status Receive(ActorContext& context, Envelope& message) override;

 private:
  // A client of one storage write, and its part of the results.
  struct WriteClient {
    ActorRef client;
    uint64_t instance_id;
    uint64_t batch;
    size_t write_count;
    std::vector<DeferredEntry> deferred;
    bool only_events_are_answered;
  };
  // Collected writes are held back until `awaited` more clients have written, or the time is over.
  struct Hold {
    size_t awaited = 0;  // 0: nothing is held back
    Instant until;
    // Armed when there is something to hold back.
    bool has_timer = false;
    TimerId timer;
    uint64_t number = 0;
    // The number of writes without a hold, now and after the next hold that is in vain.
    int left_out = 0;
    int next_left_out = 16;
  };
  // The numbers of one atomic write.
  struct WriteNumbers {
    uint64_t lowest;
    uint64_t count;
  };
  // One write of the storage.
  struct Collected {
    void Add(WriteClient client, std::span<AtomicWrite> its_writes, std::span<const WriteNumbers> its_numbers);

    std::vector<AtomicWrite> writes;
    absl::InlinedVector<WriteClient, 1> clients;
    absl::InlinedVector<WriteNumbers, 1> numbers;  // of each of `writes`
    size_t bytes = 0;
  };

  void Open(ActorContext& context, OpenWriter& request);
  void Write(ActorContext& context, WriteMessages& request);
  // False: the storage does not answer at once, or is not to be asked now.
  bool WriteAtOnce(ActorContext& context, WriteMessages& request);
  void Collect(ActorContext& context, WriteMessages& request);
  static size_t BytesOf(std::span<const AtomicWrite> writes);
  // Adds the writes of a client to the last group, or to a new one if they do not fit there.
  void AddToGroups(WriteClient client, std::span<AtomicWrite> writes, std::span<const WriteNumbers> numbers);
  // Gives the storage groups in their order, as many as may be in flight.
  void WriteCollected(ActorContext& context);
  void WriteGroup(ActorContext& context, Collected group);
  // The storage has answered a write for `clients` after `took`. Writes what is collected, or holds
  // it back until as many clients have come again.
  void AfterWrite(ActorContext& context, size_t clients, absl::Duration took);
  // Arms the timer. False: the time is over.
  bool HoldOn(ActorContext& context);
  void EndHold(ActorContext& context);
  void EndHoldInVain(ActorContext& context);
  // Gives the storage what is collected of the id, so that a request for the id can follow. Does
  // not wait until fewer writes are in flight.
  void WriteCollectedOf(ActorContext& context, std::string_view persistence_id);
  // Moves the writes to the id into `first`, and the writes that those must not overtake. The
  // others are collected again.
  void Divide(std::deque<Collected>& groups, std::string_view persistence_id, Collected& first);
  bool HasCollected(std::string_view persistence_id) const;
  void StopHold();
  static void AnswerWrites(ActorContext& context, const Collected& sent, const absl::StatusOr<WriteResults>& results);
  // One client of a write. `results` are those of its atomic writes, or none if `failure` is that
  // of all.
  static void AnswerClient(ActorContext& context, const WriteClient& client, std::span<const WriteNumbers> numbers,
                           std::span<const absl::Status> results, const absl::Status& failure);
  void Delete(ActorContext& context, DeleteMessagesTo& request);
  void FindHighest(ActorContext& context, GetHighestSequenceNr& request);
  void Replay(ActorContext& context, ReplayMessages request);
  void ReadPage(ActorContext& context, ReplayMessages request);
  // False: there was nothing in the page, and the request is for the next one now.
  static bool AnswerPage(ActorContext& context, ReplayMessages& request, absl::StatusOr<EventBatch> page);
  // Ends a replay. `last_sent_nr` is the last number of the page, or 0 without a page.
  static void AnswerEnd(ActorContext& context, const ReplayMessages& request, uint64_t last_sent_nr);
  // Fails the writes that the storage does not have yet.
  void OnEnd(ActorContext& context) override;

  size_t writes_in_flight_ = 0;
  // Each has at most max_write_bytes, or one client. None is empty.
  std::deque<Collected> collected_;
  Hold hold_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_PROTOCOL_JOURNAL_ACTOR_H_
