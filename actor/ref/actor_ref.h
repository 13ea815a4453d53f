// A reference to an actor: a value of two words that is copied like a number, kept anywhere, and never dangles.
//
//   ActorRef printer = ...;
//   std::vector<ActorRef> known = {printer};            // no count, nothing to release
//   if (printer == ActorRef::NoOne()) ...               // the default: a reference to no actor
//
// It names a slot and what is in it. Slots belong to the process and are recycled, never unmapped, so a reference may
// outlive its actor and its system: whoever sends looks at the slot's generation and finds that another actor uses it.
// There are three kinds of slots, each in memory of its own, so that a slot of one kind never becomes one of another.
// The word says which kind the slot is:
// - An actor of this process: an ActorSlot, and in the word the slot's generation, 32 bits. Above them stand flags for
//   what a sender has to heed, so that the usual reference, which has none, costs one comparison.
// - A promise of this process (kPromise): a PromiseSlot, with its generation.
// - An actor elsewhere (kRemote, the highest bit): a RemoteSlot, that of the actor's node in the life that the node had
//   then. The rest of the word is the actor's uid there. Nothing is kept for each such actor.
//
// Two references are equal if they name the same slot and the same word: an actor that was started anew under the same
// name is another. There is no order between them: a slot's address differs from run to run, and nothing should depend
// on it.
//
// Thread safety: a value; as safe as an integer.
#ifndef FRAKTOR_ACTOR_REF_ACTOR_REF_H_
#define FRAKTOR_ACTOR_REF_ACTOR_REF_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <type_traits>
#include <utility>

#include "fraktor/utils/table/table_slot.h"

namespace fraktor::inline v0 {

class ActorSlot;    // fraktor/actor/turn/actor_slot.h
class PromiseSlot;  // fraktor/actor/turn/promise_slot.h
class RemoteSlot;   // fraktor/actor/turn/remote_sending.h

class ActorRef {
 public:
  // No one.
  constexpr ActorRef() = default;

  // For those who own slots. The slot is of the kind that the word says.
  constexpr ActorRef(TableSlot* slot, uint64_t word) : slot_(slot), word_(word) {}

  static constexpr ActorRef NoOne() { return {}; }
  constexpr bool IsNoOne() const { return slot_ == nullptr; }

  // The flags.
  static constexpr uint64_t kLimited = uint64_t{1} << 32;  // Its mailbox has a limit.
  static constexpr uint64_t kPromise = uint64_t{1} << 33;  // Not an actor: who asked waits here for one answer.
  static constexpr uint64_t kRouter = uint64_t{1} << 37;   // What is sent to it goes to others at once.
  static constexpr uint64_t kShared = uint64_t{1} << 38;   // Of a promise: others have got the same question.
  static constexpr uint64_t kRemote = uint64_t{1} << 63;   // An actor elsewhere: the other bits are no flags then.

  // An actor, or a promise, of another node.
  constexpr bool IsRemote() const { return (word_ & kRemote) != 0; }
  // A promise of this process.
  constexpr bool IsPromise() const { return (word_ & (kRemote | kPromise)) == kPromise; }

  // An actor of this process.
  constexpr bool IsActor() const { return slot_ != nullptr && (word_ & (kRemote | kPromise)) == 0; }

  // The reference without the flags that only senders heed: equal for all references to one actor or promise.
  constexpr ActorRef Plain() const { return IsRemote() ? *this : ActorRef(slot_, word_ & (kPromise | UINT32_MAX)); }

  // True as long as the actor or promise has its slot. False for no one, and for a reference to another node, since
  // nothing is known here of an actor there: see MayLive. Any thread; the answer may be old at once.
  bool IsCurrent() const { return slot_ != nullptr && slot_->IsAt(generation()); }

  // The slot of whatever kind: for its generation, and to tell slots apart. Null if it refers to no one.
  constexpr TableSlot* any_slot() const { return slot_; }

  // The slot as what the word says that it is; each only for references of its kind. slot() of no one is null. Defined
  // where the kind of slot is: see above.
  inline ActorSlot* slot() const;
  inline PromiseSlot* promise_slot() const;
  inline RemoteSlot* remote_slot() const;

  // What an envelope to this actor carries, so that the receiver finds out whether it was meant.
  constexpr uint64_t word() const { return word_; }

  // Only of an actor or a promise of this process.
  constexpr uint32_t generation() const { return static_cast<uint32_t>(word_); }

  // For people, as in logs and in the failures of tests: the path, the number of the slot and its generation, such as
  // "pekko://shop/user/cart (slot 12, generation 5)". The path is missing if no system knows the actor any more. Any
  // thread; it takes locks, and belongs to no hot path.
  friend std::ostream& operator<<(std::ostream& out, ActorRef ref);

  friend constexpr bool operator==(ActorRef a, ActorRef b) { return a.slot_ == b.slot_ && a.word_ == b.word_; }

  template <typename H>
  friend H AbslHashValue(H state, ActorRef ref) {
    return H::combine(std::move(state), ref.slot_, ref.word_);
  }

 private:
  TableSlot* slot_ = nullptr;
  uint64_t word_ = 0;
};

// Says what operator<< prints of a reference that is not no one. The runtime sets it, which knows paths.
using ActorRefDescriber = std::string (*)(ActorRef ref);
void SetActorRefDescriber(ActorRefDescriber describe);

static_assert(sizeof(ActorRef) == 16);
static_assert(std::is_trivially_copyable_v<ActorRef>);
static_assert(std::is_nothrow_default_constructible_v<ActorRef>);

}  // namespace fraktor::inline v0

// Depends on the two words alone and not on a seed of the process: equal references have equal hashes in every library
// of a program.
template <>
struct std::hash<fraktor::ActorRef> {
  size_t operator()(fraktor::ActorRef ref) const noexcept {
    // Slots are aligned and generations are small: without mixing, most bits would be the same.
    uint64_t mixed = reinterpret_cast<uintptr_t>(ref.any_slot()) * 0x9e3779b97f4a7c15 + ref.word();
    mixed = (mixed ^ (mixed >> 32)) * 0xd6e8feb86659fd93;
    mixed = (mixed ^ (mixed >> 32)) * 0xd6e8feb86659fd93;
    return static_cast<size_t>(mixed ^ (mixed >> 32));
  }
};

#endif  // FRAKTOR_ACTOR_REF_ACTOR_REF_H_
