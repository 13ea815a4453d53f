// Shared ownership in eight bytes: an intrusive strong pointer and a weak one.
//
//   class Connection : public SharedObject {
//    public:
//     explicit Connection(int socket);
//     void OnReadable();
//   };
//
//   Shared<Connection> connection = MakeShared<Connection>(socket);   // one allocation: counts and object
//   poller.Register(socket, [weak = WeakShared<Connection>(connection)] {
//     if (Shared<Connection> alive = weak.Lock()) alive->OnReadable();
//   });
//
// The object lives until the last Shared goes, its memory until the last WeakShared goes too. The counts stand before
// the object (16 bytes with the function that destroys it), so a Shared is found again from a plain reference:
// ShareThis(*this).
//
// Thread safety: as for std::shared_ptr. Different pointers to one object may be used from any threads; one and the
// same pointer is a plain value. What the object does is its own affair; all that happened before a Shared was released
// happens before the destructor.
//
// Costs: a copy or a Lock() is one atomic read-modify-write, a release too; moves touch no atomics. 2^31 owners are the
// limit: the process ends rather than wrap the count.
//
// Prefer std::unique_ptr, or an ActorRef; this is for objects that really have several owners on several threads.
#ifndef FRAKTOR_UTILS_SHARED_SHARED_H_
#define FRAKTOR_UTILS_SHARED_SHARED_H_

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace fraktor::inline v0 {

template <class T>
class Shared;
template <class T>
class WeakShared;
template <class T>
class LastShared;

// The base of everything that can be shared. It must be at the very start of the object, which it is if it is the first
// base (or a base of the first base). A polymorphic class whose first base is not polymorphic moves that base:
// MakeShared ends the process then and says so.
//
// Such objects are made by MakeShared only. A constructor or destructor must not call ShareThis.
//
// A class may decide how its last owner lets go of it, for example on which thread the destructor runs:
//   static void DestroyShared(LastShared<Connection> last) noexcept { executor.Post([last = std::move(last)] {}); }
class SharedObject {
 public:
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

 protected:
  SharedObject() = default;
  ~SharedObject() = default;
};

namespace shared_internal {

enum class HeaderAction { kLetGo, kDestroy, kFree };

// Stands immediately before each shared object.
struct Header {
  using Act = void (*)(Header*, HeaderAction) noexcept;

  explicit Header(Act function) : act(function) {}

  // Owners. 0 while the object is being built and after the last owner went; never rises again from 0. A decrement is
  // acq_rel: the release half pairs with the acquire half of the decrement that reaches 0, so that the destructor sees
  // everything.
  std::atomic<uint32_t> strong{0};
  // WeakShareds, and one for all owners together. The same pairing, for the freeing of the memory.
  std::atomic<uint32_t> weak{1};
  const Act act;
};
static_assert(sizeof(Header) == 16);

[[noreturn]] void DieOfTooManyOwners();
[[noreturn]] void DieOfSharingTheDead();
[[noreturn]] void DieOfDisplacedBase();

inline constexpr uint32_t kMaxCount = uint32_t{1} << 31;

inline Header* HeaderOf(const SharedObject* object) {
  return std::launder(reinterpret_cast<Header*>(reinterpret_cast<uintptr_t>(object) - sizeof(Header)));
}

// Only while the object is alive.
inline SharedObject* ObjectBehind(Header* header) {
  return std::launder(reinterpret_cast<SharedObject*>(reinterpret_cast<std::byte*>(header) + sizeof(Header)));
}

// For a caller that has a strong reference already, which keeps the count above 0.
inline void AddStrong(Header* header) {
  // relaxed: nothing is read because of it.
  if (header->strong.fetch_add(1, std::memory_order_relaxed) >= kMaxCount) DieOfTooManyOwners();
}

// For a caller that has only a weak reference.
inline bool TryAddStrong(Header* header) {
  uint32_t strong = header->strong.load(std::memory_order_relaxed);
  while (strong != 0) {
    if (strong >= kMaxCount) DieOfTooManyOwners();
    // acquire: pairs with the release decrement of an owner that wrote to the object and went.
    if (header->strong.compare_exchange_weak(strong, strong + 1, std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

inline void AddWeak(Header* header) {
  if (header->weak.fetch_add(1, std::memory_order_relaxed) >= kMaxCount) DieOfTooManyOwners();
}

inline void ReleaseWeak(Header* header) {
  if (header->weak.fetch_sub(1, std::memory_order_acq_rel) == 1) header->act(header, HeaderAction::kFree);
}

inline void ReleaseStrong(Header* header) {
  if (header->strong.fetch_sub(1, std::memory_order_acq_rel) == 1) header->act(header, HeaderAction::kLetGo);
}

template <class T>
concept HasDestroyShared = requires(LastShared<T> last) {
  { T::DestroyShared(std::move(last)) }
  noexcept;
};

// Where an object of type T and its header lie in one allocation.
template <class T>
struct Block {
  static constexpr size_t kAlignment = std::max(alignof(T), alignof(Header));
  static constexpr size_t kObjectOffset = (sizeof(Header) + kAlignment - 1) / kAlignment * kAlignment;
  static constexpr size_t kSize = kObjectOffset + sizeof(T);
  static constexpr bool kOverAligned = kAlignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__;

  static std::byte* Allocate() {
    if constexpr (kOverAligned) {
      return static_cast<std::byte*>(::operator new (kSize, std::align_val_t{kAlignment}));
    } else {
      return static_cast<std::byte*>(::operator new(kSize));
    }
  }

  static void Free(std::byte* memory) noexcept {
    if constexpr (kOverAligned) {
      ::operator delete (memory, std::align_val_t{kAlignment});
    } else {
      ::operator delete(memory);
    }
  }

  static std::byte* MemoryOf(Header* header) {
    return reinterpret_cast<std::byte*>(header) + sizeof(Header) - kObjectOffset;
  }
  static T* ObjectOf(Header* header) {
    return std::launder(reinterpret_cast<T*>(reinterpret_cast<std::byte*>(header) + sizeof(Header)));
  }

  static void Act(Header* header, HeaderAction action) noexcept {
    if (action == HeaderAction::kFree) {
      std::byte* const memory = MemoryOf(header);
      header->~Header();
      Free(memory);
      return;
    }
    if constexpr (HasDestroyShared<T>) {
      if (action == HeaderAction::kLetGo) {
        T::DestroyShared(LastShared<T>(ObjectOf(header)));
        return;
      }
    }
    ObjectOf(header)->~T();
    ReleaseWeak(header);
  }
};

}  // namespace shared_internal

// An owner, or null. A const T or a base of the object's class will do for T, as with plain pointers.
template <class T>
class Shared {
 public:
  using element_type = T;

  constexpr Shared() noexcept = default;
  constexpr Shared(std::nullptr_t) noexcept {}  // NOLINT(google-explicit-constructor): null is a value of every pointer

  Shared(const Shared& other) noexcept : object_(other.object_) {
    if (object_ != nullptr) shared_internal::AddStrong(header());
  }
  Shared(Shared&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}

  template <class U>
  requires(std::convertible_to<U*, T*> && !std::same_as<U, T>) Shared(const Shared<U>& other)
  noexcept  // NOLINT(google-explicit-constructor): derived to base, as with plain pointers
      : object_(other.object_) {
    if (object_ != nullptr) shared_internal::AddStrong(header());
  }
  template <class U>
  requires(std::convertible_to<U*, T*> && !std::same_as<U, T>) Shared(Shared<U>&& other)
  noexcept  // NOLINT(google-explicit-constructor)
      : object_(std::exchange(other.object_, nullptr)) {}

  Shared& operator=(Shared other) noexcept {
    swap(*this, other);
    return *this;
  }

  ~Shared() {
    if (object_ != nullptr) shared_internal::ReleaseStrong(header());
  }

  void Reset() noexcept { *this = Shared(); }

  T* get() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

  // How many owners there are at some moment. For tests and reports: it is old when it is read.
  uint32_t OwnerCount() const noexcept {
    return object_ == nullptr ? 0 : header()->strong.load(std::memory_order_relaxed);
  }

  friend void swap(Shared& a, Shared& b) noexcept { std::swap(a.object_, b.object_); }
  friend bool operator==(const Shared& a, const Shared& b) noexcept { return a.object_ == b.object_; }
  friend bool operator==(const Shared& a, std::nullptr_t) noexcept { return a.object_ == nullptr; }
  template <class H>
  friend H AbslHashValue(H state, const Shared& shared) {
    return H::combine(std::move(state), shared.object_);
  }

 private:
  template <class U>
  friend class Shared;
  template <class U>
  friend class WeakShared;
  template <class U, class... Args>
  friend Shared<U> MakeShared(Args&&... args);
  template <class U>
  friend Shared<U> ShareThis(U& object) noexcept;
  template <class U, class V>
  friend Shared<U> StaticCast(Shared<V> shared) noexcept;

  explicit Shared(T* adopted) noexcept : object_(adopted) {}

  shared_internal::Header* header() const {
    static_assert(std::is_base_of_v<SharedObject, T>, "a shared class derives from fraktor::SharedObject");
    return shared_internal::HeaderOf(object_);
  }

  T* object_ = nullptr;
};

// Remembers an object without keeping it alive; keeps only its memory. May be null.
template <class T>
class WeakShared {
 public:
  constexpr WeakShared() noexcept = default;
  template <class U>
  requires std::convertible_to<U*, T*> WeakShared(const Shared<U>& shared)
  noexcept  // NOLINT(google-explicit-constructor): a weaker form of the same
      : header_(shared == nullptr ? nullptr : shared.header()) {
    if (header_ != nullptr) shared_internal::AddWeak(header_);
  }

  WeakShared(const WeakShared& other) noexcept : header_(other.header_) {
    if (header_ != nullptr) shared_internal::AddWeak(header_);
  }
  WeakShared(WeakShared&& other) noexcept : header_(std::exchange(other.header_, nullptr)) {}

  template <class U>
  requires(std::convertible_to<U*, T*> && !std::same_as<U, T>) WeakShared(const WeakShared<U>& other)
  noexcept  // NOLINT(google-explicit-constructor): derived to base
      : header_(other.header_) {
    if (header_ != nullptr) shared_internal::AddWeak(header_);
  }
  template <class U>
  requires(std::convertible_to<U*, T*> && !std::same_as<U, T>) WeakShared(WeakShared<U>&& other)
  noexcept  // NOLINT(google-explicit-constructor)
      : header_(std::exchange(other.header_, nullptr)) {}

  WeakShared& operator=(WeakShared other) noexcept {
    swap(*this, other);
    return *this;
  }

  ~WeakShared() {
    if (header_ != nullptr) shared_internal::ReleaseWeak(header_);
  }

  void Reset() noexcept { *this = WeakShared(); }

  // An owner, if there is still one at this moment; otherwise null. Against the release of the last owner this is
  // decided by one atomic operation: either the object stays alive for this caller, or the answer is null.
  Shared<T> Lock() const noexcept {
    if (header_ == nullptr || !shared_internal::TryAddStrong(header_)) return nullptr;
    using Base = std::conditional_t<std::is_const_v<T>, const SharedObject, SharedObject>;
    return Shared<T>(static_cast<T*>(static_cast<Base*>(shared_internal::ObjectBehind(header_))));
  }

  // Whether Lock() would give null from now on. The opposite answer is old when it is read.
  bool IsExpired() const noexcept { return header_ == nullptr || header_->strong.load(std::memory_order_relaxed) == 0; }

  friend void swap(WeakShared& a, WeakShared& b) noexcept { std::swap(a.header_, b.header_); }

 private:
  template <class U>
  friend class WeakShared;

  // The header and not the object, which may be gone: the object starts behind it.
  shared_internal::Header* header_ = nullptr;
};

// The object after its last owner let go, on its way to its destructor: see SharedObject. Whoever holds it runs the
// destructor when he drops it.
template <class T>
class LastShared {
 public:
  LastShared(LastShared&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  LastShared& operator=(LastShared other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~LastShared() {
    if (object_ == nullptr) return;
    shared_internal::Header* const header = shared_internal::HeaderOf(object_);
    header->act(header, shared_internal::HeaderAction::kDestroy);
  }

  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }

 private:
  friend struct shared_internal::Block<T>;
  explicit LastShared(T* object) noexcept : object_(object) {}

  T* object_;
};

// Makes an object with its first owner. If the constructor throws, the memory is freed and the exception goes on.
template <class T, class... Args>
Shared<T> MakeShared(Args&&... args) {
  static_assert(std::is_base_of_v<SharedObject, T>, "a shared class derives from fraktor::SharedObject");
  static_assert(!std::is_const_v<T>, "make it mutable; Shared<T> converts to Shared<const T>");
  using Block = shared_internal::Block<T>;
  struct MemoryGuard {
    ~MemoryGuard() {
      if (memory != nullptr) Block::Free(memory);
    }
    std::byte* memory;
  };
  MemoryGuard guard{Block::Allocate()};
  auto* const header =
      new (guard.memory + Block::kObjectOffset - sizeof(shared_internal::Header)) shared_internal::Header(&Block::Act);
  T* const object = new (guard.memory + Block::kObjectOffset) T(std::forward<Args>(args)...);
  if (static_cast<const void*>(static_cast<const SharedObject*>(object)) != object) {
    shared_internal::DieOfDisplacedBase();
  }
  guard.memory = nullptr;
  header->strong.store(1, std::memory_order_relaxed);  // nobody else knows the object yet
  return Shared<T>(object);
}

// One more owner for an object that has at least one: `ShareThis(*this)`. Ends the process in a constructor or
// destructor, where there is none.
template <class T>
Shared<T> ShareThis(T& object) noexcept {
  if (!shared_internal::TryAddStrong(shared_internal::HeaderOf(std::addressof(object)))) {
    shared_internal::DieOfSharingTheDead();
  }
  return Shared<T>(std::addressof(object));
}

// From a base to a derived class that the caller knows to be right.
template <class T, class U>
Shared<T> StaticCast(Shared<U> shared) noexcept {
  return Shared<T>(static_cast<T*>(std::exchange(shared.object_, nullptr)));
}

}  // namespace fraktor::inline v0

template <class T>
struct std::hash<fraktor::Shared<T>> {
  size_t operator()(const fraktor::Shared<T>& shared) const noexcept { return std::hash<T*>()(shared.get()); }
};

#endif  // FRAKTOR_UTILS_SHARED_SHARED_H_
