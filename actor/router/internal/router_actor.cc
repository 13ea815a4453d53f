#include "fraktor/actor/router/internal/router_actor.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/ask/internal/ask_completion.h"
#include "fraktor/actor/ask/internal/reply_promise.h"
#include "fraktor/actor/cell/internal/cell_attachment.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/message/routing_key.h"
#include "fraktor/actor/router/internal/consistent_hashing.h"
#include "fraktor/actor/router/internal/custom_routes.h"
#include "fraktor/actor/router/internal/pool_load.h"
#include "fraktor/actor/router/internal/routee_asking.h"
#include "fraktor/actor/router/internal/routing.h"
#include "fraktor/actor/router/router_messages.h"
#include "fraktor/actor/send/internal/routed_sending.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/tree/internal/actor_tree.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0::actor_internal {

namespace {

// Messages on their way to a routee arrive before the routee ends.
constexpr absl::Duration kRetirement = absl::Milliseconds(100);
// Streams of the toolbox's random generator.
constexpr uint64_t kRoutingStream = 0x726f757465;
constexpr uint64_t kResizerStream = 0x726573697a65;

void PublishTo(RoutingTable& table, const ActorLifecycle& lifecycle, const RouterProps& props) {
  const RouterStrategy& strategy = props.setup().strategy;
  std::vector<uint64_t> ring;
  if (strategy.kind() == RoutingKind::kConsistentHashing) {
    ring = MakeRing(lifecycle, table.routees, strategy.virtual_nodes());
  }
  CustomRoutes* const custom_routes =
      strategy.logic() == nullptr
          ? nullptr
          : &CustomRoutes::Make({.table = &table, .generation = table.generation()}, strategy.logic(), table.routees);
  table.Publish(props.Plan(), table.routees, ring, custom_routes);
}

// Releases the RoutingLogic of a router when the router ends. The table lives for ever, but the
// logic is an object of the program. PostStop would not do: a router that cannot start has none.
class RoutesRelease final : public CellAttachment {
 public:
  void OnStop(ActorContext& context) override { RoutingTable::Bind(context.slot()).Publish({}, {}, {}); }
};

// Passes the first reply on to a sender that has told instead of asked.
class Relay final : public AskCompletion {
 public:
  Relay(const MessageType* asked, absl::Duration within, ActorRef to) : AskCompletion(asked, within), to_(to) {}

  void TakeReply(Envelope& reply) noexcept override {
    EnvelopePtr copy;
    try {
      copy = CopyEnvelope(NodeCache::OfThisThread(), reply);
    } catch (...) {
      Fail(Annotate(StatusFromException(CaptureException()),
                    ToStd(absl::StrCat("the reply, a ", ToAbsl(reply.type()->name()), ", could not be copied"))));
      return;
    }
    if (copy != nullptr) {
      Pass(std::move(copy));
      delete this;
    } else {
      Fail(absl::FailedPreconditionError(absl::StrCat("the reply, a ", ToAbsl(reply.type()->name()),
                                                      ", cannot be copied; ask the router, instead of telling it")));
    }
  }
  void Fail(absl::Status error) noexcept override {
    Tell(to_, ErrorReply{std::move(error)});
    delete this;
  }

 private:
  ~Relay() = default;

  void Pass(EnvelopePtr answer) const {
    EnvelopePtr user = MakeUserMessage(std::move(answer));
    if (ActorWorker* const worker = ActorWorker::Current()) {
      worker->Send(to_, user.release());
    } else {
      SendForeign(to_, std::move(user)).IgnoreError();
    }
  }

  // A reply travels as a system message, and must become a user message again.
  static EnvelopePtr MakeUserMessage(EnvelopePtr answer) {
    answer->set_sender(ActorRef());
    answer->UnmarkAsSystem();
    return answer;
  }

  const ActorRef to_;
};

}  // namespace

