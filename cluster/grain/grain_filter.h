// GrainCallFilter: what is done around calls of grains: access, limits, audit, figures.
//
//   class OnlyOwners : public GrainCallFilter {
//    public:
//     absl::Status Before(const GrainCallView& call) override {
//       const Withdraw* withdraw = call.As<Withdraw>();
//       if (withdraw == nullptr || withdraw->by == call.key.identity()) return absl::OkStatus();
//       return absl::PermissionDeniedError("an account is its owner's");        // this is what the asker gets
//     }
//     void After(const GrainCallView& call, const GrainCallOutcome& outcome) override {
//       durations_[call.message_type()] += outcome.duration;
//     }
//
//    private:
//     std::map<std::string_view, absl::Duration> durations_;
//   };
//
//   ClusterOptions options{.incoming_filters = {std::make_shared<OnlyOwners>()}};
//
// Outgoing filters (ClusterOptions::outgoing_filters) see the calls that are made on a node, before it is known where
// the grain is. Incoming filters see the calls that come to the grains of a node, from wherever, before they get into
// the grain's mailbox: first those of the cluster, then those of the kind (GrainKind::filters).
//
// Before is called in the order of the chain, After in reverse. The first Before that answers with an error ends the
// call: the grain does not see it, After is called for those that had let it through, and the sender gets the error
// (ErrorReply), with the name of the node before its text if that is not his own; the message is a dead letter.
// What a Before throws is an error too; what an After throws is ignored.
//
// After a question is when its answer has come, whichever handler has sent it, or will not come any more. The answer
// then goes on to the asker, as a copy: a grain with filters answers with messages that can be copied, or the asker gets
// Unimplemented. After a message that is no question is when it has been passed on: nobody knows more. Messages of the
// runtime (PoisonPill, Identify) are not filtered.
//
// Where there are no filters, nothing is done. Otherwise a question costs one more promise and one more message for each
// of the two chains that it passes.
//
// Thread safety: filters run in turns of the node's router, one at a time, and hold up all calls of the node: they do
// not wait. One that is given to several nodes must be thread-safe.
#ifndef FRAKTOR_CLUSTER_GRAIN_GRAIN_FILTER_H_
#define FRAKTOR_CLUSTER_GRAIN_GRAIN_FILTER_H_

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

// A call, as a filter sees it.
struct GrainCallView {
  const GrainKey& key;  // kind and identity
  const MessageType* type = nullptr;
  // Who sent it; of a question, the promise that waits for the answer. No one if it came from outside.
  ActorRef sender = {};
  bool is_question = false;
  // Null in After: it is the grain's by then.
  const void* message = nullptr;

  std::string_view message_type() const { return type->name(); }
  // The message if it is an M and still there; null otherwise.
  template <class M>
  const M* As() const {
    return type == MessageTypeOf<M>() ? static_cast<const M*>(message) : nullptr;
  }
};

// What became of it.
struct GrainCallOutcome {
  // What a later filter refused it with, the error that was answered, or DeadlineExceeded if no answer came in time.
  absl::Status status = absl::OkStatus();
  // From Before.
  absl::Duration duration = absl::ZeroDuration();
  // Null if there is none.
  const Envelope* answer = nullptr;
};

class GrainCallFilter {
 public:
  virtual ~GrainCallFilter() = default;

  virtual absl::Status Before(const GrainCallView& /*call*/) { return absl::OkStatus(); }
  virtual void After(const GrainCallView& /*call*/, const GrainCallOutcome& /*outcome*/) {}
};

using GrainCallFilters = std::vector<std::shared_ptr<GrainCallFilter>>;

// What a router keeps of questions whose filters wait for the answer. Belongs to the turns of one actor.
class FilteredCalls {
 public:
  // So many may wait at one time; one more is refused with ResourceExhausted.
  explicit FilteredCalls(size_t limit) : limit_(limit) {}

  struct Entry {
    absl::Status status = absl::OkStatus();
    // Whether one of the chain has refused it.
    bool is_refused = false;
  };
  // Asks the chain, which lives as long as this. If it lets a question through, the message has another sender from now
  // on, and what is sent to that one comes to OnReply. `timeout` is how long the asker waits; zero: it is no question.
  Entry Enter(ActorContext& context, const GrainCallFilters& chain, const GrainKey& key, Envelope& message,
              absl::Duration timeout);

  // For ActorInstance::OnReply: calls After, and passes the answer on.
  void OnReply(ActorContext& context, ActorRef ask, const absl::StatusOr<Envelope*>& answer);

 private:
  struct Call {
    const GrainCallFilters* chain = nullptr;
    GrainKey key = {};
    const MessageType* type = nullptr;
    ActorRef sender = {};
    Instant begun = {};
  };

  const size_t limit_;
  absl::flat_hash_map<ActorRef, Call> calls_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_GRAIN_GRAIN_FILTER_H_
