// What is done around each user message: logging, rate limits, tests. Of system messages it only hears.
//
//   class Throttle : public InvokerMiddleware {
//     MiddlewareFlow BeforeReceive(const Interception& at) override {
//       if (bucket_.TryTake()) return MiddlewareFlow::Continue();
//       return MiddlewareFlow::Break(SuspendReason::kRateLimit, ResumeCondition::After(bucket_.next()));
//     }
//     void AfterReceive(const Interception& at, const absl::Status& status) override {}
//   };
//
// BeforeReceive is called in the order of the chain, AfterReceive in reverse, and only for those whose BeforeReceive
// has said Continue. A break leaves the message in the mailbox, in front, and suspends the actor until the condition
// holds: then BeforeReceive is asked again. What a middleware throws is a failure of the actor, as if its handler had
// thrown. A handler that puts its message aside (ActorContext::Stash) has not ended it: there is no AfterReceive, and
// when the message comes back BeforeReceive is asked again.
//
// Thread safety: one chain serves all workers at once, so a middleware must be thread-safe.
#ifndef FRAKTOR_ACTOR_DISPATCH_INVOKER_MIDDLEWARE_H_
#define FRAKTOR_ACTOR_DISPATCH_INVOKER_MIDDLEWARE_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/invoke_result.h"

namespace fraktor::inline v0 {

// A message that is about to be handled, or was.
struct Interception {
  ActorRef actor;
  Envelope& message;
};

class MiddlewareFlow {
 public:
  static MiddlewareFlow Continue() { return MiddlewareFlow(false); }
  // WhenCapacityAvailable is for full mailboxes only, and is taken as an external signal with the key 0.
  static MiddlewareFlow Break(SuspendReason reason, ResumeCondition resume_on) {
    MiddlewareFlow flow(true);
    flow.reason_ = reason;
    flow.resume_on_ = resume_on;
    return flow;
  }

  bool breaks() const { return breaks_; }
  SuspendReason reason() const { return reason_; }
  const ResumeCondition& resume_on() const { return resume_on_; }

 private:
  explicit MiddlewareFlow(bool breaks) : breaks_(breaks) {}

  bool breaks_;
  SuspendReason reason_ = SuspendReason::kUserDefined;
  ResumeCondition resume_on_ = ResumeCondition::ExternalSignal({});
};

class InvokerMiddleware {
 public:
  virtual ~InvokerMiddleware() = default;

  virtual MiddlewareFlow BeforeReceive(const Interception& at) = 0;

  // `status` is what the handler returned; Aborted if a later middleware broke the chain, and the message was not
  // handled.
  virtual void AfterReceive(const Interception& at, const absl::Status& status) = 0;

  // A system message is about to be handled, such as an answer or a verdict. It cannot be held back, and nothing may be
  // thrown.
  virtual void OnSystemMessage(const Interception& /*at*/) {}
};

using MiddlewareChain = std::vector<std::shared_ptr<InvokerMiddleware>>;

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_DISPATCH_INVOKER_MIDDLEWARE_H_
