#include "fraktor/actor/testkit/storm/citizens.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/dispatch/dispatcher_choice.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/mailbox/overflow/overflow_policy.h"
#include "fraktor/actor/mailbox/overflow/overflow_strategy.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/pattern/behaviors.h"
#include "fraktor/actor/testkit/storm/machine.h"
#include "fraktor/actor/testkit/storm/person.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::storm {
namespace {

// The way to the state of an actor's life: the recipe has it, or a routee makes it.
struct LifeSource {
  World* world = nullptr;
  std::shared_ptr<Life> life;
  // For the life that a routee makes.
  std::string mailbox_text;
  bool is_fifo = true;

  std::shared_ptr<Life> Get() const {
    if (life != nullptr) return life;
    auto own = std::make_shared<Life>(*world);
    own->is_anonymous = true;
    own->mailbox_text = mailbox_text;
    own->is_fifo = is_fifo;
    return own;
  }
};

// An untyped actor.
class Citizen final : public BehaviorActor, private Moods {
 public:
  explicit Citizen(const LifeSource& source) : person_(*this, source.Get()) {}

  absl::Status PreStart(ActorContext& context) override { return person_.PreStart(context); }
  void PostStop(ActorContext& context) override { person_.PostStop(context); }
  absl::Status PreRestart(ActorContext& context, const absl::Status& reason, Envelope*) override {
    return person_.PreRestart(context, reason);
  }
  const SupervisorStrategy& supervision() const override { return person_.supervision(); }
  SupervisionDirective OnChildFailure(ActorContext&, const Failure& failure) override {
    return person_.OnChildFailure(failure);
  }
  absl::Status OnReply(ActorContext& context, ActorRef ask, absl::StatusOr<Envelope*> answer) override {
    return person_.OnReply(context, ask, answer);
  }

 private:
  absl::Status ReceiveInitially(ActorContext& context, Envelope& message) override {
    return person_.Receive(context, message);
  }
  absl::Status ReceiveInAnotherMood(ActorContext& context, Envelope& message) {
    return person_.Receive(context, message);
  }
  void ChangeMood(ActorContext&, Change change) override {
    switch (change) {
      case Change::kBecome:
        return Become(&Citizen::ReceiveInAnotherMood);
      case Change::kBecomeStacked:
        return BecomeStacked(&Citizen::ReceiveInAnotherMood).IgnoreError();
      case Change::kUnbecome:
        Unbecome();
    }
  }

  Person person_;
};

#define FRAKTOR_STORM_MESSAGES                                                                                     \
  Letter, Bulky, Urgent, Act, Question, Answer, Tick, Piped, WatchNote, Gust, Services, MachineState, MachineMove, \
      Calm, Audit
using Context = TypedContext<FRAKTOR_STORM_MESSAGES>;

// Waits for some time, or for another actor, in the middle of a handler.
Task<void> WaitAWhile(Person* person, Context* context, uint64_t seed, absl::Status* outcome) {
  const Counted frame(person->world().ledger().frames);
  Random random(MixBits(seed));
  if (random.Bernoulli(0.5)) {
    auto delay = context->Delay(random.UniformDuration(absl::ZeroDuration(), absl::Milliseconds(2)));
    static_cast<void>(co_await delay);
  } else {
    World& world = person->world();
    const Counted open(world.ledger().open_asks);
    const Acquaintance other = world.Anybody(random);
    auto asking =
        context->Ask<Answer>(other.ref, Question{world.FreeToken(), person->life().NextPlace(other), random.Next()},
                             random.UniformDuration(absl::Milliseconds(1), absl::Milliseconds(20)));
    absl::StatusOr<Answer> answer = co_await asking;
    *outcome = answer.status();
  }
}

// The handlers of a typed actor, which its behaviours have too. `Handling` is Task or
// InterleavingTask.
template <class Self, template <class> class Handling>
class Handlers {
 public:
  absl::Status On(Context& context, Letter& letter) { return person().On(context, letter); }
  absl::Status On(Context& context, Bulky& bulky) { return person().On(context, bulky); }
  absl::Status On(Context& context, Urgent& urgent) { return person().On(context, urgent); }
  absl::Status On(Context& context, Answer& answer) { return person().On(context, answer); }
  absl::Status On(Context& context, Tick& tick) { return person().On(context, tick); }
  absl::Status On(Context& context, Piped& piped) { return person().On(context, piped); }
  absl::Status On(Context& context, const WatchNote& note) { return person().On(context, note); }
  absl::Status On(Context& context, const Gust& gust) { return person().On(context, gust); }
  absl::Status On(Context& context, const Services& services) { return person().On(context, services); }
  absl::Status On(Context& context, const MachineState& machine) { return person().On(context, machine); }
  absl::Status On(Context& context, const MachineMove& move) { return person().On(context, move); }
  absl::Status On(Context& context, const Calm& calm) { return person().On(context, calm); }
  absl::Status On(Context& context, const Terminated& terminated) { return person().On(context, terminated); }
  absl::Status On(Context& context, const ReceiveTimeout& timeout) { return person().On(context, timeout); }
  absl::Status On(Context& context, const ActorIdentity& identity) { return person().On(context, identity); }
  absl::Status On(Context& context, const ErrorReply& error) { return person().On(context, error); }
  Audited On(Context& context, const Audit&) {
    person().CheckWaits(context);
    return {};
  }

