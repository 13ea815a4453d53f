#include "fraktor/actor/tree/internal/tree_spawning.h"

#include <atomic>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/internal/cell_state.h"
#include "fraktor/actor/cell/internal/child_links.h"
#include "fraktor/actor/cell/internal/tree_phase.h"
#include "fraktor/actor/cell/internal/tree_signals.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/internal/node_pool.h"
#include "fraktor/actor/send/internal/dispatcher_table.h"
#include "fraktor/actor/send/internal/routed_sending.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/tree/internal/not_created.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::actor_internal {
namespace {

[[gnu::noinline, gnu::cold]] absl::Status ParentIsEnding(const std::string& parent) {
  return MakeError(absl::StatusCode::kFailedPrecondition, ActorErrorKind::kTerminating,
                   absl::StrCat(parent,
                                " is stopping, or about to be restarted, and spawns no children; spawn them before, in "
                                "PostRestart, or under another actor"));
}

}  // namespace

inline MailboxSpec TreeSpawning::SpecOf(const ActorProps& props, ActorInstance* instance, uint16_t dispatcher) {
  return {.instance = instance,
          .dispatcher = dispatcher,
          .type = types_.NumberOf(props),
          .options = props.has_plain_mailbox() ? nullptr : &props.options().mailbox,
          .gate = props.has_start() ? static_cast<uint8_t>(Gate::kStarting) : uint8_t{0}};
}

template <class Register>
absl::StatusOr<ActorSlot*> TreeSpawning::TakeSlot(const ActorProps& props, DispatcherChoice usual,
                                                  Register register_slot) {
  const DispatcherSelector& wanted = props.options().dispatcher;
  FRAKTOR_ASSIGN_OR_RETURN(const uint16_t dispatcher, wanted == DispatcherChoice::kAutomatic
                                                          ? options_.dispatchers.NumberFor(usual)
                                                          : options_.dispatchers.NumberFor(wanted));
  absl::StatusOr<ActorSlot*> slot = register_slot(SpecOf(props, &NotCreated(), dispatcher));
  if (!slot.ok() && props.options().dispatcher == DispatcherChoice::kPinned) {
    options_.dispatchers.EndPinned(dispatcher);
  }
  return slot;
}

inline ActorRef TreeSpawning::Begin(ActorSlot& slot, bool must_run) {
  const ActorRef ref = slot.ref();
  if (options_.observer != nullptr) [[unlikely]] {
    options_.observer->OnSpawned(ref, slot.kin.parent == nullptr ? ActorRef() : slot.kin.parent->ref(),
                                 slot.kin.props->type_name());
  }
  if (!must_run) {
    MailboxRegistry::LetGo(slot);
  } else if (ActorWorker* const worker = ActorWorker::Current()) {
    worker->outbox.MakeReady(slot);
  } else {
    DispatcherTable::RegisterOrEmpty(slot);
  }
  return ref;
}

// A thread that walks the tree may have found the actor under its parent, and may send to it at
// this moment: a worker then runs the free slot. The caller has unregistered the slot.
void TreeSpawning::GiveUp(ActorSlot& slot, const ActorProps& props) {
  slot.instance = nullptr;
  slot.gate = 0;
  slot.failures = 0;
  // First, so that the workers of another dispatcher handle late messages.
  if (props.options().dispatcher == DispatcherChoice::kPinned) options_.dispatchers.EndPinned(slot.dispatcher);
  MailboxRegistry::TakeBack(slot);
  options_.mailboxes.Release(slot);
}

absl::StatusOr<ActorRef> TreeSpawning::Spawn(ActorContext& parent, const ActorProps& props, std::string_view name) {
  ActorWorker& worker = ActorContext::worker();
  if (!name.empty() || !props.has_plain_mailbox() || props.options().dispatcher != DispatcherChoice::kAutomatic)
      [[unlikely]] {
    return SpawnSlowly(parent.self(), &worker, props, name, nullptr);
  }
  if (PhaseOf(parent.slot()) != kLiving) [[unlikely]]
    return ParentIsEnding(paths_.PathOf(parent.self()));
  MadeInstance made = MakeInstance(worker.cache(), props);
  ActorSlot* slot = nullptr;
  if (made.error.ok()) [[likely]] {
    slot = MailboxRegistry::TryRegister(worker.slots(),
                                        SpecOf(props, made.instance, options_.dispatchers.default_pool().number()));
  }
  if (slot == nullptr) [[unlikely]]
    return SpawnSlowly(parent.self(), &worker, props, name, &made);
  slot->kin.props = &props;
  props.AddUser();
  // A child of a suspended parent is suspended too.
  slot->failures = worker.turn_state.failures;
  LinkChild(worker.cache(), parent.slot(), parent.slot().generation(), *slot, /*is_named=*/false);
  return Begin(*slot, props.has_start());
}

