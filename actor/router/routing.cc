#include "fraktor/actor/router/routing.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/mailbox/mailbox_limits.h"
#include "fraktor/actor/message/routing_key.h"
#include "fraktor/actor/router/router_messages.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/turn/actor_slot.h"
#include "fraktor/actor/turn/actor_worker.h"
#include "fraktor/actor/turn/mailing.h"
#include "fraktor/actor/turn/remote_sending.h"
#include "fraktor/actor/turn/reply_promise.h"
#include "fraktor/actor/turn/system_core.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

using RefList = absl::InlinedVector<ActorRef, 16>;

// Routers may have routers as routees; a circle of them would have no end.
constexpr int kMaxDepth = 32;
constinit thread_local int depth = 0;

class DepthScope {
 public:
  DepthScope() { ++depth; }
  ~DepthScope() { --depth; }
  DepthScope(const DepthScope&) = delete;
  DepthScope& operator=(const DepthScope&) = delete;
};

void Lose(ActorRef router, EnvelopePtr message, DeadLetterReason reason) {
  if (ActorWorker* const worker = ActorWorker::Current()) {
    worker->DeadLetter(message.release(), router.any_slot(), reason);
  } else {
    SystemCore::LoseForeign(router, std::move(message), reason);
  }
}

[[gnu::always_inline]] inline absl::Status Send(ActorRef to, EnvelopePtr message) {
  ActorWorker* const worker = ActorWorker::Current();
  if (worker == nullptr) return SendForeign(to, std::move(message));
  return worker->TrySend(to, message.release());
}

// What is in a Broadcast may be meant for the runtime.
absl::Status SendOrMark(ActorRef to, EnvelopePtr message) {
  if (!message->type()->is_intercepted()) return Send(to, std::move(message));
  SendMarked(to, std::move(message));
  return absl::OkStatus();
}

NodeCache& CacheOfThisThread() {
  ActorWorker* const worker = ActorWorker::Current();
  return worker == nullptr ? NodeCache::OfThisThread() : worker->cache();
}

// To all; the first error, if there are any.
absl::Status SendToAll(ActorRef router, const RefList& to, EnvelopePtr message) {
  if (to.empty() || (to.size() > 1 && !message->type()->is_copyable())) {
    Lose(router, std::move(message), to.empty() ? DeadLetterReason::kNoRecipient : DeadLetterReason::kNotCopyable);
    return absl::OkStatus();
  }
  // One that is lost is not the end of a question that others have got too.
  const ActorRef sender = message->sender();
  if (to.size() > 1) message->set_sender(SharedSender(sender));
  absl::Status first;
  for (size_t i = 0; i + 1 < to.size(); ++i) {
    absl::Status sent = SendOrMark(to[i], CopyEnvelope(CacheOfThisThread(), *message));
    if (first.ok()) first = std::move(sent);
  }
  absl::Status sent = SendOrMark(to.back(), std::move(message));
  return first.ok() ? sent : first;
}

// Nobody has answered in time.
void FailQuestion(ActorRef promise, absl::Duration within) {
  if (!promise.IsCurrent()) return;
  AnswerPromise(promise,
                MakeEnvelope<ErrorReply>(
                    ActorRef(), MakeError(absl::StatusCode::kDeadlineExceeded, ActorErrorKind::kAskTimeout,
                                          absl::StrCat("no routee has answered within ", absl::FormatDuration(within))))
                    .release());
}

// Asks one routee after the other. In timers, on whatever thread: it leads to nothing that ends with a system.
struct Chopping {
  ActorRef promise;
  EnvelopePtr message;
  RefList order;
  size_t asked = 0;
  Instant deadline;
  absl::Duration within;
  absl::Duration interval;
};

void AskNext(std::unique_ptr<Chopping> chopping, RuntimeToolbox& toolbox) {
  if (!chopping->promise.IsCurrent()) return;
  if (toolbox.Now() >= chopping->deadline) {
    FailQuestion(chopping->promise, chopping->within);
    return;
  }
  Instant next = chopping->deadline;
  if (chopping->asked < chopping->order.size()) {
    const ActorRef routee = chopping->order[chopping->asked++];
    const bool is_last = chopping->asked == chopping->order.size();
    Send(routee, is_last ? std::move(chopping->message) : CopyEnvelope(CacheOfThisThread(), *chopping->message))
        .IgnoreError();
    if (!is_last) next = std::min(next, toolbox.Now() + chopping->interval);
  }
  // The question fails by itself then.
  if (next == chopping->deadline && DeadlineOf(chopping->promise) <= chopping->deadline) return;
  // Without a timer, those who have been asked have to do; who asked has a timeout of its own.
  toolbox
      .ScheduleAt(next, [chopping = std::move(chopping), &toolbox]() mutable { AskNext(std::move(chopping), toolbox); })
      .IgnoreError();
}

