// Inbox: an intrusive multi-producer single-consumer stack in one atomic word. The word also tells
// whether the owner, for example an actor, must be scheduled.
//
//   switch (inbox.Push(node)) {                    // any thread
//     case InboxPush::kQueued: break;              // the owner runs, will run, or is parked
//     case InboxPush::kClaimed:                    // it was idle: the caller still has the node, and holds the inbox
//       owner.private_list = node;
//       [[fallthrough]];
//     case InboxPush::kUnparked: Schedule(owner);  // only PushSystem returns this
//   }
//
//   void Run(Owner& owner) {                       // on the thread that the owner was scheduled on: the holder
//     for (;;) {
//       Handle(owner.private_list);
//       if (owner.inbox.TryGoIdle()) return;       // from here on a push may schedule the owner again
//       owner.private_list = owner.inbox.TakeAll().first;
//     }
//   }
//
// The word is in one of these states:
//   idle                  no thread holds the inbox, and it is empty
//   held                  exactly one thread holds it, or the owner is scheduled; it may contain nodes
//   held + system         like held, and a system node is among the nodes: a busy holder can test for this alone
//   held + parked         no thread runs the owner, even if there are nodes; only a system push schedules it
//
// The holder of the inbox is its consumer. Only the holder may take nodes, park and go idle, and
// only the holder may use the private state of the owner (lists, counters). The holder changes in
// three ways: by scheduling (the run queue must order that), and by the idle and the parked state
// (the word orders those).
//
// There is no closed state, and nothing resets the word. An owner that ends makes its references
// stale, empties the inbox, goes idle and is recycled as it is. The next user of the memory claims
// the inbox like any pusher. So a late pusher only causes a run that finds a node with a stale
// reference.
//
// Thread safety: any thread may call Push, PushSystem, PushChain, TryClaim and TryUnpark at any
// time. Only the holder may call the other methods.
//
// Progress: each operation is lock-free; a push repeats only if another thread changed the word
// meanwhile. TakeAll and TryGoIdle are wait-free.
//
// Cost: one read-modify-write per push, per take, and per park or idle. The test for a system node
// is one relaxed load. For a burst of one thread, a chain is cheapest.
#ifndef FRAKTOR_UTILS_QUEUE_INTERNAL_INBOX_H_
#define FRAKTOR_UTILS_QUEUE_INTERNAL_INBOX_H_

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "fraktor/utils/queue/internal/atomics.h"

namespace fraktor::inline v0::utils_internal {

// The base of everything that goes through an inbox. `next` belongs to the current container of the
// node: a list of the owner, a pool, or the inbox. Aligned to 8 bytes, since the word keeps its
// flags in the low bits of the address.
template <typename Atomics = StdAtomics>
struct alignas(8) BasicInboxNode {
  // The word hands it over: it is written before the release of a push, and read after the acquire
  // of a take.
  typename Atomics::template Plain<BasicInboxNode*> next{nullptr};
};

// A list in the order of the pushes. Both ends are null if it is empty.
template <typename Atomics = StdAtomics>
struct BasicInboxList {
  BasicInboxNode<Atomics>* first = nullptr;
  BasicInboxNode<Atomics>* last = nullptr;
};

// The result of a push: what the caller must do.
enum class InboxPush : uint8_t {
  kQueued,    // Nothing: the holder will see the node, or the next holder if the owner is parked.
  kClaimed,   // The inbox was idle. The caller now holds it and still has its nodes. It must add them to the
              // private list of the owner and schedule the owner.
  kUnparked,  // The node is queued. The owner was parked. The caller now holds the inbox, and must schedule the
              // owner.
};

// Nodes for one inbox that are pushed together, with one read-modify-write. Not thread-safe.
//
//   chain.Add(a);
//   chain.Add(b);
//   if (inbox.PushChain(chain) == InboxPush::kClaimed) owner.private_list = chain.TakeAll().first;   // a, b
//
// The newest node comes first, as in the inbox, so that a push usually links only one node.
template <typename Atomics = StdAtomics>
class BasicInboxChain {
 public:
  using Node = BasicInboxNode<Atomics>;
  using List = BasicInboxList<Atomics>;

  BasicInboxChain() = default;
  BasicInboxChain(const BasicInboxChain&) = delete;
  BasicInboxChain& operator=(const BasicInboxChain&) = delete;

  void Add(Node* node) {
    node->next = newest_;
    if (newest_ == nullptr) oldest_ = node;
    newest_ = node;
    ++size_;
  }

  bool empty() const { return newest_ == nullptr; }
  size_t size() const { return size_; }

  // Empties the chain and returns its nodes in the order in which they were added.
  List TakeAll();

 private:
  template <typename>
  friend class BasicInbox;

