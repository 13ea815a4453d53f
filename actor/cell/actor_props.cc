#include "fraktor/actor/cell/actor_props.h"

namespace fraktor::inline v0 {

using actor_internal::ActorSlot;
using actor_internal::ActorTree;
using actor_internal::kNodeAlignment;
using actor_internal::NodeBytes;
using actor_internal::NodeCache;
using actor_internal::NodeClass;

namespace {

bool FitsNode(size_t size, size_t alignment) {
  return size <= NodeBytes(NodeClass::k192) && alignment <= kNodeAlignment;
}

NodeClass ClassFor(size_t size) {
  if (size <= NodeBytes(NodeClass::k64)) return NodeClass::k64;
  return size <= NodeBytes(NodeClass::k128) ? NodeClass::k128 : NodeClass::k192;
}

}  // namespace

ActorProps::ActorProps(const Layout& layout, const PropsOptions& options, bool is_static)
    : layout_(layout),
      options_(options),
      is_static_(is_static),
      // Invalid options are not plain: the slow path of a spawn refuses them.
      has_plain_mailbox_(!options.mailbox.bounded() && options.mailbox.order == MessageOrder::kFifo &&
                         !layout.is_router && options.mailbox.Validate().ok()),
      is_pooled_(FitsNode(layout.size, layout.alignment)),
      node_class_(ClassFor(layout.size)) {}

absl::Status ActorProps::PrepareRouter(ActorTree& /*tree*/, ActorSlot& /*slot*/) const { return absl::OkStatus(); }

ActorInstance* ActorProps::Make(NodeCache& cache) const {
  void* const memory =
      is_pooled_ ? cache.Allocate(node_class_) : ::operator new (layout_.size, std::align_val_t{layout_.alignment});
  try {
    return Construct(memory);
  } catch (...) {
    if (is_pooled_) {
      cache.Free(node_class_, memory);
    } else {
      ::operator delete (memory, std::align_val_t{layout_.alignment});
    }
    throw;
  }
}

void ActorProps::Unmake(NodeCache& cache, ActorInstance* instance) const noexcept {
  // The memory is that of the most derived object. ActorInstance need not be its first base.
  void* const memory = dynamic_cast<void*>(instance);
  instance->~ActorInstance();
  if (is_pooled_) {
    cache.Free(node_class_, memory);
  } else {
    ::operator delete (memory, std::align_val_t{layout_.alignment});
  }
}

}  // namespace fraktor::inline v0