struct AllRoutees {
  bool is_known = false;
  RoutingPlan plan;
  RefList refs;
};

AllRoutees ReadAll(const RoutingTable& table, ActorRef router) {
  AllRoutees all;
  all.is_known = table.Read(router.generation(), [&](const RoutingTable::View& view) {
    all.plan = view.plan();
    all.refs.clear();
    const uint32_t size = view.size();
    for (uint32_t i = 0; i < size; ++i) all.refs.push_back(view.routee(i));
  });
  return all;
}

// One of the least busy.
uint32_t LeastBusy(const RoutingTable::View& view, uint32_t size, uint32_t first) {
  uint32_t best = first % size;
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 0; i < size && least > 0; ++i) {
    const uint32_t at = (first + i) % size;
    const uint64_t business = BusinessOf(view.routee(at));
    if (business < least) {
      least = business;
      best = at;
    }
  }
  return best;
}

// The pool is to look at its size, in its own turn.
[[gnu::noinline]] void RequestResize(const RoutingTable& table, ActorRef router) {
  if (table.TryRequestResize()) SendMarked(router, MakeEnvelope<ResizePool>(CacheOfThisThread(), ActorRef()));
}

// Whom one message goes to.
struct Choice {
  enum class Kind : uint8_t { kOne, kAll, kAsk, kByKey, kNobody };
  Kind kind = Kind::kNobody;
  bool resize = false;
  ActorRef to;
};

// Everything but the key of a message, for which its code is called, and not while a snapshot is being read.
[[gnu::always_inline]] inline bool Choose(const RoutingTable& table, ActorRef router, Choice& choice) {
  // At most once for each message, whatever is read again.
  uint64_t ticket = 0;
  bool has_ticket = false;
  const auto take_ticket = [&] {
    if (!has_ticket) ticket = table.NextTicket();
    has_ticket = true;
    return ticket;
  };
  return table.Read(router.generation(), [&](const RoutingTable::View& view) {
    choice = {};
    const uint32_t size = view.size();
    const uint32_t resize_every = view.resize_every();
    if (resize_every != 0) choice.resize = size == 0 || take_ticket() % resize_every == 0;
    if (size == 0) return;
    choice.kind = Choice::Kind::kOne;
    switch (view.kind()) {
      case RoutingKind::kRoundRobin:
        choice.to = view.routee(static_cast<uint32_t>(take_ticket()) % size);
        break;
      case RoutingKind::kRandom:
        choice.to = view.routee(static_cast<uint32_t>((table.RandomOf(take_ticket()) >> 32) * size >> 32));
        break;
      case RoutingKind::kSmallestMailbox:
        choice.to = view.routee(LeastBusy(view, size, static_cast<uint32_t>(take_ticket())));
        break;
      case RoutingKind::kBroadcast:
        choice.kind = Choice::Kind::kAll;
        break;
      case RoutingKind::kConsistentHashing:
        choice.kind = Choice::Kind::kByKey;
        break;
      case RoutingKind::kScatterGather:
      case RoutingKind::kTailChopping:
        choice.kind = Choice::Kind::kAsk;
        break;
    }
  });
}

// A key, if there is one. Not an optional: gcc 12 takes it for uninitialized under sanitizers.
struct FoundKey {
  bool is_there = false;
  uint64_t key = 0;
};

FoundKey KeyOf(RoutingMapping mapping, const Envelope& message) {
  if (mapping != nullptr) {
    if (const std::optional<uint64_t> key = mapping(message); key.has_value()) return {true, *key};
  }
  const RoutingKeyFunction own = message.type()->routing_key();
  if (own == nullptr) return {};
  return {true, own(message.payload())};
}

absl::Status SendByKey(const RoutingTable& table, ActorRef router, EnvelopePtr message, FoundKey key) {
  if (!key.is_there) {
    RoutingMapping mapping = nullptr;
    table.Read(router.generation(), [&](const RoutingTable::View& view) { mapping = view.plan().mapping; });
    key = KeyOf(mapping, *message);
  }
  ActorRef owner;
  if (key.is_there) {
    table.Read(router.generation(), [&](const RoutingTable::View& view) { owner = view.OwnerOf(key.key); });
  }
  if (owner.IsNoOne()) {
    Lose(router, std::move(message), DeadLetterReason::kNoRecipient);
    return absl::OkStatus();
  }
  return Send(owner, std::move(message));
}

// The message inside of another, in the name of who sent that.
EnvelopePtr Unwrap(EnvelopePtr& inner, const Envelope& outer) {
  inner->set_sender(outer.sender());
  inner->set_target_word(outer.target_word());
  return std::move(inner);
}