  Handling<absl::Status> On(Context& context, Act& act) {
    const Counted frame(person().world().ledger().frames);
    const uint64_t seed = act.seed;
    absl::Status status = person().On(context, act);
    if (!status.ok()) co_return status;
    if (!person().world().is_over() && seed % 4 == 0) {
      Task<void> waiting = WaitAWhile(&person(), &context, seed, &status);
      static_cast<void>(co_await waiting);
      const Person::Inside inside(person());
      // The members of the behaviour still exist, also if another one has replaced it meanwhile.
      self().Touch();
      // The error of another actor becomes this one's failure.
      if (seed % 16 == 0) co_return status;
    }
    co_return absl::OkStatus();
  }

  Handling<Answer> On(Context& context, Question& question) {
    const Counted frame(person().world().ledger().frames);
    const uint64_t seed = question.seed;
    person().CheckQuestion(question);
    if (!person().world().is_over()) {
      if (seed % 8 == 0) throw std::runtime_error("an ask that is too much");
      if (seed % 8 == 1) co_return absl::UnavailableError("an ask without an answer");
      if (seed % 8 == 2) {
        absl::Status outcome;
        Task<void> waiting = WaitAWhile(&person(), &context, seed, &outcome);
        static_cast<void>(co_await waiting);
        self().Touch();
      }
    }
    co_return Answer{person().world().FreeToken()};
  }

 protected:
  Self& self() { return static_cast<Self&>(*this); }
  Person& person() { return self().ThePerson(); }
};

template <template <class> class Handling>
class TypedCitizen final : public Actor<TypedCitizen<Handling>, FRAKTOR_STORM_MESSAGES>,
                           public Handlers<TypedCitizen<Handling>, Handling>,
                           private Moods {
 public:
  explicit TypedCitizen(const LifeSource& source) : person_(*this, source.Get()) {
    person_.life().is_typed = true;
    person_.life().class_name =
        std::is_same_v<Handling<void>, Task<void>> ? "typed and waiting" : "typed and interleaving";
  }

  absl::Status PreStart(Context& context) {
    World* const world = &person_.world();
    context.template Adapt<Parcel>([world](Parcel&& parcel) {
      if (!world->is_over() && parcel.place.number % 128 == 9) {
        parcel.token.Handle();
        throw std::runtime_error("an adapter throws");
      }
      return Letter{std::move(parcel.token), parcel.place};
    });
    return person_.PreStart(context);
  }
  void PostStop(Context& context) { person_.PostStop(context); }
  absl::Status PreRestart(Context& context, const absl::Status& reason, Envelope*) {
    return person_.PreRestart(context, reason);
  }
  SupervisionDirective OnChildFailure(const Failure& failure) { return person_.OnChildFailure(failure); }

  Person& ThePerson() { return person_; }
  void Touch() { ++touches_; }

 private:
  // Another behaviour with the same handlers, and state of its own.
  class Mood : public Handlers<Mood, Handling> {
   public:
    explicit Mood(TypedCitizen* of) : of_(*of), touches_(std::make_unique<int>(0)) {}
    Person& ThePerson() { return of_.person_; }
    void Touch() { ++*touches_; }

   private:
    TypedCitizen& of_;
    const std::unique_ptr<int> touches_;
  };

  void ChangeMood(ActorContext& context, Change change) override {
    Context& typed = Context::Of(context);
    switch (change) {
      case Change::kBecome:
        return typed.Become<Mood>(this);
      case Change::kBecomeStacked:
        // The behaviour above the limit is refused.
        return typed.template BecomeStacked<Mood>(this).IgnoreError();
      case Change::kUnbecome:
        typed.Unbecome();
    }
  }

  Person person_;
  int64_t touches_ = 0;
};

template <class T>
using Waits = Task<T>;
template <class T>
using Interleaves = InterleavingTask<T>;

// Watches the actors that threads spawn with SpawnWatched. Nobody meets it, so it does not end.
class Guard final : public ActorInstance {
 public:
  explicit Guard(World* world) : world_(*world) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (const auto* terminated = message.TryAs<Terminated>()) {
      world_.EndGuarded(terminated->actor);
      return absl::OkStatus();
    }
    if (message.Is<Calm>()) return absl::OkStatus();
    if (!message.Is<Audit>()) return context.Unhandled(message);
    context.Reply(Audited{});
    return absl::OkStatus();
  }

