#include "fraktor/actor/timer/timers.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/internal/cell_attachment.h"
#include "fraktor/actor/dispatch/internal/message_invoker.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/supervision/failure_cause.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

using actor_internal::AttachmentOf;
using actor_internal::CellAttachment;
using actor_internal::EnqueueIntercepted;
using actor_internal::FindAttachment;
using actor_internal::MessageInvoker;

namespace {

// From the toolbox to the actor, as a system message: no mailbox limit and no suspension delays it.
struct TimerDue {
  uint64_t serial;
  uint64_t periods;
};

std::string Title(std::string_view key) { return absl::StrCat("timer \"", ToAbsl(key), "\""); }

}  // namespace

// The timers of one actor. The envelope identifies a message on its way through the mailbox. The
// message counts if its timer still exists when it arrives.
class TimersBase::Table final : public CellAttachment {
 public:
  ~Table() override { CancelAll(); }

  absl::Status Start(ActorContext& context, std::string_view key, NewTimer timer) {
    RuntimeToolbox* const toolbox = ActorContext::worker().toolbox;
    if (toolbox == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(
          Title(key),
          " was not started: the worker has no toolbox, and so no timers; run the actor in an ActorSystem"));
    }
    const auto found = timers_.find(key);
    if (found == timers_.end() && timers_.size() >= limit_) {
      return absl::ResourceExhaustedError(absl::StrCat(Title(key), " was not started: ", context.Path(), " has ",
                                                       timers_.size(),
                                                       " timers already; cancel some, or raise Timers::SetLimit"));
    }
    const uint64_t serial = next_serial_++;
    FRAKTOR_ASSIGN_OR_RETURN(const TimerId id, Arm(*toolbox, context.self(), serial, timer));
    toolbox_ = toolbox;
    if (found != timers_.end()) Erase(found);
    const auto added = timers_.try_emplace(std::string(key)).first;
    added->second = {.timer = std::move(timer), .serial = serial, .id = id};
    by_serial_.try_emplace(serial, added);
    return absl::OkStatus();
  }

  bool Cancel(std::string_view key) {
    const auto found = timers_.find(key);
    if (found == timers_.end()) return false;
    Erase(found);
    return true;
  }

  void CancelAll() {
    while (!timers_.empty()) Erase(timers_.begin());
  }

  bool IsActive(std::string_view key) const { return timers_.find(key) != timers_.end(); }
  size_t size() const { return timers_.size(); }
  void SetLimit(size_t limit) { limit_ = limit; }

  // Before the hooks, which must not see timers that can no longer fire; and after them, because a
  // hook may have started one.
  void BeforeRestart(ActorContext& /*context*/) override { CancelAll(); }
  void OnRestart(ActorContext& /*context*/) override { CancelAll(); }
  void BeforeStop(ActorContext& /*context*/) override { CancelAll(); }
  void OnStop(ActorContext& /*context*/) override { CancelAll(); }

  bool OnSystemMessage(ActorContext& context, Envelope& message) override {
    const auto* due = message.TryAs<TimerDue>();
    if (due == nullptr) return false;
    const auto found = by_serial_.find(due->serial);
    if (found == by_serial_.end()) return true;  // The timer was cancelled meanwhile.
    Active& active = found->second->second;
    NewTimer& timer = active.timer;
    if (!timer.is_periodic) {
      Enqueue(context, std::move(timer.message), active);
      return true;
    }
    // The limit protects an actor that cannot keep up.
    const uint64_t room = kMaxCatchUp - std::min(kMaxCatchUp, active.queued);
    // The copy constructor is code of the program.
    FailureCause cause = FailureCause::kReturned;
    absl::Status copied = MessageInvoker::Call(
        "the copy of a timer's message",
        [&] {
          for (uint64_t i = 0; i < std::min(due->periods, room); ++i) {
            Enqueue(context, CopyEnvelope(ActorContext::worker().cache(), *timer.message), active);
          }
          return absl::OkStatus();
        },
        &cause);
    if (!copied.ok()) MessageInvoker::Fail(ActorContext::worker().turn(), copied, cause, nullptr);
    return true;
  }

  bool OnInterceptedMessage(ActorContext& /*context*/, Envelope*& envelope) override {
    const auto queued = queued_.find(envelope);
    if (queued == queued_.end()) return false;
    const auto found = by_serial_.find(queued->second);
    queued_.erase(queued);
    if (found == by_serial_.end()) {
      const EnvelopePtr dropped(std::exchange(envelope, nullptr));
      return true;
    }
    --found->second->second.queued;
    const NewTimer& timer = found->second->second.timer;
    if (!timer.is_intercepted) envelope->set_target_word(ActorContext::worker().turn_state.word);
    // The handler may start another timer under the key.
    if (!timer.is_periodic) Erase(found->second);
    return true;
  }

 private:
  struct Active {
    NewTimer timer = {};  // The message of a single timer is gone when it is in the mailbox.
    uint64_t serial = 0;
    TimerId id = {};
    uint64_t queued = 0;  // Messages in the mailbox.
  };
  // Ordered, so that the order of cancellation does not depend on a hash.
  using Map = std::map<std::string, Active, std::less<>>;

  static absl::StatusOr<TimerId> Arm(RuntimeToolbox& toolbox, ActorRef self, uint64_t serial, const NewTimer& timer) {
    if (!timer.is_periodic) {
      return toolbox.ScheduleAfter(timer.period.first(), [self, serial] {
        TellSystem(self, MakeEnvelope<TimerDue>(ActorRef(), serial, uint64_t{1}));
      });
    }
    return toolbox.SchedulePeriodic(
        {.period = timer.period.period, .initial_delay = timer.period.first(), .cadence = timer.cadence},
        [self, serial](const TimerFiring& firing) {
          TellSystem(self, MakeEnvelope<TimerDue>(ActorRef(), serial, firing.periods));
        });
  }

  void Enqueue(ActorContext& context, EnvelopePtr message, Active& active) {
    queued_.try_emplace(message.get(), active.serial);
    ++active.queued;
    EnqueueIntercepted(context, std::move(message));
  }

  void Erase(Map::iterator at) {
    toolbox_->CancelTimer(at->second.id);
    by_serial_.erase(at->second.serial);
    timers_.erase(at);
  }

  RuntimeToolbox* toolbox_ = nullptr;  // Set by the first timer.
  size_t limit_ = kDefaultLimit;
  uint64_t next_serial_ = 0;
  Map timers_;
  absl::flat_hash_map<uint64_t, Map::iterator> by_serial_;
  // Messages in the mailbox, with the serials of their timers. They leave through
  // OnInterceptedMessage, or when the actor ends.
  absl::flat_hash_map<const Envelope*, uint64_t> queued_;
};