absl::Status RouteOn(const RoutingTable& table, ActorRef router, EnvelopePtr message) {
  FoundKey key;
  if (auto* const keyed = message->TryAs<Keyed>()) {
    key = {true, keyed->hash};
    message = Unwrap(keyed->envelope, *message);
  } else if (auto* const broadcast = message->TryAs<Broadcast>()) {
    AllRoutees all = ReadAll(table, router);
    return SendToAll(router, all.refs, Unwrap(broadcast->envelope, *message));
  }
  Choice choice;
  if (!Choose(table, router, choice)) {
    Lose(router, std::move(message), DeadLetterReason::kStopped);
    return absl::OkStatus();
  }
  if (choice.resize) [[unlikely]]
    RequestResize(table, router);
  switch (choice.kind) {
    case Choice::Kind::kOne:
      return Send(choice.to, std::move(message));
    case Choice::Kind::kAll:
      return SendToAll(router, ReadAll(table, router).refs, std::move(message));
    case Choice::Kind::kByKey:
      return SendByKey(table, router, std::move(message), key);
    case Choice::Kind::kAsk: {
      ActorWorker* const worker = ActorWorker::Current();
      const ActorRef sender = message->sender();
      if (worker != nullptr && worker->toolbox != nullptr && sender.IsPromise()) {
        AskRoutees(table, router, sender, std::move(message), *worker->toolbox);
      } else {
        // Somebody has to wait for the answer: the router.
        SendMarked(router, MakeEnvelope<RouteInTurn>(CacheOfThisThread(), sender, std::move(message)));
      }
      return absl::OkStatus();
    }
    case Choice::Kind::kNobody:
      break;
  }
  Lose(router, std::move(message), DeadLetterReason::kNoRecipient);
  return absl::OkStatus();
}

}  // namespace

uint64_t BusinessOf(ActorRef actor) {
  if (!MayLive(actor)) return UINT64_MAX;
  // Not known, or it has no mailbox: whoever is here goes first.
  if (!actor.IsActor()) return UINT64_MAX - 1;
  const ActorSlot& slot = *actor.slot();
  if (slot.mailbox.inbox.IsIdle()) return 0;
  if ((actor.word() & ActorRef::kLimited) != 0) return 1 + slot.limits.load(std::memory_order_acquire)->depth();
  return slot.mailbox.inbox.HasNodes() ? 2 : 1;
}

void AskRoutees(const RoutingTable& table, ActorRef router, ActorRef promise, EnvelopePtr message,
                RuntimeToolbox& toolbox) {
  AllRoutees all = ReadAll(table, router);
  const absl::Duration within = absl::Nanoseconds(all.plan.within_ns);
  const Instant deadline = toolbox.Now() + within;
  message->set_sender(promise);
  if (all.plan.kind == RoutingKind::kScatterGather) {
    const bool has_routees = !all.refs.empty();
    SendToAll(router, all.refs, std::move(message)).IgnoreError();
    if (has_routees && DeadlineOf(promise) > deadline) {
      toolbox.ScheduleAt(deadline, [promise, within] { FailQuestion(promise, within); }).IgnoreError();
    }
    return;
  }
  if (all.refs.empty() || (all.refs.size() > 1 && !message->type()->is_copyable())) {
    Lose(router, std::move(message),
         all.refs.empty() ? DeadLetterReason::kNoRecipient : DeadLetterReason::kNotCopyable);
    return;
  }
  uint64_t random = table.RandomOf(table.NextTicket());
  for (size_t i = all.refs.size() - 1; i > 0; --i) {
    std::swap(all.refs[i], all.refs[static_cast<size_t>(random % (i + 1))]);
    random = HashOfRoutingKey(random + i);
  }
  if (all.refs.size() > 1) message->set_sender(ActorRef(promise.any_slot(), promise.word() | ActorRef::kShared));
  auto chopping = std::make_unique<Chopping>(Chopping{.promise = promise,
                                                      .message = std::move(message),
                                                      .order = std::move(all.refs),
                                                      .deadline = deadline,
                                                      .within = within,
                                                      .interval = absl::Nanoseconds(all.plan.interval_ns)});
  AskNext(std::move(chopping), toolbox);
}

absl::Status Route(ActorRef router, EnvelopePtr message) {
  const RoutingTable* const table = RoutingTable::Find(*router.slot());
  const DepthScope scope;
  if (table == nullptr || depth > kMaxDepth) [[unlikely]] {
    Lose(router, std::move(message), DeadLetterReason::kNoRecipient);
    return absl::OkStatus();
  }
  return RouteOn(*table, router, std::move(message));
}

EnvelopePtr Unwrap(EnvelopePtr message) {
  auto* const routed = message->TryAs<RouteInTurn>();
  return routed == nullptr || routed->envelope == nullptr ? std::move(message) : std::move(routed->envelope);
}

}  // namespace fraktor::inline v0