  void Clear() {
    newest_ = nullptr;
    oldest_ = nullptr;
    size_ = 0;
  }

  Node* newest_ = nullptr;
  Node* oldest_ = nullptr;
  size_t size_ = 0;
};

template <typename Atomics = StdAtomics>
class BasicInbox {
 public:
  using Node = BasicInboxNode<Atomics>;
  using List = BasicInboxList<Atomics>;
  using Chain = BasicInboxChain<Atomics>;

  // Idle.
  constexpr BasicInbox() = default;

  BasicInbox(const BasicInbox&) = delete;
  BasicInbox& operator=(const BasicInbox&) = delete;

  // Methods for any thread.

  // Pushes a user node. Returns kQueued or kClaimed; a parked owner stays parked. After kClaimed,
  // `node->next` is null. Inlined in every program: each message of an actor comes this way.
  [[gnu::always_inline]] InboxPush Push(Node* node);

  // Pushes a node that a parked owner must see too, and sets the system flag unless the inbox was
  // idle. Returns any of the three values.
  InboxPush PushSystem(Node* node);

  // Pushes the nodes of a chain, which must not be empty, without another push in between. After
  // kQueued the chain is empty; after kClaimed it is unchanged.
  InboxPush PushChain(Chain& chain);

  // Makes the caller the holder if the inbox is idle. The next user of a recycled owner takes it
  // over this way.
  bool TryClaim();

  // Makes the caller the holder if the owner is parked. For a thread that ends a parked owner from
  // outside.
  bool TryUnpark();

  // Methods for the holder.

  // True if a system node has been pushed since the last take. A node that arrives later makes
  // TryPark and TryGoIdle fail.
  bool HasSystem() const { return (word_.load(std::memory_order_relaxed) & kSystem) != 0; }

  // True if a take would return nodes.
  bool HasNodes() const { return NodeOf(word_.load(std::memory_order_relaxed)) != nullptr; }

  // Takes all nodes, in the order of the pushes, and clears the system flag.
  List TakeAll() { return InOrderOfPush(TakeNewestFirst()); }

  // Takes all nodes, newest first, as a list that ends with null. For a holder that sorts the nodes
  // into lists of its own anyway.
  Node* TakeNewestFirst();

  // Gives up the inbox until a system node is pushed, even if there are nodes in it or in the
  // private lists of the owner. Fails, and the caller stays the holder, if a system node is already
  // there.
  bool TryPark();

  // Gives up the inbox. Fails, and the caller stays the holder, if there are nodes in it.
  bool TryGoIdle();

  // For tests and snapshots: the state may have changed when the caller reads the result.
  bool IsIdle() const { return word_.load(std::memory_order_relaxed) == kIdle; }
  bool IsParked() const { return (word_.load(std::memory_order_relaxed) & kParked) != 0; }

  // Reverses a list that ends with null.
  static List InOrderOfPush(Node* newest_first);

 private:
  static constexpr uintptr_t kIdle = 0;
  static constexpr uintptr_t kSystem = 1;  // Never together with kParked.
  static constexpr uintptr_t kHeld = 2;    // Set whenever the word is not kIdle.
  static constexpr uintptr_t kParked = 4;
  static constexpr uintptr_t kFlags = kSystem | kHeld | kParked;
  static_assert(alignof(Node) > kFlags, "the flags need the low bits of a node's address");

  static Node* NodeOf(uintptr_t word) { return reinterpret_cast<Node*>(word & ~kFlags); }
  static uintptr_t WordOf(Node* node) {
    const auto word = reinterpret_cast<uintptr_t>(node);
    assert(node != nullptr && (word & kFlags) == 0);
    return word;
  }