 private:
  World& world_;
};

class Steward final : public ActorInstance {
 public:
  Steward(World* world, uint64_t seed) : world_(*world), random_(seed) {}

  absl::Status PreStart(ActorContext& context) override {
    SpawnCitizen(world_, random_, context).IgnoreError();
    return absl::OkStatus();
  }
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (message.Is<Calm>()) return absl::OkStatus();
    if (!message.Is<Audit>()) return context.Unhandled(message);
    context.Reply(Audited{});
    return absl::OkStatus();
  }
  SupervisionDirective OnChildFailure(ActorContext&, const Failure&) override { return Restart(); }

 private:
  World& world_;
  Random random_;
};

// Gives all answers in turn, also those that it must not give, and throws at times.
class MixedPolicy : public OverflowPolicy {
 public:
  explicit MixedPolicy(OverflowNeeds needs) : needs_(needs) {}

  std::string_view name() const noexcept override { return "MixedPolicy"; }
  OverflowNeeds needs() const noexcept override { return needs_; }
  OverflowDecision Decide(const OverflowCase&) const override {
    switch (asked_.fetch_add(1, std::memory_order_relaxed) % 7) {
      case 0:
        return OverflowDecision::Reject("it is its turn");
      case 1:
        return OverflowDecision::DropNewest();
      case 2:
        return OverflowDecision::DeadLetter();
      case 3:
        throw std::runtime_error("it is its turn");
      case 4:
        return OverflowDecision::Hold();
      default:
        return OverflowDecision::DropOldest();
    }
  }
  bool MayReplace(const Envelope&, const Envelope&) const override {
    return asked_.fetch_add(1, std::memory_order_relaxed) % 3 != 0;
  }

 private:
  const OverflowNeeds needs_;
  mutable std::atomic<uint32_t> asked_{0};  // Relaxed: it only chooses.
};

MailboxOptions RandomMailbox(Random& random, Life* life) {
  MailboxOptions options;
  switch (random.Uniform(8)) {
    case 0:
      options.order = MessageOrder::kControlFirst;
      break;
    case 1:
      options.order = MessageOrder::kPriority;
      // The messages that end the storm come last, so that they find everything done.
      options.priority = [](const Envelope& envelope) {
        if (envelope.Is<Letter>()) return static_cast<int>(envelope.As<Letter>().place.number % 3);
        return envelope.Is<Audit>() ? 100 : envelope.Is<Calm>() ? 99 : 1;
      };
      break;
    default:
      break;
  }
  if (life != nullptr) life->is_fifo = options.order == MessageOrder::kFifo;
  if (random.Uniform(3) != 0) return options;
  if (life != nullptr) life->is_limited = true;
  options.capacity = 2 + random.Uniform(20);
  const uint64_t overflow = random.Uniform(6);
  if (overflow == 5) {
    const uint64_t needs = random.Uniform(options.order == MessageOrder::kFifo ? 3 : 2);
    options.overflow_policy = std::make_shared<MixedPolicy>(static_cast<OverflowNeeds>(needs));
  } else {
    options.overflow = static_cast<OverflowStrategy>(overflow);
  }
  if (options.overflow == OverflowStrategy::kDropOldest && options.order != MessageOrder::kFifo) {
    options.overflow = OverflowStrategy::kDropNewest;
  }
  if (random.Bernoulli(0.3)) options.reserve_for_system = 1;
  options.push_timeout = absl::Milliseconds(static_cast<int64_t>(random.Uniform(4)));
  return options;
}

DispatcherSelector RandomDispatcher(World& world, Random& random) {
  const uint64_t draw = random.Uniform(40);
  if (draw == 0 && !world.Skips("pinned actors")) return DispatcherChoice::kPinned;
  if (draw <= 2) return DispatcherChoice::kSystem;
  if (draw <= 5) return world.Skips("named dispatchers") ? DispatcherSelector() : kFewWorkers;
  if (draw <= 7) return world.Skips("named dispatchers") ? DispatcherSelector() : kBlockingWorkers;
  return draw <= 9 ? DispatcherChoice::kDefault : DispatcherChoice::kAutomatic;
}

