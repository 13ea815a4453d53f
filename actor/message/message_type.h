// MessageType: the type tag of messages: the address of a table that exists once per type.
//
//   struct Greet { std::string name; };
//
//   const MessageType* type = MessageTypeOf<Greet>();
//   std::string_view name = type->name();                            // "Greet", with its namespaces
//   const bool is_greet = envelope.type() == MessageTypeOf<Greet>(); // compares addresses, without RTTI
//
// A message is any class, enum or number whose destructor and move constructor do not throw. The
// runtime moves messages into handlers, stashes and replies, where it cannot handle an exception.
// Move-only types, empty types and any alignment are allowed.
//
// A message lives in the node of its envelope if it fits (24 bytes in a 64-byte node, 88 in one of
// 128), otherwise on the heap. MessageLayout says which.
//
// Two shared objects of one program agree on a type if both export it, as for a type that one
// throws and the other catches: compile it with default visibility, link the program with
// -rdynamic, and open plugins that share a type only among themselves with RTLD_GLOBAL. Otherwise
// each has a table of its own, and does not know the messages of the other.
//
// Thread safety: tables are constants.
#ifndef FRAKTOR_ACTOR_MESSAGE_MESSAGE_TYPE_H_
#define FRAKTOR_ACTOR_MESSAGE_MESSAGE_TYPE_H_

#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

#include "fraktor/actor/message/internal/node_pool.h"
#include "fraktor/actor/message/routing_key.h"
#include "fraktor/actor/message/type_name.h"

namespace fraktor::inline v0 {

// The base of control messages. They overtake others in mailboxes of MessageOrder::kControlFirst,
// and a full mailbox of that order has room for them (MailboxOptions::reserve_for_control):
//
//   struct Pause : fraktor::ControlMessage {};
//
// A message with members would then be made as Resume{{}, 5}. It can use a specialization instead:
//
//   template <>
//   inline constexpr bool fraktor::kIsControlMessage<Resume> = true;    // next to Resume
//
// A misspelt marker does not compile. Neither does a marker that is a member of the message, where
// the runtime would not look for it.
struct ControlMessage {};

template <class M>
inline constexpr bool kIsControlMessage = std::is_base_of_v<ControlMessage, M>;

// Messages that the runtime intercepts before the actor receives them, such as PoisonPill. Their
// target word has a flag.
template <class M>
inline constexpr bool kIsInterceptedMessage = false;

// Messages that no mailbox limit refuses, such as PoisonPill: a full mailbox takes them too, at its
// end.
template <class M>
inline constexpr bool kPassesMailboxLimits = false;

// Messages that do not count as activity of their recipient: its receive timeout continues.
//
//   template <>
//   inline constexpr bool fraktor::kLeavesReceiveTimeout<Tick> = true;    // next to Tick
template <class M>
inline constexpr bool kLeavesReceiveTimeout = false;

// Messages that may get lost now and then: the dead letters are not logged.
template <class M>
inline constexpr bool kIsSuppressedDeadLetter = false;

// The parts of an envelope's node; envelope.h has the rest.
inline constexpr size_t kMessageOffset = 40;  // the payload starts here, or at the next multiple of its alignment
inline constexpr size_t kTraceBytes = 40;     // at the end of the nodes of sampled and traced messages

// Where a message of type M lives.
template <class M>
struct MessageLayout {
  static constexpr size_t kInNodeOffset = (kMessageOffset + alignof(M) - 1) / alignof(M) * alignof(M);
  static constexpr bool kIsOnHeap = kInNodeOffset + sizeof(M) >
                                    actor_internal::NodeBytes(actor_internal::NodeClass::k128);
  // For a message on the heap the node holds a pointer.
  static constexpr size_t kOffset = kIsOnHeap ? kMessageOffset : kInNodeOffset;
  static constexpr size_t kEnd = kOffset + (kIsOnHeap ? sizeof(void*) : sizeof(M));