absl::Status TimersBase::Start(std::string_view key, NewTimer timer) {
  FRAKTOR_RETURN_IF_ERROR(context_.CheckTurn("Timers::Start"));
  FRAKTOR_RETURN_IF_ERROR(timer.is_periodic ? CheckTimerPeriod(Title(key), timer.period)
                                            : CheckTimerDelay(Title(key), timer.period.first()));
  return AttachmentOf<Table>(context_).Start(context_, key, std::move(timer));
}

bool TimersBase::Cancel(std::string_view key) {
  if (!context_.CheckTurn("Timers::Cancel").ok()) return false;
  Table* const table = FindAttachment<Table>(context_);
  return table != nullptr && table->Cancel(key);
}

void TimersBase::CancelAll() {
  if (!context_.CheckTurn("Timers::CancelAll").ok()) return;
  if (Table* const table = FindAttachment<Table>(context_)) table->CancelAll();
}

bool TimersBase::IsActive(std::string_view key) const {
  if (!context_.CheckTurn("Timers::IsActive").ok()) return false;
  const Table* const table = FindAttachment<Table>(context_);
  return table != nullptr && table->IsActive(key);
}

size_t TimersBase::size() const {
  if (!context_.CheckTurn("Timers::size").ok()) return 0;
  const Table* const table = FindAttachment<Table>(context_);
  return table == nullptr ? 0 : table->size();
}

void TimersBase::SetLimit(size_t limit) {
  if (context_.CheckTurn("Timers::SetLimit").ok()) AttachmentOf<Table>(context_).SetLimit(limit);
}

}  // namespace fraktor::inline v0
