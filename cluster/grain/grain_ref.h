// GrainRef<A>: a reference to a grain, wherever it runs, and whether or not it does: it is activated when a message
// comes.
//
//   GrainRef<Account> alice = cluster.Grain<Account>("alice");
//   alice.Tell(Deposit{10});
//   auto asking = alice.Ask(context, GetBalance{}, absl::Seconds(1));        // in an actor
//   absl::StatusOr<Balance> balance = co_await asking;
//
// What an actor does not handle does not compile.
//
// A message is delivered at most once. While it is not known where the grain is, because its node has died, it moves, or
// nobody can activate it now, messages wait, and it is looked for again and again, with growing pauses, until the timeout
// of a question, or ClusterOptions::max_wait for what expects no answer; then a question is answered with a LookupError
// that says what is missing. A message that has not left this node is sent again when the other one has been started
// anew, or is no member any more. One that was on its way may be lost, and is not sent again, since nobody knows
// whether it was handled: then the question ends by its timeout. A question that the grain has not handled when it ends
// by itself goes to its next activation.
//
// What counts as on its way: from the moment in which remoting has written a message into a frame, which it does at once
// while it has a connection to the node. So a question that is asked after a node was killed, and before the connection is
// seen to be broken, ends by its timeout, however long that is, also if its frame has never left this machine. Timeouts of
// questions to grains are therefore a few seconds, and who wants to wait longer asks again, if the question may be handled
// twice.
//
// Grains are not reentrant: while a handler waits (co_await), the grain handles nothing else, unless its actor is told to.
// So a circle of questions, as when alice asks bob, who asks alice, or a grain asks itself, waits for itself and ends by
// the timeout of the innermost question. It is not found out, as that of actors is, since calls go through routers. Tell,
// and answer by a message, where grains depend on each other.
//
// Thread safety: a value.
#ifndef FRAKTOR_CLUSTER_GRAIN_GRAIN_REF_H_
#define FRAKTOR_CLUSTER_GRAIN_GRAIN_REF_H_

#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/ask/internal/ask_source.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/cluster/grain/grain_call.h"
#include "fraktor/cluster/identity/grain_key.h"

namespace fraktor::inline v0 {

// Rewords an error of an ask of a grain. The error of a timeout names the grain, the message, and
// what is known of the grain. Other errors stay as they are. `error` must be an error of this ask
// and not the error in a reply, because a reply may carry the timeout of an ask of the grain.
absl::Status ExplainLateGrain(const absl::Status& error, ActorRef gate, const GrainKey& key,
                              const MessageType* question, absl::Duration timeout);

template <class A>
class GrainRef {
 public:
  GrainRef(ActorRef gate, GrainKey key) : gate_(gate), key_(std::make_shared<const GrainKey>(std::move(key))) {}

  const GrainKey& key() const { return *key_; }

  // The sender is the actor in whose turn this is called, or no one.
  template <class M>
  void Tell(M&& message) const {
    fraktor::Tell(gate_, CallOf(std::forward<M>(message), absl::ZeroDuration()));
  }

  // A future of the answer. `asker` is the context of an actor, or a system.
  template <class Asker, class Q>
  auto Ask(Asker& asker, Q&& question, absl::Duration timeout) const {
    actor_internal::CheckDeclaresReply<Q>();
    using R = ReplyOf<Q>;
    return asker.template Ask<R>(gate_, CallOf(std::forward<Q>(question), timeout), timeout,
                                 ExplainOf<std::decay_t<Q>>(timeout));
  }

  // Waits for the answer, on a thread that is no worker: see ActorSystem::AskAndWait.
  template <class Q>
  auto AskAndWait(ActorSystem& system, Q&& question, absl::Duration timeout) const {
    actor_internal::CheckDeclaresReply<Q>();
    using R = ReplyOf<Q>;
    return system.template AskAndWait<R>(gate_, CallOf(std::forward<Q>(question), timeout), timeout,
                                         ExplainOf<std::decay_t<Q>>(timeout));
  }

  friend bool operator==(const GrainRef& a, const GrainRef& b) { return a.gate_ == b.gate_ && *a.key_ == *b.key_; }

 private:
  // Rewords errors of the ask itself. The error of an ErrorReply stays as it is, also if it is the
  // timeout of another ask.
  template <class Q>
  auto ExplainOf(absl::Duration timeout) const {
    return [gate = gate_, key = key_, timeout](const absl::Status& error) {
      return ExplainLateGrain(error, gate, *key, MessageTypeOf<Q>(), timeout);
    };
  }
  template <class M>
  GrainCall CallOf(M&& message, absl::Duration timeout) const {
    A::Ref::template Check<M>();
    return GrainCall{.key = *key_,
                     .message = MakeEnvelope<std::decay_t<M>>(ActorRef(), std::forward<M>(message)),
                     .is_redirected = false,
                     .hops = 0,
                     .router = {},
                     .wait_until = Instant::InfinitePast(),
                     .timeout = timeout,
                     .ticket = {}};
  }

  ActorRef gate_;
  // Shared with questions, which name it if they are not answered.
  std::shared_ptr<const GrainKey> key_;
};

// Passes a message on to a grain by the gate of this node (Cluster::gate), as if its sender had called it. In turns of an
// actor.
void ForwardToGrain(ActorContext& context, ActorRef gate, const GrainKey& key, EnvelopePtr message);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_GRAIN_GRAIN_REF_H_
