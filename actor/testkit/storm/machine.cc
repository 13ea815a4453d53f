#include "fraktor/actor/testkit/storm/machine.h"

#include <stdexcept>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/testkit/storm/ledger.h"
#include "fraktor/actor/testkit/storm/messages.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor::storm {
namespace {

// Counts the moves, and cannot be copied.
struct Moves {
  std::unique_ptr<int> count = std::make_unique<int>(0);
};

class Machine final : public Fsm<Phase, Moves> {
 public:
  explicit Machine(const std::shared_ptr<Life>& life) : life_(life), counted_(life->world.ledger().instances) {
    ++life_->events.instances;
    StartWith(Phase::kIdle, {});
    const auto handler = [this](ActorContext&, Envelope& message) { return Handle(message); };
    When(Phase::kIdle, handler);
    When(Phase::kBusy, handler, absl::Milliseconds(2));
    When(Phase::kTired, handler, absl::Microseconds(500));
    if (life_->id % 4 == 0) KeepLog(3);
    OnTransition([this](ActorContext&, const Phase&, const Phase&) {
      if (!IsOver() && life_->random.Uniform(64) == 0) throw std::runtime_error("a transition throws");
    });
    OnTermination([this](ActorContext&, const FsmReason&, const Phase&, const Moves&) {
      if (!IsOver() && life_->random.Uniform(8) == 0) throw std::runtime_error("a termination throws");
    });
  }

 private:
  bool IsOver() const { return life_->world.is_over(); }
  Answer MakeAnswer() const { return Answer{life_->world.FreeToken()}; }

  Next Handle(Envelope& message) {
    if (const auto* letter = message.TryAs<Letter>()) return OnMail(*letter, "letter");
    if (const auto* bulky = message.TryAs<Bulky>()) return OnMail(*bulky, "bulky letter");
    if (const auto* urgent = message.TryAs<Urgent>()) return Settled(urgent->token, 1);
    if (const auto* tick = message.TryAs<Tick>()) return Settled(tick->token, 2);
    if (const auto* act = message.TryAs<Act>()) return Settled(act->token, act->seed);
    if (const auto* question = message.TryAs<Question>()) {
      life_->CheckPlace(question->place, question->token, "ask");
      const uint64_t draw = question->seed % 8;
      if (draw == 0) return Settled(question->token, question->seed);
      return Settled(question->token, draw).Replying(MakeAnswer());
    }
    if (message.Is<FsmStateTimeout>()) return IsOver() ? Rest() : GoTo(Phase::kIdle);
    if (message.Is<Audit>()) return Rest().Replying(Audited{});
    if (message.Is<Calm>()) return Rest();
    return Unhandled();
  }

  template <class Mail>
  Next OnMail(const Mail& mail, std::string_view what) {
    life_->CheckPlace(mail.place, mail.token, what);
    return Settled(mail.token, mail.place.number);
  }

  // The next state follows from `seed`.
  Next Settled(const Token& token, uint64_t seed) {
    token.Handle();
    if (IsOver()) return Rest();
    Random random(MixBits(seed));
    switch (random.Uniform(40)) {
      case 0:
        return Stop();
      case 1:
        return Stop(FsmReason::Failure(absl::AbortedError("a machine fails")));
      case 2:
        throw std::runtime_error("a machine throws");
      case 3:
        return GoTo(Phase::kLost);
      case 4:
      case 5:
        return Stay().ForMax(absl::Microseconds(300));
      case 6:
        SetStateTimeout(Phase::kBusy, random.UniformDuration(absl::Microseconds(300), absl::Milliseconds(4)));
        return Stay();
      default:
        break;
    }
    Moves moves;
    *moves.count = *data().count + 1;
    return GoTo(static_cast<Phase>(random.Uniform(3))).Using(std::move(moves));
  }

  // Without a timeout: nothing happens any more.
  Next Rest() { return Stay().ForMax(absl::InfiniteDuration()); }

  const std::shared_ptr<Life> life_;
  const Counted counted_;
};

}  // namespace

PropsPtr MakeMachine(const std::shared_ptr<Life>& life, const PropsOptions& options) {
  life->class_name = "a machine";
  return MakeProps<Machine>(options, life);
}

}  // namespace fraktor::storm
