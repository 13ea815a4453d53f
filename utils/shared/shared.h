// Shared<T> and WeakShared<T>: shared ownership by an intrusive pointer of eight bytes, and a weak
// pointer.
//
//   class Connection : public SharedObject {
//    public:
//     explicit Connection(int socket) : socket_(socket) {}
//     void OnReadable() { ReadFrom(socket_); }
//
//    private:
//     const int socket_;
//   };
//
//   Shared<Connection> connection = MakeShared<Connection>(socket);   // one allocation for counts and object
//   poller.Register(socket, [weak = WeakShared<Connection>(connection)] {
//     if (Shared<Connection> alive = weak.Lock()) alive->OnReadable();
//   });
//
// The last Shared destroys the object. The memory is freed when the last WeakShared has gone too.
// The counts and the function that destroys the object stand in 16 bytes before the object, so
// ShareThis(*this) makes a Shared from a plain reference.
//
// Thread safety: as std::shared_ptr. Several threads may use different pointers to one object. One
// pointer is a plain value. The object protects its own members. Everything that happens before the
// release of a Shared happens before the destructor.
//
// Costs: a copy, a Lock() and a release are one atomic read-modify-write each; a move touches no
// atomic. An object has at most 2^31 owners; one more ends the process, since the count would wrap.
//
// Prefer std::unique_ptr, or an ActorRef. Shared is for objects that really have several owners on
// several threads.
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

// The base of every shared class. It must lie at the very start of the object, so it must be the
// first base (or a base of the first base). The compiler moves the first base if it is not
// polymorphic and the class is; MakeShared then ends the process with a text.
//
// Only MakeShared makes such objects. A constructor or destructor must not call ShareThis.
//
// A class may decide how it is destroyed when its last owner lets go, for example on which thread:
//
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

// Lies immediately before each shared object.
struct Header {
  using Act = void (*)(Header*, HeaderAction) noexcept;

  explicit Header(Act function) : act(function) {}

  // The number of owners. 0 during construction and after the last owner has gone; it never rises
  // from 0 again. A decrement is acq_rel: its release half pairs with the acquire half of the
  // decrement that reaches 0, so that the destructor sees all writes of all owners.
  std::atomic<uint32_t> strong{0};
  // The number of WeakShareds, plus one for all owners together. The same pairing, for freeing the
  // memory.
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

// Call it only while the object is alive.
inline SharedObject* ObjectBehind(Header* header) {
  return std::launder(reinterpret_cast<SharedObject*>(reinterpret_cast<std::byte*>(header) + sizeof(Header)));
}

// The caller already has a strong reference, so the count is above 0.
inline void AddStrong(Header* header) {
  // relaxed: nothing is read because of it.
  if (header->strong.fetch_add(1, std::memory_order_relaxed) >= kMaxCount) DieOfTooManyOwners();
}

// The caller has only a weak reference. Returns false if the last owner has gone.
inline bool TryAddStrong(Header* header) {
  uint32_t strong = header->strong.load(std::memory_order_relaxed);
  while (strong != 0) {
    if (strong >= kMaxCount) DieOfTooManyOwners();
    // acquire: pairs with the release decrement of an owner that wrote to the object and let go.
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

// The layout of one allocation: the header and an object of type T.
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

// An owner, or null. T may be const, or a base of the object's class, as with plain pointers.
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

  // The number of owners at some moment. For tests and reports: it may have changed when the caller
  // reads it.
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

// Refers to an object without keeping it alive; keeps only its memory. May be null.
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

  // Returns an owner if the object still has one, otherwise null. One atomic operation decides
  // between this call and the release of the last owner: either the object stays alive for this
  // caller, or the result is null.
  Shared<T> Lock() const noexcept {
    if (header_ == nullptr || !shared_internal::TryAddStrong(header_)) return nullptr;
    using Base = std::conditional_t<std::is_const_v<T>, const SharedObject, SharedObject>;
    return Shared<T>(static_cast<T*>(static_cast<Base*>(shared_internal::ObjectBehind(header_))));
  }

  // True if Lock() returns null from now on. False may be outdated when the caller reads it.
  bool IsExpired() const noexcept { return header_ == nullptr || header_->strong.load(std::memory_order_relaxed) == 0; }

  friend void swap(WeakShared& a, WeakShared& b) noexcept { std::swap(a.header_, b.header_); }

 private:
  template <class U>
  friend class WeakShared;

  // The header, and not the object, which may be destroyed. The object begins right after the
  // header.
  shared_internal::Header* header_ = nullptr;
};

// An object whose last owner has let go and whose destructor has not run: see SharedObject. The
// destructor of LastShared runs it.
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

// Makes an object and its first owner. If the constructor throws, the memory is freed and the
// exception propagates.
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
  header->strong.store(1, std::memory_order_relaxed);  // no other thread knows the object yet
  return Shared<T>(object);
}

// Makes one more owner for an object that has at least one: `ShareThis(*this)`. Ends the process if
// the object has no owner, as in its constructor or destructor.
template <class T>
Shared<T> ShareThis(T& object) noexcept {
  if (!shared_internal::TryAddStrong(shared_internal::HeaderOf(std::addressof(object)))) {
    shared_internal::DieOfSharingTheDead();
  }
  return Shared<T>(std::addressof(object));
}

// Casts from a base to a derived class. The caller must know that the object is of that class.
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
