// SingletonProxy: the actor of a node that stands for a singleton, and looks after it: see singleton.h.
//
// Each identify_period, and whenever members have come or gone, so also when its own node has joined, while it does not
// know where the singleton is, it asks the grain to identify itself, which activates it. From the answer on it
// watches the singleton, and looks for it each check_period: where peers may not watch each other
// (RemoteOptions::untrusted) nobody tells it that the singleton has ended. Messages go as calls of the grain, not to the
// actor that answered: so none is lost when the singleton is handed over.
//
//   ActorRef dispatcher = StartSingletonProxy(system, GrainKey("dispatcher", kSingletonIdentity), {}).value();
//   Tell(dispatcher, Job{7});                        // waits in the proxy until the singleton is there
//
// Thread safety: an actor.
#ifndef FRAKTOR_CLUSTER_SINGLETON_SINGLETON_PROXY_H_
#define FRAKTOR_CLUSTER_SINGLETON_SINGLETON_PROXY_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

struct SingletonOptions {
  // Messages that the proxy of a node keeps while the singleton is not there.
  size_t max_buffered = 1000;
  // How often it is looked for then.
  absl::Duration identify_period = absl::Seconds(1);
  // How often it is looked for while it is there, in case it has ended and nobody has told: then it is activated again
  // within check_period + identify_period.
  absl::Duration check_period = absl::Seconds(10);
};

class SingletonProxy final : public ActorInstance {
 public:
  // The cluster outlives it.
  SingletonProxy(Cluster* cluster, GrainKey key, const SingletonOptions& options);

  absl::Status PreStart(ActorContext& context) override;
  absl::Status Receive(ActorContext& context, Envelope& message) override;
  absl::Status OnReply(ActorContext& context, ActorRef ask, absl::StatusOr<Envelope*> answer) override;
  void PostStop(ActorContext& context) override;

 private:
  struct Look {};
  struct MembersChanged {};
  struct AnswersDue {};
  struct Gone {
    ActorRef actor;
    friend bool operator==(const Gone&, const Gone&) = default;
  };
  struct Buffered {
    EnvelopePtr message;
    Instant until;  // then it is answered that the singleton is not there
  };

  void LookFor(ActorContext& context);
  void WarnOfNoHosts(ActorContext& context);
  void OnFound(ActorContext& context, ActorRef singleton);
  // If it cannot even be started, those who have asked hear so at once.
  void OnNotFound(ActorContext& context, const absl::Status& why);
  void PassOn(ActorContext& context, EnvelopePtr message);
  void Buffer(ActorContext& context);
  void SetAnswersDue(ActorContext& context, Instant at);
  // Answers questions whose time is nearly over, with what is missing.
  void OnAnswersDue(ActorContext& context);
  std::string NotThere() const;
  absl::Status WhyNotThere() const;
  void Refuse(ActorContext& context, const Envelope& question, const absl::Status& why) const;
  void Drop(ActorContext& context, const Envelope& message, DeadLetterReason reason) const;

  Cluster* const cluster_;
  const GrainKey key_;
  const SingletonOptions options_;
  // No one while it is not known.
  ActorRef singleton_ = {};
  uint64_t question_ = 0;  // the last Identify
  uint64_t outdated_ = 0;  // the last one whose answer does not count
  // The numbers of the Identify messages that have no reply yet, by their asks. Each ask ends at
  // its timeout at the latest.
  absl::flat_hash_map<ActorRef, uint64_t> asks_ = {};
  Instant asked_at_ = Instant::InfinitePast();
  std::deque<Buffered> buffered_ = {};
  Instant answers_due_at_ = Instant::InfiniteFuture();
  absl::Status why_not_found_ = absl::OkStatus();  // the last answer to an Identify
  Instant warned_at_ = Instant::InfinitePast();
  EventSubscription topologies_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_SINGLETON_SINGLETON_PROXY_H_