  static constexpr actor_internal::NodeClass kNodeClass =
      kEnd <= actor_internal::NodeBytes(actor_internal::NodeClass::k64) ? actor_internal::NodeClass::k64
                                                                        : actor_internal::NodeClass::k128;
  static constexpr actor_internal::NodeClass kTracedNodeClass =
      kEnd + kTraceBytes <= actor_internal::NodeBytes(actor_internal::NodeClass::k128)
          ? actor_internal::NodeClass::k128
          : actor_internal::NodeClass::k192;
};

namespace message_internal {

// Finds a member with the name of a marker, which was meant to be a marker.
template <class M>
concept HasMarkerAsMember = requires {
  M::kIsControlMessage;
}
|| requires { M::kLeavesReceiveTimeout; }
|| requires { M::kIsSuppressedDeadLetter; }
|| requires { M::kPassesMailboxLimits; }
|| requires { M::kIsInterceptedMessage; };

// A marker of `const M` or `M&` that M itself does not have.
template <class M>
inline constexpr bool kMarksAnotherType =
    (!kIsControlMessage<M> && (kIsControlMessage<const M> || kIsControlMessage<M&> || kIsControlMessage<const M&>)) ||
    (!kLeavesReceiveTimeout<M> &&
     (kLeavesReceiveTimeout<const M> || kLeavesReceiveTimeout<M&> || kLeavesReceiveTimeout<const M&>)) ||
    (!kIsSuppressedDeadLetter<M> &&
     (kIsSuppressedDeadLetter<const M> || kIsSuppressedDeadLetter<M&> || kIsSuppressedDeadLetter<const M&>));

// Fails to compile with one text for a type that is refused: the first that applies.
template <class M>
constexpr bool CheckMessage() {
  constexpr bool kIsBare = !std::is_reference_v<M> && !std::is_const_v<M> && !std::is_volatile_v<M>;
  constexpr bool kIsObject = std::is_object_v<M> && !std::is_array_v<M>;
  constexpr bool kIsDestructible = std::is_nothrow_destructible_v<M>;
  constexpr bool kIsMovable = std::is_nothrow_move_constructible_v<M>;
  static_assert(kIsBare, "a message type is written without const, volatile and &: MessageTypeOf<Greet>");
  static_assert(!kIsBare || kIsObject,
                "a message is an object: put an array into a struct, a std::array or a std::vector");
  static_assert(!kIsBare || !std::is_pointer_v<M>,
                "a bare pointer does not say who owns what it points to: put it into a struct, or send a "
                "std::unique_ptr or a value");
  static_assert(!kIsBare || !kIsObject || kIsDestructible,
                "a message must be destructible, by a destructor that is noexcept");
  static_assert(
      !kIsBare || !kIsObject || !kIsDestructible || kIsMovable,
      "message moves are noexcept: declare the move constructor noexcept; if there is none because of a const "
      "member or a member whose moves may throw (std::deque), hold that one by std::unique_ptr");
  if constexpr (kIsBare && kIsObject) {
    static_assert(!HasMarkerAsMember<M>,
                  "a marker that is a member of the message does nothing: derive the message from "
                  "fraktor::ControlMessage, or specialize fraktor::kIsControlMessage and the like next to it");
    static_assert(!kMarksAnotherType<M>,
                  "a marker is specialized for the bare type of the message, without const and &: "
                  "fraktor::kIsControlMessage<Pause>");
  }
  return true;
}

// The functions in the table of M. `storage` is the place of M in the node, or of the pointer to
// it.

template <class M>
M* Object(void* storage) {
  if constexpr (MessageLayout<M>::kIsOnHeap) {
    return *static_cast<M**>(storage);
  } else {
    return std::launder(static_cast<M*>(storage));
  }
}

// Uses the plain operators if they suffice: the aligned ones are slower.
template <class M>
inline constexpr bool kIsOveraligned = alignof(M) > __STDCPP_DEFAULT_NEW_ALIGNMENT__;

template <class M>
void* AllocateOnHeap() {
  if constexpr (kIsOveraligned<M>) {
    return ::operator new (sizeof(M), std::align_val_t{alignof(M)});
  } else {
    return ::operator new(sizeof(M));
  }
}

template <class M>
void FreeOnHeap(void* memory) noexcept {
  if constexpr (kIsOveraligned<M>) {
    ::operator delete (memory, std::align_val_t{alignof(M)});
  } else {
    ::operator delete(memory);
  }
}

template <class M, class... Args>
void Construct(void* storage, Args&&... args) {
  // All types except aggregates use parentheses, so that a std::vector<int>(3, 0) has three
  // elements.
  const auto construct = [&args...](void* memory) -> M* {
    if constexpr (std::is_aggregate_v<M>) {
      return ::new (memory) M{std::forward<Args>(args)...};
    } else {
      return ::new (memory) M(std::forward<Args>(args)...);
    }
  };
  if constexpr (MessageLayout<M>::kIsOnHeap) {
    void* const memory = AllocateOnHeap<M>();
    try {
      *static_cast<M**>(storage) = construct(memory);
    } catch (...) {
      FreeOnHeap<M>(memory);
      throw;
    }
  } else {
    construct(storage);
  }
}

template <class M>
void Release(void* storage) noexcept {
  M* const object = Object<M>(storage);
  object->~M();
  if constexpr (MessageLayout<M>::kIsOnHeap) FreeOnHeap<M>(object);
}

template <class M>
void Copy(void* to_storage, void* from_storage) {
  if constexpr (std::is_copy_constructible_v<M>) {
    Construct<M>(to_storage, std::as_const(*Object<M>(from_storage)));
  }
}

// Moves to other storage of the same kind; the moved-from message ends as usual. Not for messages
// on the heap.
template <class M>
void Move(void* to_storage, void* from_storage) noexcept {
  if constexpr (!MessageLayout<M>::kIsOnHeap) ::new (to_storage) M(std::move(*Object<M>(from_storage)));
}

}  // namespace message_internal

// The table. Its alignment leaves the low bits of its address for flags of an envelope.
class alignas(64) MessageType {
 public:
  using ReleaseFunction = void (*)(void* storage) noexcept;
  using CopyFunction = void (*)(void* to_storage, void* from_storage);
  using MoveFunction = void (*)(void* to_storage, void* from_storage) noexcept;

