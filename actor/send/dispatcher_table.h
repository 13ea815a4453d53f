// Which ready queue an actor belongs to, by number, for the whole process.
//
// A sender that is late may make an actor ready whose system has ended. So what it needs for that
// is never freed: a number leads to an entry that is open or closed. With a closed one nothing is
// registered, and the sender empties the mailbox itself. An actor with a dispatcher of its own,
// which ends before its system does, leaves its late messages to another dispatcher of the system:
// a watcher gets its Terminated from there, and an asker its error.
#ifndef FRAKTOR_ACTOR_SEND_DISPATCHER_TABLE_H_
#define FRAKTOR_ACTOR_SEND_DISPATCHER_TABLE_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"

#include "fraktor/actor/run_queue/ready_queue_coordinator.h"
#include "fraktor/actor/slot/actor_slot.h"

namespace fraktor::inline v0 {

class DispatcherTable {
 public:
  // How many may be open at a time.
  static constexpr uint32_t kMaxDispatchers = 65536;

  DispatcherTable() = delete;

  // Gives a coordinator a number. ResourceExhausted if all are taken.
  static absl::StatusOr<uint16_t> Open(ReadyQueueCoordinator& coordinator);

  // From the return of this on nobody uses the coordinator through the number any more. `heir` is
  // the number of another coordinator, for a number whose one actor has ended: its workers give the
  // answer of an ended actor to messages that are still on their way. No actor that lives may have
  // a number with an heir.
  static void Close(uint16_t number, std::optional<uint16_t> heir = std::nullopt);

  // A closed number may be given to another coordinator: no actor has it any more. A late sender to one that had it may
  // then find the other coordinator, whose worker finds a message for nobody.
  static void Release(uint16_t number);

  // Registers an actor, whose mailbox the caller holds, with the coordinator of its number as a
  // foreign thread, or with the heir's if that is closed. If both are, the actor's system has
  // ended: the messages in the mailbox are dead letters, which are only counted, and the mailbox is
  // left idle. A thread that has a ReadyKeeper asks that first.
  static void RegisterOrEmpty(ActorSlot& slot);

  // Ends what is in the mailbox of an actor whose system has ended, or ends, and leaves it idle. By the holder. Senders
  // that wait for room in the mailbox go on.
  static void Empty(ActorSlot& slot);

  // Messages that found nobody, and no system to tell: sent to references that had outlived their system, or to no one
  // when there was no system.
  static uint64_t LateDeadLetters();
  static void CountLateDeadLetter();

 private:
  static void EmptyInTurn(ActorSlot& slot);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SEND_DISPATCHER_TABLE_H_
