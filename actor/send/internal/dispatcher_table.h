// DispatcherTable: the run queues of the process by number. Each actor slot has the number of its
// dispatcher.
//
// A late sender may schedule an actor whose system has ended. So the entry of a number is never
// freed: it is open or closed. If it is closed, nothing is scheduled, and the sender empties the
// mailbox itself. A pinned actor has a dispatcher of its own, which ends before its system does.
// Its late messages go to another dispatcher of the system, the heir: there a watcher gets its
// Terminated, and an asker its error.
//
// Called by: executors, which open and close numbers, and senders. Thread: any.
#ifndef FRAKTOR_ACTOR_SEND_INTERNAL_DISPATCHER_TABLE_H_
#define FRAKTOR_ACTOR_SEND_INTERNAL_DISPATCHER_TABLE_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"

#include "fraktor/actor/run_queue/internal/ready_queue_coordinator.h"
#include "fraktor/actor/slot/internal/actor_slot.h"

namespace fraktor::inline v0::actor_internal {

class DispatcherTable {
 public:
  // The limit of open dispatchers of the process.
  static constexpr uint32_t kMaxDispatchers = 65536;

  DispatcherTable() = delete;

  // Gives a coordinator a number. ResourceExhausted if all numbers are in use.
  static absl::StatusOr<uint16_t> Open(ReadyQueueCoordinator& coordinator);

  // When it returns, no thread uses the coordinator through the number any more. `heir` is the
  // number of another coordinator, for a number whose only actor has ended: the workers of the heir
  // handle messages that are still on their way. No living actor may have a number with an heir.
  static void Close(uint16_t number, std::optional<uint16_t> heir = std::nullopt);

  // Frees a closed number, which no actor has any more, for another coordinator. A late sender to
  // an ended actor may then reach that coordinator, whose worker finds a stale message.
  static void Release(uint16_t number);

  // Schedules an actor whose mailbox the caller holds, as a foreign thread: with the coordinator of
  // its number, or with that of the heir if the number is closed. If both are closed, the system of
  // the actor has ended: the messages in the mailbox are dead letters, which are only counted, and
  // the mailbox becomes idle. A thread that has a ReadyKeeper asks that first.
  static void RegisterOrEmpty(ActorSlot& slot);

  // Called by the holder of a mailbox whose system ends or has ended: destroys the messages, and
  // lets the mailbox become idle. Senders that wait for room in it resume.
  static void Empty(ActorSlot& slot);

  // The number of messages in this process that were lost and that no system could report: sent to
  // references whose system had ended, or to no one when there was no system. The metric
  // late_dead_letters_total.
  static uint64_t LateDeadLetters();
  static void CountLateDeadLetter();

 private:
  static void EmptyInTurn(ActorSlot& slot);
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_SEND_INTERNAL_DISPATCHER_TABLE_H_
