// RouterStrategy::TailChopping.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/time/time.h"

#include "fraktor/actor/ask/open_promise.h"
#include "fraktor/actor/message/routing_key.h"
#include "fraktor/actor/router/internal/routee_asking.h"
#include "fraktor/actor/router/internal/routing_failure.h"
#include "fraktor/actor/send/internal/promise_sending.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0::actor_internal {

namespace {

struct Chopping {
  ActorRef router;
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
    FailAsk(chopping->promise, chopping->within);
    return;
  }
  Instant next = chopping->deadline;
  if (chopping->asked < chopping->order.size()) {
    const ActorRef routee = chopping->order[chopping->asked++];
    const bool is_last = chopping->asked == chopping->order.size();
    EnvelopePtr one;
    try {
      one = is_last ? std::move(chopping->message) : CopyEnvelope(CacheOfThisThread(), *chopping->message);
    } catch (...) {
      // The other routees cannot be asked, so the ask fails although earlier ones may still reply.
      const absl::Status thrown = ErrorOfThrown();
      chopping->message->set_sender(chopping->promise);
      FailRouting(chopping->router, std::move(chopping->message), "the copy for each routee", thrown).IgnoreError();
      return;
    }
    SendToRoutee(routee, std::move(one)).IgnoreError();
    if (!is_last) next = std::min(next, toolbox.Now() + chopping->interval);
  }
  // An asker with a shorter timeout needs no timer for the end.
  if (next == chopping->deadline && DeadlineOf(chopping->promise) <= chopping->deadline) return;
  // If the toolbox takes no timer, no more routees are asked. The asker has a timeout of its own.
  auto ask_next = [chopping = std::move(chopping), &toolbox]() mutable {
    const ActorRef promise = chopping->promise;
    try {
      AskNext(std::move(chopping), toolbox);
    } catch (...) {
      // A task of the toolbox must not throw, and the sender is not here to learn of it.
      FailAskThatThrew(promise);
    }
  };
  toolbox.ScheduleAt(next, std::move(ask_next)).IgnoreError();
}

}  // namespace

void AskOneByOne(RouteeAsk ask, uint64_t random, RuntimeToolbox& toolbox) {
  RefList& refs = ask.all.refs;
  if (refs.empty() || (refs.size() > 1 && !ask.message->type()->is_copyable())) {
    ask.message->set_sender(ask.promise);
    LoseRouted(ask.router, std::move(ask.message),
               refs.empty() ? DeadLetterReason::kNoRecipient : DeadLetterReason::kNotCopyable)
        .IgnoreError();
    return;
  }
  for (size_t i = refs.size() - 1; i > 0; --i) {
    std::swap(refs[i], refs[static_cast<size_t>(random % (i + 1))]);
    random = HashOfRoutingKey(random + i);
  }
  // The loss of one copy must not fail an ask that goes to other routees as well.
  const bool is_shared = refs.size() > 1;
  ask.message->set_sender(is_shared ? ActorRef(ask.promise.any_slot(), ask.promise.word() | ActorRef::kShared)
                                    : ask.promise);
  const absl::Duration within = absl::Nanoseconds(ask.all.plan.within_ns);
  auto chopping = std::make_unique<Chopping>(Chopping{.router = ask.router,
                                                      .promise = ask.promise,
                                                      .message = std::move(ask.message),
                                                      .order = std::move(refs),
                                                      .deadline = toolbox.Now() + within,
                                                      .within = within,
                                                      .interval = absl::Nanoseconds(ask.all.plan.interval_ns)});
  AskNext(std::move(chopping), toolbox);
}

}  // namespace fraktor::inline v0::actor_internal
