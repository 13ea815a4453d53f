#include "fraktor/actor/testkit/storm/world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/dispatch/internal/ready_queue_scheduler.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::storm {

using actor_internal::ActorSlotTable;
using actor_internal::MayLive;

namespace {

thread_local ThreadKind kind_of_this_thread = ThreadKind::kWorker;

// The bits of Place::route above those of the ThreadKind.
constexpr uint8_t kThreadKindBits = 3;
constexpr uint8_t kByActor = 4;
constexpr uint8_t kToRouter = 8;
constexpr uint8_t kToLimited = 16;

std::string RouteText(const Place& place) {
  const auto route = static_cast<uint8_t>(place.route);
  const bool is_actor = (route & kByActor) != 0;
  std::string text = is_actor ? "by an actor on a worker" : "by a foreign thread";
  if (static_cast<ThreadKind>(route & kThreadKindBits) != ThreadKind::kWorker && is_actor)
    text = "by an actor on a guest";
  if (static_cast<ThreadKind>(route & kThreadKindBits) == ThreadKind::kInStay && !is_actor) text += " in its stay";
  absl::StrAppend(&text, " (thread ", place.thread, is_actor ? absl::StrCat(", turn ", place.turn) : "", "), to ",
                  (route & kToRouter) != 0    ? "a router"
                  : (route & kToLimited) != 0 ? "a limited mailbox"
                                              : "a plain mailbox",
                  ", slot ", place.target);
  return text;
}

}  // namespace

ThreadKind KindOfThisThread() { return kind_of_this_thread; }
void SetKindOfThisThread(ThreadKind kind) { kind_of_this_thread = kind; }

