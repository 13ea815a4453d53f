// Envelope: a message on its way: the payload with its type, its sender and its target, in one
// cache line if it is small.
//
//   EnvelopePtr envelope = MakeEnvelope<Greet>(sender, "world");       // Greet{"world"}, constructed in place
//   envelope->set_target_word(target.word());
//   if (const Greet* greet = envelope->TryAs<Greet>()) Print(greet->name);
//   envelope.reset();                                                  // destroys the message, frees the node
//
// The node:
//
//     0  link            for the inbox, or for a private list
//     8  tag             address of the MessageType, with flags in the low bits
//    16  sender          ActorRef
//    32  target word     of the target's reference: the generation, or a remote actor's uid
//    40  payload         24 bytes in a node of 64, 88 in one of 128; or a pointer to it
//   end - 40  MessageTrace, for sampled and traced messages only: their nodes are one size larger
//
// A worker passes its NodeCache. The functions without that argument look up the cache of the
// thread.
//
// Thread safety: an envelope belongs to one thread at a time; the inbox hands it over. Any thread
// may end it.
#ifndef FRAKTOR_ACTOR_MESSAGE_ENVELOPE_H_
#define FRAKTOR_ACTOR_MESSAGE_ENVELOPE_H_

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "fraktor/actor/message/internal/node_pool.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/queue/internal/inbox.h"

namespace fraktor::inline v0 {

// The additional data of a sampled or traced message.
struct MessageTrace {
  int64_t enqueued_ns = 0;  // by the clock of the system's toolbox
  // Ids of W3C traces are not zero. Without an id this is only a latency sample.
  uint64_t trace_id_high = 0;
  uint64_t trace_id_low = 0;
  uint64_t span_id = 0;  // of the sender's span
  uint8_t trace_flags = 0;
};
static_assert(sizeof(MessageTrace) == kTraceBytes && std::is_trivially_copyable_v<MessageTrace>);

class alignas(actor_internal::kNodeAlignment) Envelope : public utils_internal::InboxNode {
 public:
  Envelope(const Envelope&) = delete;
  Envelope& operator=(const Envelope&) = delete;

  static Envelope* Of(utils_internal::InboxNode* node) { return static_cast<Envelope*>(node); }

  const MessageType* type() const {
    return reinterpret_cast<const MessageType*>(tag_ & ~kFlags);  // NOLINT(performance-no-int-to-ptr): a tagged pointer
  }

  template <class M>
  bool Is() const {
    return type() == MessageTypeOf<M>();
  }

  // Returns the message, which must be an M.
  template <class M>
  M& As() {
    assert(Is<M>());
    return *message_internal::Object<M>(Storage(MessageLayout<M>::kOffset));
  }
  template <class M>
  const M& As() const {
    return const_cast<Envelope*>(this)->As<M>();
  }

  // Returns the message, or null if it is of another type.
  template <class M>
  M* TryAs() {
    return Is<M>() ? &As<M>() : nullptr;
  }
  template <class M>
  const M* TryAs() const {
    return const_cast<Envelope*>(this)->TryAs<M>();
  }

  // Moves the message, which must be an M, out of the envelope. A moved-from M stays until the
  // envelope ends.
  template <class M>
  M Take() {
    return std::move(As<M>());
  }

  // Returns the message as untyped memory, for codecs.
  const void* payload() const {
    void* const storage = const_cast<Envelope*>(this)->Storage(type()->offset());
    return type()->is_on_heap() ? *static_cast<void**>(storage) : storage;
  }

  ActorRef sender() const { return sender_; }
  void set_sender(ActorRef sender) { sender_ = sender; }

  uint64_t target_word() const { return target_word_; }
  void set_target_word(uint64_t word) { target_word_ = word; }

  // Inbox::PushSystem pushes system messages; they overtake the others.
  bool is_system() const { return (tag_ & kSystem) != 0; }
  void MarkAsSystem() { tag_ |= kSystem; }
  void UnmarkAsSystem() { tag_ &= ~kSystem; }

  bool has_trace() const { return (tag_ & kHasTrace) != 0; }
  // Null unless the envelope was made with a trace.
  MessageTrace* trace() {
    return has_trace() ? std::launder(
                             static_cast<MessageTrace*>(Storage(actor_internal::NodeBytes(node_class()) - kTraceBytes)))
                       : nullptr;
  }

  actor_internal::NodeClass node_class() const {
    return static_cast<actor_internal::NodeClass>(tag_ >> kNodeClassShift & kNodeClassMask);
  }

 private:
  friend struct EnvelopeFactory;
  friend void EndEnvelope(actor_internal::NodeCache& cache, Envelope* envelope) noexcept;
  friend struct EnvelopeLayout;

  static constexpr uintptr_t kSystem = 1;
  static constexpr uintptr_t kHasTrace = 2;
  static constexpr uintptr_t kNeedsRelease = 4;  // most messages need no release, and so no read of their table
  static constexpr int kNodeClassShift = 3;
  static constexpr uintptr_t kNodeClassMask = 3;
  static constexpr uintptr_t kFlags = alignof(MessageType) - 1;
  static_assert((kSystem | kHasTrace | kNeedsRelease | kNodeClassMask << kNodeClassShift) <= kFlags);

  Envelope(const MessageType* type, actor_internal::NodeClass node_class, uintptr_t flags, ActorRef sender)
      : tag_(reinterpret_cast<uintptr_t>(type) | flags | static_cast<uintptr_t>(node_class) << kNodeClassShift),
        sender_(sender) {}
  ~Envelope() = default;

