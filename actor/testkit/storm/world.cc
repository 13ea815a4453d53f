#include "fraktor/actor/testkit/storm/world.h"

#include "absl/strings/str_cat.h"

#include "fraktor/actor/dispatch/internal/ready_queue_scheduler.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::storm {

using actor_internal::MayLive;

Life::Life(World& of)
    : world(of), counted(of.ledger().lives), id(of.NewSenderId()), random(MixBits(of.options().seed + id)) {}

void Life::CheckPlace(const Place& place, std::string_view what) {
  if (place.sender == 0 || !is_fifo) return;
  uint32_t& last = seen[place.sender];
  if (place.number < last) {
    world.ledger().Violate(
        "messages of one sender keep their order",
        absl::StrCat(ToAbsl(what), " ", place.number, " of sender ", place.sender, " came after ", last));
  }
  last = place.number;
}

World::World(const WorldOptions& options) : options_(options), acts_(options.acts) {}

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
}

}  // namespace fraktor::storm
