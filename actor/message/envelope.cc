#include "fraktor/actor/message/envelope.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "fraktor/actor/message/internal/node_pool.h"
#include "fraktor/actor/message/message_type.h"

namespace fraktor::inline v0 {

using actor_internal::kNodeAlignment;
using actor_internal::NodeBytes;
using actor_internal::NodeCache;
using actor_internal::NodeClass;
using utils_internal::InboxNode;

// Checks the picture at the top of envelope.h. A class with a base has no standard layout, but gcc
// and clang know its offsets.
struct EnvelopeLayout {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
  static_assert(offsetof(Envelope, next) == 0);
  static_assert(offsetof(Envelope, tag_) == 8);
  static_assert(offsetof(Envelope, sender_) == 16);
  static_assert(offsetof(Envelope, target_word_) == 32);
#pragma GCC diagnostic pop
  static_assert(sizeof(Envelope) == NodeBytes(NodeClass::k64));
  static_assert(alignof(Envelope) == kNodeAlignment);
  static_assert(sizeof(InboxNode) == 8);

  template <size_t kBytes>
  struct Sized {
    unsigned char bytes[kBytes];
  };
  static_assert(MessageLayout<Sized<24>>::kNodeClass == NodeClass::k64 && MessageLayout<Sized<24>>::kOffset == 40);
  static_assert(MessageLayout<Sized<25>>::kNodeClass == NodeClass::k128 && MessageLayout<Sized<25>>::kOffset == 40);
  static_assert(MessageLayout<Sized<88>>::kNodeClass == NodeClass::k128 && !MessageLayout<Sized<88>>::kIsOnHeap);
  static_assert(MessageLayout<Sized<89>>::kNodeClass == NodeClass::k64 && MessageLayout<Sized<89>>::kIsOnHeap);
  // Room for the trace after the payload.
  static_assert(MessageLayout<Sized<48>>::kTracedNodeClass == NodeClass::k128);
  static_assert(MessageLayout<Sized<49>>::kTracedNodeClass == NodeClass::k192);
  static_assert(MessageLayout<Sized<88>>::kEnd + kTraceBytes <= NodeBytes(NodeClass::k192));
  static_assert(MessageLayout<Sized<89>>::kTracedNodeClass == NodeClass::k128);
};

Envelope* EnvelopeFactory::Copy(NodeCache& cache, Envelope& from) {
  const MessageType* const type = from.type();
  if (!type->is_copyable()) return nullptr;
  const NodeClass node_class = from.node_class();
  void* const node = cache.Allocate(node_class);
  GiveBack give_back{cache, node_class, node};
  auto* const envelope = ::new (node) Envelope(type, node_class, from.tag_ & Envelope::kFlags, from.sender_);
  envelope->target_word_ = from.target_word_;
  type->copy()(envelope->Storage(type->offset()), from.Storage(type->offset()));
  give_back.node = nullptr;
  if (const MessageTrace* const trace = from.trace()) {
    ::new (envelope->Storage(NodeBytes(node_class) - kTraceBytes)) MessageTrace(*trace);
  }
  return envelope;
}

Envelope* EnvelopeFactory::MoveToTraced(NodeCache& cache, Envelope& from, const MessageTrace& trace) {
  const MessageType* const type = from.type();
  const NodeClass node_class = type->traced_node_class();
  void* const node = cache.Allocate(node_class);
  const uintptr_t flags = from.tag_ & (Envelope::kSystem | Envelope::kNeedsRelease);
  auto* const envelope = ::new (node) Envelope(type, node_class, flags | Envelope::kHasTrace, from.sender_);
  envelope->target_word_ = from.target_word_;
  void* const to_storage = envelope->Storage(type->offset());
  void* const from_storage = from.Storage(type->offset());
  if (type->is_on_heap()) {
    std::memcpy(to_storage, from_storage, sizeof(void*));
    // The moved message is on the heap; `from` must not release it.
    from.tag_ &= ~Envelope::kNeedsRelease;
  } else if (type->move() != nullptr) {
    type->move()(to_storage, from_storage);
  } else {
    std::memcpy(to_storage, from_storage, type->size());
  }
  ::new (envelope->Storage(NodeBytes(node_class) - kTraceBytes)) MessageTrace(trace);
  return envelope;
}

}  // namespace fraktor::inline v0