  void* Storage(size_t offset) { return reinterpret_cast<std::byte*>(this) + offset; }

  uintptr_t tag_;
  ActorRef sender_;
  uint64_t target_word_;  // set when the target is known
  // The payload follows. In larger nodes it extends past the end of this class.
};

// Destroys the message and gives the node to `cache`, which must be the cache of this thread.
inline void EndEnvelope(actor_internal::NodeCache& cache, Envelope* envelope) noexcept {
  // Most messages: nothing to destroy, in a small node.
  if ((envelope->tag_ & (Envelope::kNeedsRelease | Envelope::kNodeClassMask << Envelope::kNodeClassShift)) == 0)
      [[likely]] {
    static_assert(static_cast<int>(actor_internal::NodeClass::k64) == 0);
    envelope->~Envelope();
    cache.Free(actor_internal::NodeClass::k64, envelope);
    return;
  }
  if ((envelope->tag_ & Envelope::kNeedsRelease) != 0) {
    // Before the node is freed: a destructor may make and end other messages.
    const MessageType* const type = envelope->type();
    type->release()(envelope->Storage(type->offset()));
  }
  const actor_internal::NodeClass node_class = envelope->node_class();
  envelope->~Envelope();
  cache.Free(node_class, envelope);
}

struct EnvelopeEnder {
  void operator()(Envelope* envelope) const noexcept {
    EndEnvelope(actor_internal::NodeCache::OfThisThread(), envelope);
  }
};

// Owns an envelope. Ends it on the current thread.
using EnvelopePtr = std::unique_ptr<Envelope, EnvelopeEnder>;

// For the functions below.
struct EnvelopeFactory {
  template <class M, class... Args>
  static Envelope* Make(actor_internal::NodeCache& cache, actor_internal::NodeClass node_class, ActorRef sender,
                        const MessageTrace* trace, Args&&... args) {
    constexpr bool kNeedsRelease = MessageLayout<M>::kIsOnHeap || !std::is_trivially_destructible_v<M>;
    const uintptr_t flags =
        (kNeedsRelease ? Envelope::kNeedsRelease : 0) | (trace != nullptr ? Envelope::kHasTrace : 0);
    void* const node = cache.Allocate(node_class);
    auto* const envelope = ::new (node) Envelope(MessageTypeOf<M>(), node_class, flags, sender);
    GiveBack give_back{cache, node_class, node};
    message_internal::Construct<M>(envelope->Storage(MessageLayout<M>::kOffset), std::forward<Args>(args)...);
    give_back.node = nullptr;
    if (trace != nullptr)
      ::new (envelope->Storage(actor_internal::NodeBytes(node_class) - kTraceBytes)) MessageTrace(*trace);
    return envelope;
  }

  // Returns null if the type cannot be copied.
  static Envelope* Copy(actor_internal::NodeCache& cache, Envelope& from);
  static Envelope* MoveToTraced(actor_internal::NodeCache& cache, Envelope& from, const MessageTrace& trace);

 private:
  // Frees the node if the constructor of a message throws.
  struct GiveBack {
    actor_internal::NodeCache& cache;
    actor_internal::NodeClass node_class;
    void* node;
    ~GiveBack() {
      if (node != nullptr) cache.Free(node_class, node);
    }
  };
};

// Makes an envelope with a message M(args...), or M{args...} if M is an aggregate. Throws what the
// constructor of M throws, and std::bad_alloc; then nothing leaks.
template <class M, class... Args>
EnvelopePtr MakeEnvelope(actor_internal::NodeCache& cache, ActorRef sender, Args&&... args) {
  return EnvelopePtr(
      EnvelopeFactory::Make<M>(cache, MessageLayout<M>::kNodeClass, sender, nullptr, std::forward<Args>(args)...));
}
template <class M, class... Args>
EnvelopePtr MakeEnvelope(ActorRef sender, Args&&... args) {
  return MakeEnvelope<M>(actor_internal::NodeCache::OfThisThread(), sender, std::forward<Args>(args)...);
}

// The same with a trace, for the few messages that are sampled or traced.
template <class M, class... Args>
EnvelopePtr MakeTracedEnvelope(actor_internal::NodeCache& cache, ActorRef sender, const MessageTrace& trace,
                               Args&&... args) {
  return EnvelopePtr(
      EnvelopeFactory::Make<M>(cache, MessageLayout<M>::kTracedNodeClass, sender, &trace, std::forward<Args>(args)...));
}

// Moves the message to a node with room for a trace, for a caller that decides late to sample it.
// The envelope must have no trace yet.
inline EnvelopePtr WithTrace(actor_internal::NodeCache& cache, EnvelopePtr envelope, const MessageTrace& trace) {
  return EnvelopePtr(EnvelopeFactory::MoveToTraced(cache, *envelope, trace));
}

// Returns a copy with the same message, sender, target word, trace and system flag. Returns null if
// the message cannot be copied. Throws what its copy constructor throws, and std::bad_alloc.
inline EnvelopePtr CopyEnvelope(actor_internal::NodeCache& cache, const Envelope& envelope) {
  return EnvelopePtr(EnvelopeFactory::Copy(cache, const_cast<Envelope&>(envelope)));
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_MESSAGE_ENVELOPE_H_
