// AllocatePooled and FreePooled: memory from the node pool for small objects of the runtime:
// suspended handlers, asks and frames of coroutines. Internal.
//
// Up to 192 bytes, aligned to at least 16, come from the pool; larger objects from the heap. Any
// thread may free, with the size of the allocation.
#ifndef FRAKTOR_ACTOR_MESSAGE_INTERNAL_POOLED_MEMORY_H_
#define FRAKTOR_ACTOR_MESSAGE_INTERNAL_POOLED_MEMORY_H_

#include <cstddef>
#include <new>

#include "fraktor/actor/message/internal/node_pool.h"

namespace fraktor::inline v0::actor_internal {
namespace pooled_memory_internal {

constexpr NodeClass ClassFor(size_t size) {
  return size <= NodeBytes(NodeClass::k64)    ? NodeClass::k64
         : size <= NodeBytes(NodeClass::k128) ? NodeClass::k128
                                              : NodeClass::k192;
}

}  // namespace pooled_memory_internal

inline void* AllocatePooled(size_t size) {
  if (size > NodeBytes(NodeClass::k192)) return ::operator new(size);
  return NodeCache::OfThisThread().Allocate(pooled_memory_internal::ClassFor(size));
}

inline void FreePooled(void* memory, size_t size) noexcept {
  if (size > NodeBytes(NodeClass::k192)) {
    ::operator delete(memory);
  } else {
    NodeCache::OfThisThread().Free(pooled_memory_internal::ClassFor(size), memory);
  }
}

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_MESSAGE_INTERNAL_POOLED_MEMORY_H_
