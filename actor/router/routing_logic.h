// RoutingLogic: a routing strategy that a program writes itself.
//
//   // Sends two messages of three to the first routee.
//   class FavorFirst final : public RoutingLogic {
//    public:
//     RoutingChoice Choose(const RoutingCall& call) const override {
//       const size_t others = call.routees().size() - 1;
//       if (others == 0 || call.ticket() % 3 != 0) return RoutingChoice::One(0);
//       return RoutingChoice::One(1 + call.random() % others);
//     }
//   };
//
//   PoolOptions options{.strategy = RouterStrategy::Using<FavorFirst>(), .size = 4};
//
// RouterStrategy, PoolOptions and SpawnPool are in router.h, the load of a routee in routee_load.h;
// all are in the target @fraktor//actor/router.
//
// The router calls Choose for each message that it routes, except those that are wrapped in a
// Broadcast. The call runs on the thread of the sender. Many threads may call it at the same time.
// It must be fast and must not block. It may read any state that is safe to share (atomics). A
// logic that only uses its RoutingCall needs no state.
//
// Life time: all routers of one strategy share one logic object. It survives restarts of a router.
// It is destroyed after the last strategy, recipe and router that use it have ended, on the thread
// that releases it last, which may be a sender.
//
// Errors: if Choose returns a number that no routee has, or throws, the message becomes a dead
// letter (DeadLetterReason::kNoRecipient), an asker receives an error with the reason, and the
// router logs a warning: for the first failure, the second, the fourth, the eighth and so on. The
// router itself does not fail.
//
// Cost: one virtual call and two atomic operations on a shared counter for each message. The
// built-in strategies of router_strategy.h do not pay for it.
#ifndef FRAKTOR_ACTOR_ROUTER_ROUTING_LOGIC_H_
#define FRAKTOR_ACTOR_ROUTER_ROUTING_LOGIC_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

// The input of one decision. It is valid during the call of Choose.
class RoutingCall {
 public:
  struct Fields {
    const Envelope& message;
    absl::Span<const ActorRef> routees;
    uint64_t ticket = 0;
    uint64_t random = 0;
    std::optional<uint64_t> key = std::nullopt;
  };
  explicit RoutingCall(const Fields& fields) : fields_(fields) {}

  // The message; `call.message().TryAs<Get>()` is null if it is of another type.
  const Envelope& message() const { return fields_.message; }
  // The routees at this time. There is at least one.
  absl::Span<const ActorRef> routees() const { return fields_.routees; }
  // The number of the message: 0 for the first one that the router routes, then 1 and so on. A
  // number may be missing, but no two messages have the same one.
  uint64_t ticket() const { return fields_.ticket; }
  // A random number, which follows from the ticket and the toolbox: runs of a simulation repeat it.
  uint64_t random() const { return fields_.random; }
  // The hash of the key: that of a Keyed (router_messages.h), or of the RoutingKey() of the message
  // (actor/message/routing_key.h). Nothing if the message has neither.
  std::optional<uint64_t> key() const { return fields_.key; }

 private:
  const Fields fields_;
};

// The output of one decision: numbers of RoutingCall::routees().
class RoutingChoice {
 public:
  enum class Kind : uint8_t { kOne, kSeveral, kAll, kNobody };

  static RoutingChoice One(size_t routee) { return RoutingChoice(Kind::kOne, routee); }
  // The message must be copyable if there is more than one. A routee whose number stands there
  // twice gets the message twice. An empty list means Nobody.
  static RoutingChoice Several(std::vector<size_t> routees) {
    RoutingChoice choice(Kind::kSeveral, 0);
    choice.several_ = std::move(routees);
    return choice;
  }
  // As RouterStrategy::Broadcasting: the message must be copyable if there is more than one routee.
  static RoutingChoice All() { return RoutingChoice(Kind::kAll, 0); }
  // The message becomes a dead letter (DeadLetterReason::kNoRecipient).
  static RoutingChoice Nobody() { return RoutingChoice(Kind::kNobody, 0); }

  Kind kind() const { return kind_; }
  size_t one() const { return one_; }
  const std::vector<size_t>& several() const { return several_; }

 private:
  RoutingChoice(Kind kind, size_t one) : kind_(kind), one_(one) {}

  Kind kind_;
  size_t one_;
  std::vector<size_t> several_;
};

class RoutingLogic {
 public:
  RoutingLogic() = default;
  RoutingLogic(const RoutingLogic&) = delete;
  RoutingLogic& operator=(const RoutingLogic&) = delete;
  virtual ~RoutingLogic() = default;

  // See the top for threads and errors.
  virtual RoutingChoice Choose(const RoutingCall& call) const = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_ROUTER_ROUTING_LOGIC_H_