RouterProps::RouterProps(RouterSetup setup, const PropsOptions& options)
    : ActorProps({.type_name = "Router",
                  .size = sizeof(RouterActor),
                  .alignment = alignof(RouterActor),
                  .has_start = true,
                  .is_router = true},
                 options, /*is_static=*/false),
      setup_(std::move(setup)),
      supervision_(setup_.supervision) {
  if (setup_.routee != nullptr) setup_.routee->AddUser();
}

RouterProps::~RouterProps() {
  if (setup_.routee != nullptr) setup_.routee->RemoveUser();
}

ActorInstance* RouterProps::Construct(void* memory) const { return ::new (memory) RouterActor(*this); }

int64_t RouterProps::ClampSize(int64_t size) const {
  if (setup_.resizer.has_value()) {
    return std::clamp<int64_t>(size, setup_.resizer->lower_bound, setup_.resizer->upper_bound);
  }
  if (setup_.exploring_resizer.has_value()) {
    return std::clamp<int64_t>(size, setup_.exploring_resizer->lower_bound, setup_.exploring_resizer->upper_bound);
  }
  return std::clamp<int64_t>(size, 1, kMaxRoutees);
}

RoutingPlan RouterProps::Plan() const {
  RoutingPlan plan = setup_.strategy.plan();
  if (setup_.resizer.has_value()) plan.resize_every = setup_.resizer->messages_per_resize;
  if (setup_.exploring_resizer.has_value()) plan.resize_every = setup_.exploring_resizer->messages_per_resize;
  return plan;
}

// Runs on the thread of the spawner: as soon as the spawner has the reference, senders can route.
absl::Status RouterProps::PrepareRouter(ActorTree& tree, ActorSlot& slot) const {
  InstallRouting(&Route, &Unwrap);
  const ActorRef router = slot.ref();
  uint64_t seed = HashOfRoutingKey(tree.PathOf(router));
  if (ActorSystem* const system = tree.system()) seed = system->toolbox().MakeRandom(kRoutingStream ^ seed).Next();
  RoutingTable& table = RoutingTable::Bind(slot);
  table.Begin(seed);
  table.routees = setup_.routees;
  const int64_t size = setup_.routee == nullptr ? 0 : ClampSize(setup_.size);
  for (int64_t i = 0; i < size; ++i) {
    const absl::StatusOr<ActorRef> routee = tree.SpawnChildOf(router, *setup_.routee);
    if (!routee.ok()) {
      static_cast<RouterActor*>(slot.instance)->MustEnd();
      return Annotate(routee.status(), ToStd(absl::StrCat("routee ", i + 1, " of ", size, " of a pool")));
    }
    table.routees.push_back(*routee);
  }
  if (setup_.strategy.logic() != nullptr) AttachmentOf<RoutesRelease>(ActorContext::Of(slot));
  PublishTo(table, tree, *this);
  return absl::OkStatus();
}

absl::Status RouterActor::PreStart(ActorContext& context) {
  if (must_end_) {
    context.Stop();
    return absl::OkStatus();
  }
  const std::vector<ActorRef>& routees = TableOf(context).routees;
  members_.insert(routees.begin(), routees.end());
  for (const ActorRef routee : routees) FRAKTOR_RETURN_IF_ERROR(context.Watch(routee));
  return absl::OkStatus();
}

absl::Status RouterActor::PreRestart(ActorContext& context, const absl::Status& /*reason*/, Envelope* /*message*/) {
  PublishChanges(context);
  return absl::OkStatus();
}

void RouterActor::PublishLater(ActorContext& context) {
  if (std::exchange(has_changes_, true)) return;
  context.Tell(context.self(), PublishRoutees{});
}

void RouterActor::PublishChanges(ActorContext& context) {
  if (!std::exchange(has_changes_, false)) return;
  if (!leaving_.empty()) {
    std::erase_if(TableOf(context).routees, [&](ActorRef routee) { return leaving_.contains(routee); });
    leaving_.clear();
  }
  Publish(context);
}

