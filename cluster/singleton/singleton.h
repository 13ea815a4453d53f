// Singletons: one actor of a kind in the whole cluster, which is always there.
//
//   class Dispatcher : public Actor<Dispatcher, Job> {
//    public:
//     static constexpr std::string_view kGrainKind = "dispatcher";
//     explicit Dispatcher(const GrainContext& grain) : token_(grain.token) {}
//     void On(Context& context, const Job& job) { Do(job, token_); }
//
//    private:
//     const uint64_t token_;
//   };
//
//   ClusterOptions options{.kinds = {SingletonKindOf<Dispatcher>()}};              // where it may run
//   RefOf<Dispatcher> dispatcher = StartSingleton<Dispatcher>(system).value();     // on each node that uses it
//   dispatcher.Tell(Job{7});
//
// A singleton is a grain with one identity that nobody has to call: each node on which StartSingleton was called looks
// after it, and has it activated as soon as there is a member that hosts it, and within a second when it has ended, or
// its node has left or has died, of when that is known. It runs on the oldest member that hosts its kind. So a node that
// joins does not move it, nor one that comes back, which is the youngest then, also if it was the oldest and has come back
// before it was missed (not with a StaticMembership, whose members have no age: there the first by authority has it,
// always); it moves to the next oldest when its node leaves or dies, and its next life begins when the last one has ended.
// What holds for grains holds for it. If all that look after it have gone, it runs on where it is.
//
// Where peers are not trusted (RemoteOptions::untrusted) nobody is told when it ends on a node that lives on. Then it
// is looked for within check_period + identify_period, 11 s by default.
//
// An actor that was not given the reference may call it as the grain that it is: by the Cluster's Grain<A> of the identity
// kSingletonIdentity.
//
// The reference is that of an actor on this node, SingletonProxy, which passes on what it gets, with its sender. While
// the singleton is not there the proxy keeps messages, `max_buffered` of them, and delivers them in order when it is
// there again. Further ones are dead letters (Dropped, kStashFull), and their senders get ResourceExhausted as an
// ErrorReply. What is on its way when a node dies may get lost.
//
// Thread safety: any thread.
#ifndef FRAKTOR_CLUSTER_SINGLETON_SINGLETON_H_
#define FRAKTOR_CLUSTER_SINGLETON_SINGLETON_H_

#include <string_view>

#include "absl/status/statusor.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/typed/typed_actor.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/singleton/singleton_proxy.h"

namespace fraktor::inline v0 {

// The identity that all singletons have.
inline constexpr std::string_view kSingletonIdentity = "singleton";

// For ClusterOptions::kinds, of the nodes that may run it.
template <class A>
GrainKind SingletonKindOf(const PropsOptions& options = {}) {
  GrainKind kind = GrainKindOf<A>(options);
  kind.is_kept = true;
  kind.is_on_oldest = true;
  return kind;
}

// By its key. See StartSingleton.
absl::StatusOr<ActorRef> StartSingletonProxy(ActorSystem& system, const GrainKey& key, const SingletonOptions& options);

// Looks after the singleton from now on, and gives the reference to it. FailedPrecondition if the system is no node of a
// cluster, AlreadyExists if it was called before, InvalidArgument for options without sense.
template <class A>
absl::StatusOr<RefOf<A>> StartSingleton(ActorSystem& system, const SingletonOptions& options = {}) {
  const absl::StatusOr<ActorRef> proxy =
      StartSingletonProxy(system, GrainKey(A::kGrainKind, kSingletonIdentity), options);
  if (!proxy.ok()) return proxy.status();
  return RefOf<A>::Unchecked(*proxy);
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_SINGLETON_SINGLETON_H_