  // Every change is a read-modify-write. So each release below heads a release sequence that the
  // later changes continue, and an acquire pairs with all earlier releases, not only with the last
  // one.
  //
  // - A push releases the node. It pairs with the acquire of the take that gets the node.
  // - A push that claims the inbox acquires the private state of the owner, which the last holder
  //   released by going idle. TryClaim does the same.
  // - A system push that unparks acquires the state that the holder released by parking, and
  //   releases its node.
  // - A take releases nothing: the holder keeps its state until it parks or goes idle.
  // - The first load of a push is relaxed: only the value counts, and the exchange checks it.
  typename Atomics::template Atomic<uintptr_t> word_{kIdle};
};

using InboxNode = BasicInboxNode<>;
using InboxList = BasicInboxList<>;
using InboxChain = BasicInboxChain<>;
using Inbox = BasicInbox<>;

static_assert(sizeof(Inbox) == sizeof(uintptr_t));

// Definitions only from here on.

template <typename Atomics>
BasicInboxList<Atomics> BasicInboxChain<Atomics>::TakeAll() {
  Node* const newest = newest_;
  Clear();
  return BasicInbox<Atomics>::InOrderOfPush(newest);
}

template <typename Atomics>
inline InboxPush BasicInbox<Atomics>::Push(Node* node) {
  uintptr_t word = word_.load(std::memory_order_relaxed);
  for (;;) {
    if (word == kIdle) {
      if (word_.compare_exchange_weak(word, kHeld, std::memory_order_acquire, std::memory_order_relaxed)) {
        node->next = nullptr;
        return InboxPush::kClaimed;
      }
      continue;
    }
    node->next = NodeOf(word);
    const uintptr_t pushed = WordOf(node) | (word & kFlags);
    if (word_.compare_exchange_weak(word, pushed, std::memory_order_release, std::memory_order_relaxed)) {
      return InboxPush::kQueued;
    }
  }
}

template <typename Atomics>
InboxPush BasicInbox<Atomics>::PushSystem(Node* node) {
  uintptr_t word = word_.load(std::memory_order_relaxed);
  for (;;) {
    if (word == kIdle) {
      if (word_.compare_exchange_weak(word, kHeld, std::memory_order_acquire, std::memory_order_relaxed)) {
        node->next = nullptr;
        return InboxPush::kClaimed;
      }
      continue;
    }
    node->next = NodeOf(word);
    const uintptr_t pushed = WordOf(node) | kHeld | kSystem;
    if (word_.compare_exchange_weak(word, pushed, std::memory_order_acq_rel, std::memory_order_relaxed)) {
      return (word & kParked) != 0 ? InboxPush::kUnparked : InboxPush::kQueued;
    }
  }
}

template <typename Atomics>
InboxPush BasicInbox<Atomics>::PushChain(Chain& chain) {
  assert(!chain.empty());
  uintptr_t word = word_.load(std::memory_order_relaxed);
  for (;;) {
    if (word == kIdle) {
      if (word_.compare_exchange_weak(word, kHeld, std::memory_order_acquire, std::memory_order_relaxed)) {
        chain.oldest_->next = nullptr;
        return InboxPush::kClaimed;
      }
      continue;
    }
    chain.oldest_->next = NodeOf(word);
    const uintptr_t pushed = WordOf(chain.newest_) | (word & kFlags);
    if (word_.compare_exchange_weak(word, pushed, std::memory_order_release, std::memory_order_relaxed)) {
      chain.Clear();
      return InboxPush::kQueued;
    }
  }
}

template <typename Atomics>
bool BasicInbox<Atomics>::TryClaim() {
  uintptr_t word = kIdle;
  return word_.compare_exchange_strong(word, kHeld, std::memory_order_acquire, std::memory_order_relaxed);
}

template <typename Atomics>
bool BasicInbox<Atomics>::TryUnpark() {
  uintptr_t word = word_.load(std::memory_order_relaxed);
  do {
    if ((word & kParked) == 0) return false;
  } while (!word_.compare_exchange_weak(word, word & ~kParked, std::memory_order_acquire, std::memory_order_relaxed));
  return true;
}

template <typename Atomics>
inline BasicInboxNode<Atomics>* BasicInbox<Atomics>::TakeNewestFirst() {
  const uintptr_t word = word_.exchange(kHeld, std::memory_order_acquire);
  assert((word & kHeld) != 0 && (word & kParked) == 0);
  return NodeOf(word);
}

template <typename Atomics>
inline BasicInboxList<Atomics> BasicInbox<Atomics>::InOrderOfPush(Node* newest_first) {
  List list{nullptr, newest_first};
  for (Node* node = newest_first; node != nullptr;) {
    Node* const older = node->next;
    node->next = list.first;
    list.first = node;
    node = older;
  }
  return list;
}

template <typename Atomics>
bool BasicInbox<Atomics>::TryPark() {
  uintptr_t word = word_.load(std::memory_order_relaxed);
  do {
    assert((word & kHeld) != 0 && (word & kParked) == 0);
    if ((word & kSystem) != 0) return false;
  } while (!word_.compare_exchange_weak(word, word | kParked, std::memory_order_release, std::memory_order_relaxed));
  return true;
}

template <typename Atomics>
inline bool BasicInbox<Atomics>::TryGoIdle() {
  // The load avoids a read-modify-write that would fail.
  uintptr_t word = word_.load(std::memory_order_relaxed);
  assert((word & kHeld) != 0 && (word & kParked) == 0);
  if (word != kHeld) return false;
  return word_.compare_exchange_strong(word, kIdle, std::memory_order_release, std::memory_order_relaxed);
}

}  // namespace fraktor::inline v0::utils_internal

#endif  // FRAKTOR_UTILS_QUEUE_INTERNAL_INBOX_H_