void RouterActor::Publish(ActorContext& context) const {
  PublishTo(TableOf(context), ActorContext::lifecycle(), props_);
}

absl::Status RouterActor::Receive(ActorContext& context, Envelope& message) {
  const bool changes_one =
      message.Is<Terminated>() || message.Is<AddRoutee>() || message.Is<RemoveRoutee>() || message.Is<AdjustPoolSize>();
  if (!changes_one) PublishChanges(context);
  if (message.Is<PublishRoutees>()) {
    // PublishChanges has done it already.
  } else if (message.Is<ResizePool>()) {
    Resize(context);
  } else if (const auto* failed = message.TryAs<RoutingFailed>()) {
    Warn(context, absl::StrCat(failed->part, " failed, for ", failed->failures,
                               " messages so far, and they became dead letters; the last time ", failed->reason));
  } else if (auto* const routed = message.TryAs<RouteInTurn>()) {
    RouteInMyTurn(context, message.sender(), std::move(routed->envelope));
  } else if (const auto* terminated = message.TryAs<Terminated>()) {
    Remove(context, terminated->actor);
    EndIfEmpty(context);
  } else if (message.Is<GetRoutees>()) {
    context.Reply(Routees{TableOf(context).routees});
  } else if (const auto* add = message.TryAs<AddRoutee>()) {
    if (add->routee.IsNoOne() || add->routee == context.self()) return context.Unhandled(message);
    if (TableOf(context).routees.size() >= kMaxRoutees) {
      PublishChanges(context);
      if (TableOf(context).routees.size() >= kMaxRoutees) return context.Unhandled(message);
    }
    return Add(context, add->routee);
  } else if (const auto* remove = message.TryAs<RemoveRoutee>()) {
    Remove(context, remove->routee);
    Retire(context, remove->routee);
    EndIfEmpty(context);
  } else if (const auto* adjust = message.TryAs<AdjustPoolSize>();
             adjust != nullptr && props_.setup().routee != nullptr) {
    // Routees that leave with the next publication do not count.
    if (!leaving_.empty()) PublishChanges(context);
    const auto size = static_cast<int64_t>(TableOf(context).routees.size());
    constexpr int64_t kMost = kMaxRoutees;
    ChangeSize(context, props_.ClampSize(size + std::clamp(adjust->change, -kMost, kMost)) - size);
  } else {
    return context.Unhandled(message);
  }
  return absl::OkStatus();
}

absl::Status RouterActor::Add(ActorContext& context, ActorRef routee) {
  if (!members_.insert(routee).second) return absl::OkStatus();
  // A routee that leaves with the next publication must leave before it is added again.
  if (leaving_.contains(routee)) PublishChanges(context);
  TableOf(context).routees.push_back(routee);
  PublishLater(context);
  return context.Watch(routee);
}

void RouterActor::Remove(ActorContext& context, ActorRef routee) {
  if (members_.erase(routee) == 0) return;
  leaving_.insert(routee);
  context.Unwatch(routee);
  PublishLater(context);
}

void RouterActor::Retire(ActorContext& context, ActorRef routee) const {
  if (routee.IsRemote() || !MayLive(routee)) return;
  if (ActorContext::lifecycle().ParentOf(routee) != context.self()) return;
  RuntimeToolbox* const toolbox = ActorContext::worker().toolbox;
  if (toolbox != nullptr && toolbox->ScheduleAfter(kRetirement, [routee] { Tell(routee, PoisonPill{}); }).ok()) return;
  context.Tell(routee, PoisonPill{});
}

void RouterActor::Warn(ActorContext& context, absl::string_view text) const {
  ActorSystem* const system = ActorContext::lifecycle().system();
  if (system == nullptr) return;
  system->log().Log(
      LogLevel::kWarning,
      {.at = system->toolbox().WallNow(), .path = context.Path(), .type = props_.type_name(), .text = ToStd(text)});
}

