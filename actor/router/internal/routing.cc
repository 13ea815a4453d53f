#include "fraktor/actor/router/internal/routing.h"

#include <cstdint>
#include <utility>

#include "fraktor/actor/router/internal/broadcasting.h"
#include "fraktor/actor/router/internal/consistent_hashing.h"
#include "fraktor/actor/router/internal/custom_routing.h"
#include "fraktor/actor/router/internal/random_choice.h"
#include "fraktor/actor/router/internal/round_robin.h"
#include "fraktor/actor/router/internal/routee_asking.h"
#include "fraktor/actor/router/internal/routee_sending.h"
#include "fraktor/actor/router/internal/smallest_mailbox.h"
#include "fraktor/actor/router/router_messages.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/mailing.h"

namespace fraktor::inline v0::actor_internal {

namespace {

// Routers may be routees of routers. The limit ends a circle of them.
constexpr int kMaxDepth = 32;
constinit thread_local int depth = 0;

class DepthScope {
 public:
  DepthScope() { ++depth; }
  ~DepthScope() { --depth; }
  DepthScope(const DepthScope&) = delete;
  DepthScope& operator=(const DepthScope&) = delete;
};

// The pool checks its size in its own turn.
[[gnu::noinline]] void RequestResize(const RoutingTable& table, ActorRef router) {
  if (table.TryRequestResize()) SendIntercepted(router, MakeEnvelope<ResizePool>(CacheOfThisThread(), ActorRef()));
}

// The ticket of one message. The router gives it at most once, even if the table is read again.
class MessageTicket {
 public:
  explicit MessageTicket(const RoutingTable& table) : table_(table) {}
  [[gnu::always_inline]] uint64_t Take() {
    if (!is_taken_) ticket_ = table_.NextTicket();
    is_taken_ = true;
    return ticket_;
  }

 private:
  const RoutingTable& table_;
  uint64_t ticket_ = 0;
  bool is_taken_ = false;
};

// The recipient of one message, or the way to find it.
struct Choice {
  enum class Kind : uint8_t { kOne, kAll, kAsk, kByKey, kByLogic, kNobody };
  Kind kind = Kind::kNobody;
  bool resize = false;
  RoutingTable::RawRoutee to;
};

// Chooses without any code of the program: the key of a message and a RoutingLogic must not be
// called while a snapshot is read. False if the router has ended.
[[gnu::always_inline]] inline bool Choose(const RoutingTable& table, ActorRef router, MessageTicket& ticket,
                                          Choice& choice) {
  return table.Read(router.generation(), [&](const RoutingTable::View& view) {
    choice = {};
    const uint32_t size = view.size();
    const uint32_t resize_every = view.resize_every();
    if (resize_every != 0) choice.resize = size == 0 || ticket.Take() % resize_every == 0;
    if (size == 0) return;
    choice.kind = Choice::Kind::kOne;
    switch (view.kind()) {
      case RoutingKind::kRoundRobin:
        choice.to = view.routee(RoundRobinRoutee(size, ticket.Take()));
        break;
      case RoutingKind::kRandom:
        choice.to = view.routee(RandomRoutee(size, table.RandomOf(ticket.Take())));
        break;
      case RoutingKind::kSmallestMailbox:
        choice.to = view.routee(LeastBusyRoutee(view, size, ticket.Take()));
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
      case RoutingKind::kCustom:
        choice.kind = Choice::Kind::kByLogic;
        break;
    }
  });
}

// Takes the message out of a wrapper, and gives it the sender and the target of the wrapper.
EnvelopePtr Unwrap(EnvelopePtr& inner, const Envelope& outer) {
  inner->set_sender(outer.sender());
  inner->set_target_word(outer.target_word());
  return std::move(inner);
}

absl::Status RouteOn(const RoutingTable& table, ActorRef router, EnvelopePtr message) {
  RoutingKeyResult key;
  if (auto* const keyed = message->TryAs<Keyed>()) {
    key = {true, keyed->hash};
    message = Unwrap(keyed->envelope, *message);
  } else if (auto* const broadcast = message->TryAs<Broadcast>()) {
    AllRoutees all = ReadAll(table, router);
    return SendToAll(router, all.refs, Unwrap(broadcast->envelope, *message));
  }
  MessageTicket ticket(table);
  Choice choice;
  if (!Choose(table, router, ticket, choice)) {
    return LoseRouted(router, std::move(message), DeadLetterReason::kStopped);
  }
  if (choice.resize) [[unlikely]]
    RequestResize(table, router);
  switch (choice.kind) {
    case Choice::Kind::kOne:
      return SendToRoutee(choice.to.ref(), std::move(message));
    case Choice::Kind::kAll:
      return SendToAll(router, ReadAll(table, router).refs, std::move(message));
    case Choice::Kind::kByKey:
      return SendByKey(table, router, std::move(message), key);
    case Choice::Kind::kByLogic:
      return RouteByLogic(table, router, ticket.Take(), key, std::move(message));
    case Choice::Kind::kAsk: {
      ActorWorker* const worker = ActorWorker::Current();
      const ActorRef sender = message->sender();
      if (worker != nullptr && worker->toolbox != nullptr && sender.IsPromise()) {
        try {
          AskRoutees(table, router, sender, std::move(message), *worker->toolbox);
        } catch (...) {
          // The ask fails; the asking actor does not.
          FailAskThatThrew(sender);
        }
      } else {
        // The sender has no reply promise: the router asks in its place.
        SendIntercepted(router, MakeEnvelope<RouteInTurn>(CacheOfThisThread(), sender, std::move(message)));
      }
      return absl::OkStatus();
    }
    case Choice::Kind::kNobody:
      break;
  }
  return LoseRouted(router, std::move(message), DeadLetterReason::kNoRecipient);
}

}  // namespace

void AskRoutees(const RoutingTable& table, ActorRef router, ActorRef promise, EnvelopePtr message,
                RuntimeToolbox& toolbox) {
  RouteeAsk ask{.router = router, .promise = promise, .message = std::move(message), .all = ReadAll(table, router)};
  if (ask.all.plan.kind == RoutingKind::kTailChopping) {
    AskOneByOne(std::move(ask), table.RandomOf(table.NextTicket()), toolbox);
  } else {
    AskAll(std::move(ask), toolbox);
  }
}

absl::Status Route(ActorRef router, EnvelopePtr message) {
  const RoutingTable* const table = RoutingTable::Find(*router.slot());
  const DepthScope scope;
  if (table == nullptr || depth > kMaxDepth) [[unlikely]] {
    return LoseRouted(router, std::move(message), DeadLetterReason::kNoRecipient);
  }
  return RouteOn(*table, router, std::move(message));
}

EnvelopePtr Unwrap(EnvelopePtr message) {
  auto* const routed = message->TryAs<RouteInTurn>();
  return routed == nullptr || routed->envelope == nullptr ? std::move(message) : std::move(routed->envelope);
}

}  // namespace fraktor::inline v0::actor_internal
