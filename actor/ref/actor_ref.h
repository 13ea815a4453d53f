// ActorRef: a reference to an actor. A value of two words that is copied like a number, can be kept
// anywhere and never dangles.
//
//   ActorRef printer = system.Spawn<Printer>("printer").untyped();
//   std::vector<ActorRef> known = {printer};              // no reference count, nothing to release
//   const bool is_set = printer != ActorRef::NoOne();     // NoOne() is the default: a reference to no actor
//
// A reference holds a slot and a word. Slots belong to the process; they are reused and never
// unmapped. So a reference may outlive its actor and its system: a sender compares the slot's
// generation with that of the reference and detects that it is stale. There are three kinds of
// slots, each in memory of its own, so that a slot of one kind never becomes a slot of another
// kind. The word says which kind the slot is:
// - An actor of this process: the slot is an ActorSlot, and the low 32 bits of the word are its
//   generation. The bits above are flags that senders must respect. The usual reference has no
//   flags and costs one comparison.
// - A promise of this process (kPromise): the slot is a PromiseSlot, with its generation in the
//   word.
// - An actor of another node (kRemote, the highest bit): the slot is the RemoteSlot of the actor's
//   node, for the incarnation that the node had then. The rest of the word is the actor's uid on
//   that node. This process stores nothing per such actor.
//
// Two references are equal if their slots and words are equal. An actor that was spawned again
// under the same name is another actor. References have no order, because the address of a slot
// differs from run to run.
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

#include "fraktor/utils/table/internal/table_slot.h"

namespace fraktor::inline v0 {

namespace actor_internal {
class ActorSlot;    // fraktor/actor/slot/internal/actor_slot.h
class PromiseSlot;  // fraktor/actor/slot/internal/promise_slot.h
class RemoteSlot;   // fraktor/actor/send/internal/remote_sending.h
}  // namespace actor_internal

class ActorRef;
// The text that operator<< prints.
std::string ToText(ActorRef ref);

class ActorRef {
 public:
  // A reference to no one.
  constexpr ActorRef() = default;

  // For the owners of slots. The slot must be of the kind that the word says.
  constexpr ActorRef(utils_internal::TableSlot* slot, uint64_t word) : slot_(slot), word_(word) {}

  static constexpr ActorRef NoOne() { return {}; }
  constexpr bool IsNoOne() const { return slot_ == nullptr; }

  // The flags.
  static constexpr uint64_t kLimited = uint64_t{1} << 32;  // the mailbox has a limit
  static constexpr uint64_t kPromise = uint64_t{1} << 33;  // no actor: the promise of an ask, which takes one reply
  static constexpr uint64_t kRouter = uint64_t{1} << 37;   // a router: messages to it go straight to its routees
  static constexpr uint64_t kShared = uint64_t{1} << 38;   // set on promises: several recipients got the same ask
  static constexpr uint64_t kRemote = uint64_t{1} << 63;   // an actor of another node; then the other bits are no flags

  // Returns whether this is an actor or a promise of another node.
  constexpr bool IsRemote() const { return (word_ & kRemote) != 0; }
  // Returns whether this is a promise of this process.
  constexpr bool IsPromise() const { return (word_ & (kRemote | kPromise)) == kPromise; }

  // Returns whether this is an actor of this process.
  constexpr bool IsActor() const { return slot_ != nullptr && (word_ & (kRemote | kPromise)) == 0; }

  // Returns the reference without the flags that only senders use. Equal for all references to one
  // actor or promise.
  constexpr ActorRef Plain() const { return IsRemote() ? *this : ActorRef(slot_, word_ & (kPromise | UINT32_MAX)); }

  // Returns true while the actor or promise has its slot. Returns false for no one, and for a
  // reference to another node, because this process does not know the state of that actor; see
  // MayLive. Any thread may call it; the result may be out of date at once.
  bool IsCurrent() const { return slot_ != nullptr && slot_->IsAt(generation()); }

  // The slot of any kind, for its generation and to tell slots apart. Null for no one.
  constexpr utils_internal::TableSlot* any_slot() const { return slot_; }

  // The slot by its kind; call each only for references of that kind. slot() of no one is null. The
  // header of each kind of slot defines its function; see above.
  inline actor_internal::ActorSlot* slot() const;
  inline actor_internal::PromiseSlot* promise_slot() const;
  inline actor_internal::RemoteSlot* remote_slot() const;

  // An envelope carries this word, so that the recipient's slot can check the generation.
  constexpr uint64_t word() const { return word_; }

  // Only for an actor or a promise of this process.
  constexpr uint32_t generation() const { return static_cast<uint32_t>(word_); }

  // Prints the path, the number of the slot and its generation, for logs and failures of tests:
  // "pekko://shop/user/cart (slot 12, generation 5)". The path is missing if no system knows the
  // actor any more. Any thread may call it. It takes locks; do not use it on a hot path.
  friend std::ostream& operator<<(std::ostream& out, ActorRef ref);
  // The same for absl::StrCat, absl::StrFormat and the logging of Abseil from 20230125 on.
  template <class Sink>
  friend void AbslStringify(Sink& sink, ActorRef ref) {
    sink.Append(ToText(ref));
  }

  friend constexpr bool operator==(ActorRef a, ActorRef b) { return a.slot_ == b.slot_ && a.word_ == b.word_; }

  template <typename H>
  friend H AbslHashValue(H state, ActorRef ref) {
    return H::combine(std::move(state), ref.slot_, ref.word_);
  }

 private:
  utils_internal::TableSlot* slot_ = nullptr;
  uint64_t word_ = 0;
};

// Returns the text that operator<< prints for a reference other than no one. The runtime, which
// knows paths, sets it.
using ActorRefDescriber = std::string (*)(ActorRef ref);
void SetActorRefDescriber(ActorRefDescriber describe);

static_assert(sizeof(ActorRef) == 16);
static_assert(std::is_trivially_copyable_v<ActorRef>);
static_assert(std::is_nothrow_default_constructible_v<ActorRef>);

}  // namespace fraktor::inline v0

// The hash depends only on the two words and not on a seed of the process, so that equal references
// have equal hashes in every library of a program.
template <>
struct std::hash<fraktor::ActorRef> {
  size_t operator()(fraktor::ActorRef ref) const noexcept {
    // Slots are aligned and generations are small: without mixing, most bits would be equal.
    uint64_t mixed = reinterpret_cast<uintptr_t>(ref.any_slot()) * 0x9e3779b97f4a7c15 + ref.word();
    mixed = (mixed ^ (mixed >> 32)) * 0xd6e8feb86659fd93;
    mixed = (mixed ^ (mixed >> 32)) * 0xd6e8feb86659fd93;
    return static_cast<size_t>(mixed ^ (mixed >> 32));
  }
};

#endif  // FRAKTOR_ACTOR_REF_ACTOR_REF_H_
