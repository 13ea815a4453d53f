// InvokerMiddleware: code of the program that runs before and after each user message of a pool,
// for logging, rate limits and tests.
//
//   // At most `limit` handlers at a time, also while they wait; an actor beyond that waits a
//   // millisecond.
//   class LimitHandlers : public InvokerMiddleware {
//    public:
//     explicit LimitHandlers(int limit) : free_(limit) {}
//     MiddlewareFlow BeforeReceive(const Interception&) override {
//       if (free_.fetch_sub(1) > 0) return MiddlewareFlow::Continue();
//       free_.fetch_add(1);
//       return MiddlewareFlow::Break(SuspendReason::kRateLimit, ResumeCondition::After(absl::Milliseconds(1)));
//     }
//     void AfterReceive(const Interception&, const absl::Status&) override { free_.fetch_add(1); }
//
//    private:
//     std::atomic<int> free_;
//   };
//
//   ActorSystemOptions options{.config = {.system_name = "shop"}};
//   options.scheduler.dispatchers.default_pool.middleware = {std::make_shared<LimitHandlers>(100)};
//
// The worker calls BeforeReceive in the order of the chain, then the handler, then AfterReceive in
// reverse order for each middleware whose BeforeReceive returned Continue, once each. Break leaves
// the message at the front of the mailbox and suspends the actor until the condition holds; then
// BeforeReceive is called again. If a middleware throws, the actor fails, as if its handler had
// thrown. A middleware sees system messages too (OnSystemMessage), but cannot stop them.
//
// AfterReceive comes when the handler has ended:
// - A coroutine that waits ends in a later turn; other messages may be handled between the two
//   calls if it interleaves. If the actor stops or restarts while it waits, the status is Cancelled.
// - If the handler stashes or forwards its message, AfterReceive is called within that call, with
//   OK. An unstashed message is a new message: BeforeReceive is called again.
// - An actor that is left over when the system is destroyed gets no AfterReceive.
//
// Thread safety: all workers of the pool use one chain at the same time, so a middleware must be
// thread-safe.
#ifndef FRAKTOR_ACTOR_DISPATCH_INVOKER_MIDDLEWARE_H_
#define FRAKTOR_ACTOR_DISPATCH_INVOKER_MIDDLEWARE_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/invoke_result.h"

namespace fraktor::inline v0 {

// A message that is about to be handled or was handled, and its actor.
struct Interception {
  ActorRef actor;
  Envelope& message;
};

class MiddlewareFlow {
 public:
  static MiddlewareFlow Continue() { return MiddlewareFlow(false); }
  // Suspends the actor. WhenCapacityAvailable is only for full mailboxes; here it means an external
  // signal with the key 0.
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

  // `status` is the result of the handler: see the top. It is Aborted if a later middleware
  // returned Break and the message was not handled.
  virtual void AfterReceive(const Interception& at, const absl::Status& status) = 0;

  // A system message, such as a reply or a decision of the supervisor, is about to be handled. The
  // middleware cannot stop it. If it throws, the error is logged, and the actor goes on.
  virtual void OnSystemMessage(const Interception& /*at*/) {}
};

using MiddlewareChain = std::vector<std::shared_ptr<InvokerMiddleware>>;

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_DISPATCH_INVOKER_MIDDLEWARE_H_
