#include "fraktor/actor/testkit/storm/person.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/ask/internal/reply_promise.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/pattern/stash.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/testkit/storm/citizens.h"
#include "fraktor/actor/timer/receive_timeout.h"
#include "fraktor/actor/timer/timers.h"
#include "fraktor/utils/future/task.h"

namespace fraktor::storm {

using actor_internal::MayLive;

namespace {

// Replies in a later turn.
Task<void> ReplyLater(World* world, ActorContext* context, ActorRef asker, absl::Duration after) {
  const Counted frame(world->ledger().frames);
  auto delay = context->Delay(after);
  static_cast<void>(co_await delay);
  context->Tell(asker, Answer{world->FreeToken()});
}

// A number that only this thread has; never 0.
uint64_t ThisThread() {
  static thread_local const char mark = 0;
  return reinterpret_cast<uintptr_t>(&mark);
}

SupervisionDirective Verdict(const Failure& failure) {
  switch (failure.error.code()) {
    case absl::StatusCode::kUnavailable:
      return Resume();
    case absl::StatusCode::kDataLoss:
      return Stop();
    case absl::StatusCode::kOutOfRange:
      return Escalate();
    default:
      return SupervisorStrategy::DecideByDefault(failure);
  }
}

}  // namespace

Person::Inside::Inside(Person& person)
    : person_(person), outer_(person.inside_.exchange(ThisThread(), std::memory_order_relaxed)) {
  if (outer_ != 0 && outer_ != ThisThread()) {
    person_.world().ledger().Violate("one thread at a time is inside an actor", "another thread was inside");
  }
  ++person_.turns_;
  ++person_.life_->events.turns;
}
Person::Inside::~Inside() { person_.inside_.store(outer_, std::memory_order_relaxed); }

Person::Person(Moods& moods, const std::shared_ptr<Life>& life)
    : moods_(moods), life_(life), counted_(life->world.ledger().instances) {
  ++life_->events.instances;
  if (!world().is_over() && life_->random.Uniform(60) == 0) {
    life_->MissReplies();
    throw std::runtime_error("a constructor throws");
  }
}

Person::~Person() = default;

absl::Status Person::PreStart(ActorContext& context) {
  const Inside inside(*this);
  if (world().is_over()) return absl::OkStatus();
  Random& random = life_->random;
  switch (random.Uniform(40)) {
    case 0:
      life_->MissReplies();
      return absl::UnavailableError("a start fails");
    case 1:
      life_->MissReplies();
      throw std::runtime_error("a start throws");
    case 2:
    case 3:
      return SetReceiveTimeout(context, random.UniformDuration(absl::Milliseconds(1), absl::Milliseconds(5)));
    case 4:
    case 5:
      SpawnCitizen(world(), random, context).IgnoreError();
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

absl::Status Person::PreRestart(ActorContext& context, const absl::Status& reason) {
  {
    const Inside inside(*this);
    ForgetChildren(context);
    if (!world().is_over() && life_->random.Uniform(40) == 0) return reason;
  }
  context.StopChildren();
  PostStop(context);
  return absl::OkStatus();
}

void Person::ForgetChildren(ActorContext& context) {
  for (const ActorRef child : context.Children()) {
    const auto found = life_->watched.find(child);
    if (found != life_->watched.end()) found->second = Life::WatchKind::kForgotten;
  }
}

void Person::PostStop(ActorContext& context) {
  const Inside inside(*this);
  if (world().is_over()) return;
  Random& random = life_->random;
  const uint64_t draw = random.Uniform(40);
  if (draw == 0) throw std::runtime_error("an end throws");
  if (draw < 4) {
    const Acquaintance other = world().Anybody(random);
    context.Tell(other.ref, Letter{world().MakeToken(other), life_->NextPlace(other)});
  }
}

SupervisionDirective Person::OnChildFailure(const Failure& failure) {
  const Inside inside(*this);
  if (!world().is_over() && life_->random.Uniform(100) == 0) throw std::runtime_error("a decision throws");
  return supervision().Decide(failure);
}

const SupervisorStrategy& Person::supervision() const {
  static const auto& one = *new SupervisorStrategy({.decider = &Verdict});
  static const auto& all =
      *new SupervisorStrategy({.scope = SupervisionScope::kAllForOne, .max_restarts = 5, .decider = &Verdict});
  static const auto& few = *new SupervisorStrategy({.max_restarts = 2, .window = absl::Seconds(1)});
  static const auto& slow =
      *new SupervisorStrategy({.backoff = {.min = absl::Milliseconds(1), .max = absl::Milliseconds(8)}});
  switch (life_->id % 6) {
    case 0:
      return all;
    case 1:
      return few;
    case 2:
      return slow;
    case 3:
      return SupervisorStrategy::Stopping();
    default:
      return one;
  }
}

absl::Status Person::Receive(ActorContext& context, Envelope& message) {
  if (auto* const letter = message.TryAs<Letter>()) return On(context, *letter);
  if (auto* const bulky = message.TryAs<Bulky>()) return On(context, *bulky);
  if (auto* const urgent = message.TryAs<Urgent>()) return On(context, *urgent);
  if (auto* const act = message.TryAs<Act>()) return On(context, *act);
  if (auto* const question = message.TryAs<Question>()) return On(context, *question);
  if (auto* const answer = message.TryAs<Answer>()) return On(context, *answer);
  if (auto* const tick = message.TryAs<Tick>()) return On(context, *tick);
  if (auto* const piped = message.TryAs<Piped>()) return On(context, *piped);
  if (const auto* note = message.TryAs<WatchNote>()) return On(context, *note);
  if (const auto* gust = message.TryAs<Gust>()) return On(context, *gust);
  if (const auto* services = message.TryAs<Services>()) return On(context, *services);
  if (const auto* machine = message.TryAs<MachineState>()) return On(context, *machine);
  if (const auto* move = message.TryAs<MachineMove>()) return On(context, *move);
  if (const auto* calm = message.TryAs<Calm>()) return On(context, *calm);
  if (message.Is<Audit>()) {
    CheckWaits(context);
    context.Reply(Audited{});
    return absl::OkStatus();
  }
  if (const auto* terminated = message.TryAs<Terminated>()) return On(context, *terminated);
  if (const auto* timeout = message.TryAs<ReceiveTimeout>()) return On(context, *timeout);
  if (const auto* identity = message.TryAs<ActorIdentity>()) return On(context, *identity);
  if (const auto* error = message.TryAs<ErrorReply>()) return On(context, *error);
  return context.Unhandled(message);
}

absl::Status Person::OnReply(ActorContext&, ActorRef ask, absl::StatusOr<Envelope*> answer) {
  const Inside inside(*this);
  if (life_->asked.erase(ask) == 0 && !life_->is_anonymous && !life_->may_have_missed_replies) {
    world().ledger().Violate("every ask ends once", "a reply came for an ask that was not open");
    return absl::OkStatus();
  }
  if (answer.ok()) {
    if (auto* const typed = (*answer)->TryAs<Answer>()) typed->token.Handle();
  }
  return absl::OkStatus();
}

void Person::PayReplies(ActorContext& context) {
  for (const ActorRef asker : std::exchange(life_->owed_replies, {})) {
    context.Tell(asker, Answer{world().FreeToken()});
  }
}

bool Person::MayStash(ActorContext& context) {
  if (world().is_over() || life_->stashes == 0 || StashIsFull(context)) return false;
  --life_->stashes;
  ++life_->events.stashed;
  return true;
}

template <class Mail>
absl::Status Person::OnMail(ActorContext& context, Mail& mail, std::string_view what) {
  const Inside inside(*this);
  life_->CheckPlace(mail.place, mail.token, what);
  // A message that was stashed or forwarded has lost its place.
  if (MayStash(context)) {
    mail.place.sender = 0;
    return Stash(context);
  }
  if (!world().is_over() && mail.place.number % 32 == 7) {
    mail.place = {};
    const Acquaintance other = world().Anybody(life_->random);
    if (!other.is_free && !other.ref.IsNoOne()) {
      context.Forward(other.ref);
      return absl::OkStatus();
    }
  }
  mail.token.Handle();
  PayReplies(context);
  return absl::OkStatus();
}
template absl::Status Person::OnMail(ActorContext& context, Letter& mail, std::string_view what);
template absl::Status Person::OnMail(ActorContext& context, Bulky& mail, std::string_view what);

absl::Status Person::On(ActorContext&, Urgent& urgent) {
  const Inside inside(*this);
  urgent.token.Handle();
  return absl::OkStatus();
}

absl::Status Person::On(ActorContext& context, Act& act) {
  const Inside inside(*this);
  act.token.Handle();
  PayReplies(context);
  if (world().is_over()) return absl::OkStatus();
  Random random(act.seed);
  return ActorOperations().PerformOne(world(), random, [&](const ActorOperation& operation) {
    Deed deed{*this, context, random};
    return operation.perform(deed);
  });
}

void Person::CheckQuestion(Question& question) {
  const Inside inside(*this);
  life_->CheckPlace(question.place, question.token, "ask");
  question.token.Handle();
}

absl::Status Person::On(ActorContext& context, Question& question) {
  const Inside inside(*this);
  life_->CheckPlace(question.place, question.token, "ask");
  if (MayStash(context)) {
    question.place.sender = 0;
    return Stash(context);
  }
  const auto answer = [this] { return Answer{world().FreeToken()}; };
  if (world().is_over()) {
    question.token.Handle();
    context.Reply(answer());
    return absl::OkStatus();
  }
  Random random(question.seed);
  const uint64_t draw = random.Uniform(16);
  if (draw == 0) {
    const Acquaintance other = world().Anybody(random);
    if (!other.is_free && !other.ref.IsNoOne()) {
      question.place = {};
      question.seed = random.Next();
      context.Forward(other.ref);
      return absl::OkStatus();
    }
  }
  question.token.Handle();
  switch (draw) {
    case 1:
      life_->owed_replies.push_back(context.sender());
      return absl::OkStatus();
    case 2:
      return absl::OkStatus();
    case 3:
      return absl::UnavailableError("an ask is too hard");
    case 4:
      throw std::runtime_error("an ask is too much");
    case 5:
      context.Reply(ErrorReply{absl::NotFoundError("no answer is known")});
      return absl::OkStatus();
    case 6:
      context.Reply(answer());
      break;
    case 7:
      return context.Run(ReplyLater(&world(), &context, context.sender(),
                                    random.UniformDuration(absl::ZeroDuration(), absl::Milliseconds(3))));
    default:
      break;
  }
  context.Reply(answer());
  return absl::OkStatus();
}

absl::Status Person::On(ActorContext&, Answer& answer) {
  // To a message that was told: some handlers reply to those too.
  const Inside inside(*this);
  answer.token.Handle();
  return absl::OkStatus();
}

absl::Status Person::On(ActorContext& context, Tick& tick) {
  const Inside inside(*this);
  tick.token.Handle();
  PayReplies(context);
  return absl::OkStatus();
}

absl::Status Person::On(ActorContext&, Piped& piped) {
  const Inside inside(*this);
  piped.token.Handle();
  return absl::OkStatus();
}

absl::Status Person::On(ActorContext&, const WatchNote& note) {
  const Inside inside(*this);
  if (life_->is_anonymous) return absl::OkStatus();
  const auto found = life_->watched.find(note.watched);
  if (found == life_->watched.end() || found->second == Life::WatchKind::kTerminated) {
    world().ledger().Violate("every watch ends once", "a message came for an actor that was not watched with it");
    return absl::OkStatus();
  }
  life_->watched.erase(found);
  world().ledger().terminations.fetch_add(1, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status Person::On(ActorContext&, const Terminated& terminated) {
  const Inside inside(*this);
  if (life_->is_anonymous) return absl::OkStatus();
  const auto found = life_->watched.find(terminated.actor);
  if (found == life_->watched.end() || found->second == Life::WatchKind::kNote) {
    world().ledger().Violate("every watch ends once", "Terminated came for an actor that was not watched");
    return absl::OkStatus();
  }
  if (MayLive(terminated.actor)) {
    world().ledger().Violate("Terminated comes after the end", "Terminated came for an actor that lives");
  }
  life_->watched.erase(found);
  world().ledger().terminations.fetch_add(1, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status Person::On(ActorContext&, const Gust&) {
  const Inside inside(*this);
  return absl::OkStatus();
}

absl::Status Person::On(ActorContext&, const Services& services) {
  const Inside inside(*this);
  int number = 0;
  if (life_->is_anonymous || !absl::SimpleAtoi(services.key.name(), &number)) return absl::OkStatus();
  const auto found = life_->listings.find(number);
  // A listing may be on its way when the actor unsubscribes.
  if (found == life_->listings.end()) return absl::OkStatus();
  std::vector<ActorRef>& actors = found->second.emplace();
  for (const auto& service : services.services) actors.push_back(service.untyped());
  return absl::OkStatus();
}

absl::Status Person::On(ActorContext&, const MachineState& machine) {
  const Inside inside(*this);
  life_->machines.insert_or_assign(machine.fsm, static_cast<int>(machine.state));
  return absl::OkStatus();
}

absl::Status Person::On(ActorContext&, const MachineMove& move) {
  const Inside inside(*this);
  const auto found = life_->machines.find(move.fsm);
  const bool is_checked = life_->is_fifo && !life_->is_limited && !life_->is_anonymous;
  if (is_checked && (found == life_->machines.end() || found->second != static_cast<int>(move.from))) {
    world().ledger().Violate(
        "a transition begins where the one before ended",
        absl::StrCat("a machine went from ", static_cast<int>(move.from), " to ", static_cast<int>(move.to),
                     ", and its subscriber knew the state ", found == life_->machines.end() ? -1 : found->second));
  }
  life_->machines.insert_or_assign(move.fsm, static_cast<int>(move.to));
  return absl::OkStatus();
}

absl::Status Person::On(ActorContext& context, const ReceiveTimeout&) {
  const Inside inside(*this);
  if (world().is_over()) return absl::OkStatus();
  if (life_->random.Bernoulli(0.3)) context.Stop();
  return absl::OkStatus();
}

absl::Status Person::On(ActorContext&, const ActorIdentity&) {
  const Inside inside(*this);
  return absl::OkStatus();
}

absl::Status Person::On(ActorContext&, const ErrorReply&) {
  const Inside inside(*this);
  return absl::OkStatus();
}

absl::Status Person::On(ActorContext& context, const Calm&) {
  const Inside inside(*this);
  life_->stashes = 0;
  kept_.clear();
  PayReplies(context);
  Timers(context).CancelAll();
  CancelReceiveTimeout(context);
  ++life_->events.unstashed;
  UnstashAll(context);
  return absl::OkStatus();
}

void Person::CheckWaits(ActorContext& context) {
  const Inside inside(*this);
  if (life_->is_anonymous) return;
  for (const auto& [actor, kind] : life_->watched) {
    if (kind == Life::WatchKind::kForgotten || MayLive(actor)) continue;
    world().ledger().Violate("every watch ends once",
                             absl::StrCat(context.Path(), " was not told of the end of ", context.PathOf(actor)));
  }
  for (const auto& [service, actors] : life_->listings) {
    if (life_->is_limited) break;
    if (!actors.has_value()) {
      world().ledger().Violate("a subscriber gets a listing", absl::StrCat(context.Path(), " has not got one"));
      continue;
    }
    for (const ActorRef actor : *actors) {
      if (MayLive(actor)) continue;
      world().ledger().Violate("a listing names living actors",
                               absl::StrCat("that of ", context.Path(), " names ", context.PathOf(actor)));
    }
    const bool is_listed = std::find(actors->begin(), actors->end(), context.self()) != actors->end();
    if (is_listed == life_->registered.contains(service)) continue;
    world().ledger().Violate(
        "a listing names the registered actors",
        absl::StrCat("that of ", context.Path(), is_listed ? " names itself" : " does not name itself"));
  }
  if (!life_->asked.empty()) {
    world().ledger().Violate("every ask ends once", absl::StrCat(life_->asked.size(), " asks of ", context.Path(),
                                                                 " have neither a reply nor an error"));
  }
}

const OperationTable<ActorOperation>& ActorOperations() {
  static const auto& table = *[] {
    std::vector<ActorOperation> all;
    for (const auto& rows : {MessagingOperations(), LifeOperations(), AskingOperations(), FacilityOperations(),
                             LookingOperations(), RouterOperations(), PatternOperations()}) {
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return new OperationTable<ActorOperation>(kFirstActorRow, std::move(all));
  }();
  return table;
}

}  // namespace fraktor::storm