  // For MessageTypeOf.
  template <class M>
  constexpr explicit MessageType(std::in_place_type_t<M>)
      : release_(std::is_trivially_destructible_v<M> && !MessageLayout<M>::kIsOnHeap ? nullptr
                                                                                     : &message_internal::Release<M>),
        copy_(std::is_copy_constructible_v<M> ? &message_internal::Copy<M> : nullptr),
        move_(std::is_trivially_copyable_v<M> || MessageLayout<M>::kIsOnHeap ? nullptr : &message_internal::Move<M>),
        name_(TypeName<M>()),
        name_hash_(HashOfTypeName(TypeName<M>())),
        routing_key_(routing_key_internal::FunctionFor<M>()),
        size_(sizeof(M)),
        offset_(MessageLayout<M>::kOffset),
        node_class_(MessageLayout<M>::kNodeClass),
        traced_node_class_(MessageLayout<M>::kTracedNodeClass),
        is_on_heap_(MessageLayout<M>::kIsOnHeap),
        is_control_(kIsControlMessage<M>),
        leaves_receive_timeout_(kLeavesReceiveTimeout<M>),
        is_suppressed_(kIsSuppressedDeadLetter<M>),
        is_intercepted_(kIsInterceptedMessage<M>),
        passes_limits_(kPassesMailboxLimits<M>) {
    static_assert(message_internal::CheckMessage<M>());
    static_assert(sizeof(M) < size_t{1} << 32, "a message of more than 4 GiB: hold the data by pointer");
  }

  MessageType(const MessageType&) = delete;
  MessageType& operator=(const MessageType&) = delete;

  // For logs and traces; see type_name.h.
  std::string_view name() const { return name_; }
  uint64_t name_hash() const { return name_hash_; }

  size_t size() const { return size_; }
  bool is_control() const { return is_control_; }
  bool leaves_receive_timeout() const { return leaves_receive_timeout_; }
  bool is_suppressed() const { return is_suppressed_; }
  bool is_intercepted() const { return is_intercepted_; }
  bool passes_limits() const { return passes_limits_; }
  bool is_copyable() const { return copy_ != nullptr; }

  // Null if a message needs no release: it has no destructor and is in the node.
  ReleaseFunction release() const { return release_; }

  // Constructs a copy in other storage of the same type. Null if the type cannot be copied. Throws
  // what the copy constructor throws.
  CopyFunction copy() const { return copy_; }

  // Moves a message to other storage of the same type. Null if a copy of its bytes, or of the
  // pointer to it, suffices.
  MoveFunction move() const { return move_; }

  // Returns the hash of a message's routing key (routing_key.h), from the message's address. Null
  // if the type has none.
  RoutingKeyFunction routing_key() const { return routing_key_; }

  // The offset of the storage in a node, and whether it holds a pointer to the message.
  size_t offset() const { return offset_; }
  bool is_on_heap() const { return is_on_heap_; }

  actor_internal::NodeClass node_class() const { return node_class_; }
  actor_internal::NodeClass traced_node_class() const { return traced_node_class_; }

 private:
  ReleaseFunction release_;
  CopyFunction copy_;
  MoveFunction move_;
  std::string_view name_;
  uint64_t name_hash_;
  RoutingKeyFunction routing_key_;
  uint32_t size_;
  uint8_t offset_;
  actor_internal::NodeClass node_class_ : 2;
  actor_internal::NodeClass traced_node_class_ : 2;
  bool is_on_heap_ : 1;
  bool is_control_ : 1;
  bool leaves_receive_timeout_ : 1;
  bool is_suppressed_ : 1;
  bool is_intercepted_ : 1;
  bool passes_limits_ : 1;
};

static_assert(sizeof(MessageType) == 64);

namespace message_internal {
template <class M>
__attribute__((visibility("default"))) inline constinit const MessageType kTable{std::in_place_type<M>};
}  // namespace message_internal

// The tag of M.
template <class M>
constexpr const MessageType* MessageTypeOf() {
  return &message_internal::kTable<M>;
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_MESSAGE_MESSAGE_TYPE_H_