uint16_t NumberOfThisThread() {
  static std::atomic<uint16_t> next{1};  // Relaxed: it pairs with nothing.
  static thread_local const uint16_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

Place PlaceOf(Place place, ActorRef to, bool sender_is_actor) {
  place.route = static_cast<uint8_t>(static_cast<uint8_t>(kind_of_this_thread) | (sender_is_actor ? kByActor : 0) |
                                     ((to.word() & ActorRef::kRouter) != 0 ? kToRouter : 0) |
                                     ((to.word() & ActorRef::kLimited) != 0 ? kToLimited : 0));
  place.target = to.IsActor() ? ActorSlotTable::IndexOf(to.slot()) : 0;
  place.thread = NumberOfThisThread();
  return place;
}

Life::Life(World& of)
    : world(of), counted(of.ledger().lives), id(of.NewSenderId()), random(MixBits(of.options().seed + id)) {}

void Life::CheckPlace(const Place& place, const Token& token, std::string_view what) {
  if (place.sender == 0 || !is_fifo) return;
  const Arrival arrival{.place = place,
                        .made_us = token.made_us(),
                        .handled_us = world.ledger().MicrosecondsNow(),
                        .origin = token.origin(),
                        .thread = NumberOfThisThread(),
                        .what = what,
                        .before = events};
  arrivals[static_cast<size_t>(events.received++) % arrivals.size()] = arrival;
  const Arrival before = std::exchange(seen[place.sender], arrival);
  if (place.number >= before.place.number) return;
  world.ledger().Violate(
      "messages of one sender keep their order",
      absl::StrCat(
          ToAbsl(what), " ", place.number, " of sender ", place.sender, " came after ", ToAbsl(before.what), " ",
          before.place.number, ". The recipient: ", Describe(), ". Since then: ", events.turns - before.before.turns,
          " turns, ", events.instances - before.before.instances, " new instances, ",
          events.stashed - before.before.stashed, " messages stashed, ", events.unstashed - before.before.unstashed,
          " calls that unstash, ", events.received - before.before.received,
          " messages with a place. The last messages of the sender:", DescribeArrivals(place.sender)));
}

std::string Life::DescribeArrivals(uint32_t sender) const {
  const uint32_t now_us = world.ledger().MicrosecondsNow();
  const auto size = static_cast<int>(arrivals.size());
  std::string text;
  int others = 0;
  for (int i = std::max(0, events.received - size); i < events.received; ++i) {
    const Arrival& one = arrivals[static_cast<size_t>(i % size)];
    if (one.place.sender != sender) {
      ++others;
      continue;
    }
    absl::StrAppend(&text, "\n  ", ToAbsl(one.what), " ", one.place.number, ", sent ", RouteText(one.place), ", by \"",
                    NameOfOperation(one.origin), "\", made ", now_us - one.made_us, " us ago, handled ",
                    now_us - one.handled_us, " us ago on thread ", one.thread, " in turn ", one.before.turns,
                    " of instance ", one.before.instances, ", behind ", std::exchange(others, 0), " of others");
  }
  return text;
}

std::string Life::Describe() const {
  return absl::StrCat("sender ", id, ", ", ToAbsl(class_name), is_anonymous ? ", a routee" : "", ", ", mailbox_text,
                      ", instance ", events.instances, ", ", events.stashed, " messages stashed");
}

World::World(const WorldOptions& options, const RuntimeToolbox& clock)
    : options_(options), ledger_(clock, options.where), acts_(options.acts) {}

World::~World() = default;

void World::Attach(ActorSystem& system) {
  system_ = &system;
  guest_seat_ = system.scheduler().dispatchers().default_pool().guest_seat();
}

World::Listeners World::Listen(ActorSystem& system) {
  const auto settle = [](const MessageView& view) {
    const Token* const token = TokenIn(static_cast<const MessageType*>(view.type), view.message);
    if (token != nullptr) token->Die();
  };
  Listeners listeners;
  listeners.push_back(
      system.events().Listen<AllDeadLetters>([settle](const AllDeadLetters& letter) { settle(letter.message); }));
  listeners.push_back(
      system.events().Listen<UnhandledMessage>([settle](const UnhandledMessage& message) { settle(message.message); }));
  return listeners;
}

Acquaintance World::Anybody(Random& random) {
  const bool may_be_dead = random.Bernoulli(0.1);
  Acquaintance found;
  for (int tries = 0; tries < 8; ++tries) {
    const size_t cell = random.Uniform(kCells);
    {
      MutexLock lock(mutex_);
      found = cells_[cell];
    }
    if (may_be_dead || MayLive(found.ref)) break;
  }
  return found;
}

void World::Meet(Random& random, const Acquaintance& who) {
  const size_t cell = random.Uniform(kCells);
  MutexLock lock(mutex_);
  cells_[cell] = who;
  if ((who.ref.word() & ActorRef::kRouter) != 0 || who.is_supervisor) special_.insert_or_assign(who.ref, who);
}

Acquaintance World::Recognize(ActorRef actor) {
  MutexLock lock(mutex_);
  const auto found = special_.find(actor);
  if (found != special_.end()) return found->second;
  // A router that nobody has met yet: its kind is not known.
  const bool is_router = (actor.word() & ActorRef::kRouter) != 0;
  return {.ref = actor, .is_free = is_router, .is_unordered = is_router};
}

std::stop_token World::StopToken(Random& random) {
  const size_t source = random.Uniform(stop_sources_.size());
  MutexLock lock(mutex_);
  return stop_sources_[source].get_token();
}

void World::RequestStop(Random& random) {
  const size_t source = random.Uniform(stop_sources_.size());
  std::stop_source stopping;
  {
    MutexLock lock(mutex_);
    std::swap(stopping, stop_sources_[source]);
  }
  stopping.request_stop();
}

void World::AddGuarded(ActorRef actor) {
  MutexLock lock(mutex_);
  guarded_[actor].is_known = true;
}

void World::EndGuarded(ActorRef actor) {
  if (MayLive(actor)) ledger_.Violate("Terminated comes after the end", "the guard got one for an actor that lives");
  MutexLock lock(mutex_);
  if (std::exchange(guarded_[actor].has_ended, true)) {
    ledger_.Violate("every watch ends once", "the guard got Terminated twice for one actor");
  }
}

void World::CheckGuarded() {
  MutexLock lock(mutex_);
  for (const auto& [actor, state] : guarded_) {
    if (!state.is_known) ledger_.Violate("every watch ends once", "the guard got Terminated for an unknown actor");
    if (!state.has_ended && !MayLive(actor)) {
      ledger_.Violate("every watch ends once",
                      absl::StrCat("the guard was not told of the end of ", system_->PathOf(actor)));
    }
  }
}

}  // namespace fraktor::storm