std::string TextOf(const PropsOptions& options) {
  static constexpr const char* kPools[] = {"automatic", "system", "pinned", "default"};
  const MailboxOptions& mailbox = options.mailbox;
  const DispatcherSelector& pool = options.dispatcher;
  std::string text =
      absl::StrCat("dispatcher ", pool.is_named() ? pool.name() : kPools[static_cast<size_t>(pool.choice())], ", ",
                   ToAbsl(ToString(mailbox.order)), " mailbox");
  if (!mailbox.bounded()) return text;
  absl::StrAppend(&text, " of ", mailbox.user_capacity(), " messages, overflow policy ",
                  ToAbsl(mailbox.policy().name()), " with needs ", static_cast<int>(mailbox.policy().needs()),
                  ", push timeout ", absl::FormatDuration(mailbox.push_timeout));
  return text;
}

PropsPtr MakeFrom(const LifeSource& source, const PropsOptions& options, Random& random) {
  switch (random.Uniform(3)) {
    case 0:
      return MakeTypedProps<TypedCitizen<Waits>>(options, source);
    case 1:
      return MakeTypedProps<TypedCitizen<Interleaves>>(options, source);
    default:
      return MakeProps<Citizen>(options, source);
  }
}

}  // namespace

PropsPtr MakeCitizen(World& world, Random& random) {
  LifeSource source{.world = &world, .life = std::make_shared<Life>(world), .mailbox_text = {}};
  PropsOptions options;
  options.dispatcher = RandomDispatcher(world, random);
  options.mailbox = RandomMailbox(random, source.life.get());
  source.life->may_block =
      options.dispatcher == DispatcherChoice::kPinned || options.dispatcher.name() == kBlockingWorkers;
  source.life->mailbox_text = TextOf(options);
  if (random.Uniform(12) == 0 && !world.Skips("machines")) return MakeMachine(source.life, options);
  return MakeFrom(source, options, random);
}

PropsPtr MakeRoutee(World& world, Random& random) {
  PropsOptions options;
  options.mailbox = RandomMailbox(random, nullptr);
  options.mailbox.order = MessageOrder::kFifo;
  options.mailbox.priority = {};
  return MakeFrom({.world = &world, .life = nullptr, .mailbox_text = TextOf(options)}, options, random);
}

PropsPtr MakeSupervised(World& world, Random& random) {
  PropsOptions options;
  options.mailbox = RandomMailbox(random, nullptr);
  // The audit of the supervisor comes here too.
  if (options.mailbox.bounded()) options.mailbox.capacity += 2;
  return MakeFrom({.world = &world, .life = nullptr, .mailbox_text = TextOf(options), .is_fifo = false}, options,
                  random);
}

PropsPtr MakeGuard(World& world) { return MakeProps<Guard>({}, &world); }

PropsPtr MakeSteward(World& world, Random& random) { return MakeProps<Steward>({}, &world, random.Next()); }

std::string RandomName(Random& random) {
  const uint64_t draw = random.Uniform(24);
  return draw < 12 ? absl::StrCat("c", draw) : std::string();
}

void CheckSpawned(World& world, const absl::Status& status) {
  if (status.ok() || status.code() == absl::StatusCode::kResourceExhausted) return;
  const auto kind = ErrorKindOf<ActorErrorKind>(status);
  if (kind == ActorErrorKind::kNameTaken || kind == ActorErrorKind::kTerminating) return;
  world.ledger().Violate("a spawn works, or says why not", status.ToString());
}

absl::StatusOr<ActorRef> SpawnCitizen(World& world, Random& random, ActorContext& parent) {
  if (!world.HasRoom()) return absl::ResourceExhaustedError("enough actors live");
  absl::StatusOr<ActorRef> child = parent.TrySpawn(*MakeCitizen(world, random), RandomName(random));
  CheckSpawned(world, child.status());
  if (child.ok()) world.Meet(random, {*child, &parent.system() != &world.system()});
  return child;
}

absl::StatusOr<ActorRef> SpawnCitizen(World& world, Random& random, ActorSystem& system) {
  if (!world.HasRoom()) return absl::ResourceExhaustedError("enough actors live");
  absl::StatusOr<ActorRef> top = system.TrySpawn(*MakeCitizen(world, random), RandomName(random));
  CheckSpawned(world, top.status());
  if (top.ok()) world.Meet(random, {*top, &system != &world.system()});
  return top;
}

}  // namespace fraktor::storm
