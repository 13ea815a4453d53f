// The actors of a system as a tree: how they are spawned, stop, fail and start again.
//
//   ActorTree tree({.mailboxes = mailboxes, .dispatchers = dispatchers});
//   ActorRef greeter = tree.SpawnRoot(PropsOf<Greeter>()).value();        // from outside
//   ActorRef child = ActorTree::Of(context).Spawn(context, PropsOf<Child>()).value();   // in the parent's turn
//   ActorTree::Stop(greeter);                                             // from anywhere
//
// A parent lives longer than its children: an actor that stops stops its children first, and ends when the last of them
// has ended. An actor that fails is suspended with all its descendants, and its parent says what becomes of it. Nobody
// waits for anybody: all of that goes through system messages.
//
// Thread safety: any thread, except where a context is needed, which is only good in its actor's turn.
#ifndef FRAKTOR_ACTOR_CELL_ACTOR_TREE_H_
#define FRAKTOR_ACTOR_CELL_ACTOR_TREE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/scheduler/dispatchers.h"
#include "fraktor/actor/turn/actor_context.h"
#include "fraktor/actor/turn/actor_slot.h"
#include "fraktor/actor/turn/mailbox_registry.h"
#include "fraktor/actor/turn/message_invoker.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

// What becomes of an actor that has failed.
enum class SupervisionVerdict : uint8_t {
  kResume,    // It goes on with the next message, as it is.
  kRestart,   // Its children stop, and a new instance goes on with the next message. The mailbox is kept.
  kStop,      // It ends.
  kEscalate,  // Its parent fails too, with the same error.
};

struct ActorTreeOptions {
  MailboxRegistry& mailboxes;
  Dispatchers& dispatchers;
  // Names types for metrics; null for none.
  ObservabilityHub* hub = nullptr;
  // Where messages go that reached nobody, with a clock; null: they are counted only.
  DeadLetters* dead_letters = nullptr;
  // Asked in the turn of the parent; for a root in its own, where kEscalate is kStop. If it throws, that is kStop. Null:
  // all are restarted, however often.
  std::function<SupervisionVerdict(ActorRef child, const absl::Status& error)> supervisor = nullptr;
};

class ActorTree final : public ActorLifecycle {
 public:
  explicit ActorTree(const ActorTreeOptions& options);
  // No worker runs any more. Actors that are left end without their hooks.
  ~ActorTree() override;

  // The tree whose actor's turn this is.
  static ActorTree& Of(ActorContext& /*context*/) { return static_cast<ActorTree&>(ActorContext::worker().lifecycle); }

  // A child of the actor whose turn it is. ResourceExhausted if there is no slot or thread left, InvalidArgument for bad
  // options, Internal if the constructor throws, FailedPrecondition if the actor is ending its children: as one that
  // stops or is restarted does, from when they are told until PostStop is over.
  absl::StatusOr<ActorRef> Spawn(ActorContext& parent, const ActorProps& props);
  // An actor without a parent.
  absl::StatusOr<ActorRef> SpawnRoot(const ActorProps& props);

  // The actor finishes the message that it is at, and ends.
  static void Stop(ActorRef actor);

  // Messages that reached nobody.
  uint64_t dead_letters() const { return dead_letter_count_.load(std::memory_order_relaxed); }

  // What a type number of a slot, or of a WorkerStall, means.
  std::string TypeName(uint16_t type) const;

 private:
  absl::Status OnStart(ActorWorker& worker, ActorSlot& slot) override;
  void OnSystemMessage(ActorWorker& worker, ActorSlot& slot, Envelope& message) override;
  void OnFailure(ActorWorker& worker, ActorSlot& slot, const absl::Status& error, Envelope* message) override;
  bool MayEnd(ActorWorker& worker, ActorSlot& slot) override;
  void OnEnding(ActorWorker& worker, ActorSlot& slot) override;
  void OnEnded(ActorWorker& worker, ActorSlot& slot) override;
  void OnDeadLetter(NodeCache& cache, EnvelopePtr envelope, ActorSlot* slot, DeadLetterReason reason) override;

  static absl::Status ConstructorThrew(const ActorProps& props);
  static absl::Status EndsChildren();
  MailboxSpec SpecOf(const ActorProps& props, ActorInstance* instance, uint16_t dispatcher);
  template <class Register>
  absl::StatusOr<ActorSlot*> Put(NodeCache& cache, const ActorProps& props, ActorInstance* instance,
                                 Register register_slot);
  uint16_t TypeOf(const ActorProps& props);
  uint16_t FindTypeOf(const ActorProps& props);
  void OnChildFailed(ActorWorker& worker, ActorSlot& slot, ActorRef child, const absl::Status& error);
  void Report(ActorWorker& worker, ActorSlot& slot, const absl::Status& error, const ActorSlot* culprit);
  SupervisionVerdict VerdictOn(ActorRef child, const absl::Status& error) const;
  void Sentence(ActorWorker& worker, ActorSlot& parent, ActorRef child, const absl::Status& error);
  void BeginRestart(ActorWorker& worker, ActorSlot& slot);
  void FinishRestart(ActorWorker& worker, ActorSlot& slot);
  void Resume(ActorWorker& worker, ActorSlot& slot);
  template <class M>
  static void TellChildren(ActorSlot& slot, const ActorSlot* except = nullptr);

  const ActorTreeOptions options_;
  const uint64_t serial_;  // Of this tree in the process.
  // A sum that orders nothing.
  std::atomic<uint64_t> dead_letter_count_{0};

  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, uint16_t> types_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint16_t, std::string> type_names_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CELL_ACTOR_TREE_H_
