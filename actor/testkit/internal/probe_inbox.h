// ProbeInbox: the actor of a probe stores its messages here, and the test takes them.
#ifndef FRAKTOR_ACTOR_TESTKIT_INTERNAL_PROBE_INBOX_H_
#define FRAKTOR_ACTOR_TESTKIT_INTERNAL_PROBE_INBOX_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/testkit/internal/test_monitor.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0::testkit_internal {

// Thread safety: any thread.
class ProbeInbox {
 public:
  explicit ProbeInbox(TestMonitor& monitor) : monitor_(monitor) {}

  void Put(EnvelopePtr message);
  // Null if there is none.
  EnvelopePtr Take();
  size_t size() const;
  void Ignore(const MessageType* type);
  // The types of the first few messages.
  std::string Describe() const;

 private:
  TestMonitor& monitor_;
  mutable Mutex mutex_;
  std::deque<EnvelopePtr> messages_ ABSL_GUARDED_BY(mutex_);
  std::vector<const MessageType*> ignored_ ABSL_GUARDED_BY(mutex_);
};

// A function of the test that the probe runs in its turn.
struct ProbeDo {
  std::function<void(ActorContext&)> what;
};

class ProbeActor final : public ActorInstance {
 public:
  explicit ProbeActor(std::shared_ptr<ProbeInbox> inbox) : inbox_(std::move(inbox)) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (const auto* action = message.TryAs<ProbeDo>()) {
      action->what(context);
    } else {
      inbox_->Put(context.Stash());
    }
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<ProbeInbox> inbox_;
};

}  // namespace fraktor::inline v0::testkit_internal

#endif  // FRAKTOR_ACTOR_TESTKIT_INTERNAL_PROBE_INBOX_H_