[[gnu::noinline]] absl::StatusOr<ActorRef> TreeSpawning::SpawnSlowly(ActorRef parent_ref, ActorWorker* worker,
                                                                     const ActorProps& props, std::string_view name,
                                                                     MadeInstance* made_before,
                                                                     DispatcherChoice usual) {
  ActorSlot& parent = *parent_ref.slot();
  NodeCache& cache = worker != nullptr ? worker->cache() : NodeCache::OfThisThread();
  absl::StatusOr<ActorSlot*> taken = TakeSlot(props, usual, [&](const MailboxSpec& spec) {
    return worker != nullptr ? options_.mailboxes.Register(worker->slots(), spec) : options_.mailboxes.Register(spec);
  });
  if (!taken.ok()) {
    if (made_before != nullptr && made_before->error.ok()) props.Unmake(cache, made_before->instance);
    return taken.status();
  }
  ActorSlot* const slot = *taken;
  slot->kin.props = &props;
  if (props.is_router()) slot->ref_flags.store(slot->flags() | kRouterFlag, std::memory_order_release);
  const bool in_turn_of_parent = worker != nullptr && worker->turn_state.running() == &parent;
  if (!LinkChild(cache, parent, parent_ref.generation(), *slot, !name.empty())) {
    MailboxRegistry::Unregister(*slot);
    GiveUp(*slot, props);
    return ParentIsEnding(paths_.PathOf(parent_ref));
  }
  if (!name.empty()) {
    absl::Status named = options_.names == nullptr ? absl::FailedPreconditionError("actors of this tree have no names")
                                                   : options_.names->Register(*slot, parent, name);
    if (!named.ok()) {
      // An unregistered child cannot be counted as leaving after UnlinkChild.
      MailboxRegistry::Unregister(*slot);
      const ActorRef awaited_by = UnlinkChild(parent, *slot);
      GiveUp(*slot, props);
      if (!awaited_by.IsNoOne()) TellSystem(awaited_by, MakeEnvelope<ChildrenEnded>(ActorRef()));
      return Annotate(std::move(named), ToStd(absl::StrCat("a child of ", paths_.PathOf(parent_ref))));
    }
  }
  props.AddUser();
  if (in_turn_of_parent) slot->failures = worker->turn_state.failures;
  MadeInstance made = made_before != nullptr ? std::move(*made_before) : MakeInstance(cache, props);
  slot->instance = made.instance;
  if (!made.error.ok()) {
    // The actor fails in its first turn.
    CellState::Of(*slot).failure = std::move(made.error);
    slot->gate = slot->gate | Gate::kStarting;
    return Begin(*slot, true);
  }
  absl::Status prepared;
  if (props.is_router()) prepared = props.PrepareRouter(tree_, *slot);
  const ActorRef ref = Begin(*slot, props.has_start());
  if (!prepared.ok()) return prepared;
  return ref;
}

absl::StatusOr<ActorRef> TreeSpawning::SpawnChildOf(ActorWorker* worker, ActorRef parent, const ActorProps& props,
                                                    std::string_view name, DispatcherChoice usual) {
  if (!parent.IsActor() || !parent.IsCurrent()) {
    return MakeError(absl::StatusCode::kUnavailable, ActorErrorKind::kTerminating,
                     absl::StrCat("the parent has ended: ", paths_.PathOf(parent), "; spawn under a living actor"));
  }
  return SpawnSlowly(parent, worker, props, name, nullptr, usual);
}

absl::StatusOr<ActorRef> TreeSpawning::SpawnRoot(const ActorProps& props) {
  FRAKTOR_ASSIGN_OR_RETURN(ActorSlot* const slot,
                           TakeSlot(props, DispatcherChoice::kAutomatic,
                                    [&](const MailboxSpec& spec) { return options_.mailboxes.Register(spec); }));
  slot->kin.props = &props;
  MadeInstance made = MakeInstance(NodeCache::OfThisThread(), props);
  if (!made.error.ok()) {
    MailboxRegistry::Unregister(*slot);
    GiveUp(*slot, props);
    return made.error;
  }
  slot->instance = made.instance;
  props.AddUser();
  return Begin(*slot, props.has_start());
}

}  // namespace fraktor::inline v0::actor_internal