void RouterActor::EndIfEmpty(ActorContext& context) const {
  if (props_.setup().routee == nullptr || props_.has_resizer()) return;
  if (members_.empty()) context.Stop();
}

void RouterActor::ChangeSize(ActorContext& context, int64_t change) {
  if (change == 0) return;
  std::vector<ActorRef>& routees = TableOf(context).routees;
  for (; change > 0; --change) {
    const absl::StatusOr<ActorRef> routee = context.TrySpawn(*props_.setup().routee);
    absl::Status added = routee.status();
    if (added.ok()) {
      routees.push_back(*routee);
      members_.insert(*routee);
      added = context.Watch(*routee);
    }
    if (added.ok()) continue;
    Warn(context, absl::StrCat("cannot grow: ", added.message()));
    break;
  }
  std::vector<ActorRef> leaving;
  for (; change < 0 && !routees.empty(); ++change) {
    leaving.push_back(routees.back());
    members_.erase(routees.back());
    routees.pop_back();
  }
  PublishLater(context);
  for (const ActorRef routee : leaving) {
    context.Unwatch(routee);
    Retire(context, routee);
  }
}

int64_t RouterActor::ChangeWanted(ActorContext& context, const std::vector<ActorRef>& routees) {
  const RouterSetup& setup = props_.setup();
  const auto size = static_cast<int64_t>(routees.size());
  const PoolLoad load =
      LoadOfPool(routees, setup.resizer.has_value() ? static_cast<uint64_t>(setup.resizer->pressure_threshold) : 0);
  if (setup.resizer.has_value()) {
    return ChangeByPressure(*setup.resizer, {.size = size, .unknown = load.unknown, .pressed = load.pressed});
  }
  RuntimeToolbox* const toolbox = ActorContext::worker().toolbox;
  if (toolbox == nullptr) return 0;
  if (exploring_ == nullptr) {
    exploring_ = std::make_unique<ExploringResizer>(
        *setup.exploring_resizer, toolbox->MakeRandom(kResizerStream ^ HashOfRoutingKey(context.Path())));
  }
  return exploring_->Change({.now = toolbox->Now(),
                             .size = size,
                             .unknown = load.unknown,
                             .busy = load.busy,
                             .messages = TableOf(context).tickets(),
                             .waiting = load.waiting});
}

void RouterActor::Resize(ActorContext& context) {
  RoutingTable& table = TableOf(context);
  table.ResizeDone();
  if (!props_.has_resizer()) return;
  const auto size = static_cast<int64_t>(table.routees.size());
  // All routees have ended.
  ChangeSize(context, size == 0 ? props_.ClampSize(0) : ChangeWanted(context, table.routees));
  PublishChanges(context);
}

// The router asks in place of a sender that has told.
void RouterActor::RouteInMyTurn(ActorContext& context, ActorRef sender, EnvelopePtr message) const {
  ActorWorker& worker = ActorContext::worker();
  if (worker.toolbox == nullptr) {
    worker.DeadLetter(message.release(), context.self().slot(), DeadLetterReason::kNoRecipient);
    return;
  }
  ActorRef promise = sender;
  if (!sender.IsPromise()) {
    const absl::Duration within = absl::Nanoseconds(props_.setup().strategy.plan().within_ns);
    auto* const relay = new Relay(message->type(), within, sender);
    const absl::StatusOr<ActorRef> opened =
        OpenPromise(worker, {.timeout = within, .target = context.self(), .completion = relay});
    if (!opened.ok()) {
      relay->Fail(opened.status());
      return;
    }
    promise = *opened;
  }
  try {
    AskRoutees(TableOf(context), context.self(), promise, std::move(message), *worker.toolbox);
  } catch (...) {
    // The message of another actor must not fail the router.
    FailAskThatThrew(promise);
  }
}

}  // namespace fraktor::inline v0::actor_internal
