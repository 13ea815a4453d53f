// The inbox of an actor: an intrusive multi-producer single-consumer stack in one atomic word that also says whether
// the actor must be run.
//
//   switch (inbox.Push(node)) {                    // any thread
//     case InboxPush::kQueued: break;              // somebody runs the owner, will run it, or has parked it
//     case InboxPush::kClaimed:                    // it was idle: the node is still ours, and so is the inbox
//       owner.private_list = node;
//       [[fallthrough]];
//     case InboxPush::kUnparked: Schedule(owner);  // only after PushSystem
//   }
//
//   void Run(Owner& owner) {                       // the thread to which the owner was scheduled: the holder
//     for (;;) {
//       Handle(owner.private_list);
//       if (inbox.TryGoIdle()) return;             // from here on a push may schedule the owner again
//       owner.private_list = inbox.TakeAll().first;
//     }
//   }
//
// The word is one of
//   idle                  nobody holds the inbox, and there is nothing in it
//   held                  exactly one thread holds it, or the owner is scheduled; there may be nodes in it
//   held + system         a system node is among the nodes: a holder that looks at nothing else looks at this
//   held + parked         nobody runs the owner, although there may be nodes: only a system push gets it scheduled
//
// To hold the inbox is to be its consumer: the holder alone may take, park and go idle, and the owner's private state
// (lists, counters) is the holder's. It is handed on by scheduling (the ready queue must order that), by idle and by
// parked (the word orders that).
//
// There is no closed state, and nothing resets the word. An owner that ends makes its references stale, empties the
// inbox, goes idle and is recycled as it is; the next user of the memory claims the inbox like any pusher. So a late
// pusher only causes a run that finds a node which was meant for somebody else.
//
// Thread safety: Push, PushSystem, PushChain, TryClaim and TryUnpark may be called by any thread at any time; the rest
// only by the holder.
//
// Progress: each operation is lock-free; a push repeats only if another thread changed the word meanwhile. TakeAll and
// TryGoIdle are wait-free.
//
// Cost: one read-modify-write per push, per take, and per park or idle; a system flag is looked for with one relaxed
// load. A burst of one thread is cheapest as a chain.
#ifndef FRAKTOR_UTILS_QUEUE_INBOX_H_
#define FRAKTOR_UTILS_QUEUE_INBOX_H_

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "fraktor/utils/queue/atomics.h"

namespace fraktor::inline v0 {

// What goes through an inbox derives from this. `next` belongs to whoever has the node: a list of the owner, a pool,
// the inbox. Aligned to 8 bytes, since the word keeps its flags in the low bits of the address.
template <typename Atomics = StdAtomics>
struct alignas(8) BasicInboxNode {
  // Handed over by the word: written before the release of a push, read after the acquire of a take.
  typename Atomics::template Plain<BasicInboxNode*> next{nullptr};
};

// A list in the order in which its nodes were pushed; both ends are null if there is none.
template <typename Atomics = StdAtomics>
struct BasicInboxList {
  BasicInboxNode<Atomics>* first = nullptr;
  BasicInboxNode<Atomics>* last = nullptr;
};

// What a pusher has to do.
enum class InboxPush : uint8_t {
  kQueued,    // Nothing: the node will be seen by the holder, or by the next one if the owner is parked.
  kClaimed,   // The inbox was idle. The caller holds it now and still has its nodes: put them into the owner's private
              // list and schedule it.
  kUnparked,  // The node is queued and the owner, which was parked, has to be scheduled by the caller, who holds the
              // inbox now.
};

// Nodes on their way to one inbox, to be pushed with one read-modify-write. Not thread-safe.
//
//   chain.Add(a);
//   chain.Add(b);
//   if (inbox.PushChain(chain) == InboxPush::kClaimed) owner.private_list = chain.TakeAll().first;   // a, b
//
// Kept newest first, as the inbox keeps its nodes, so that the usual push links one node and no more.
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

  // For any thread.

  // Pushes a user node. Answers kQueued or kClaimed; a parked owner stays parked. After kClaimed, `node->next` is null.
  InboxPush Push(Node* node);

  // Pushes a node that a parked owner must see too, and sets the system flag unless the inbox was idle. Answers any of
  // the three.
  InboxPush PushSystem(Node* node);

  // Pushes the nodes of a chain, which must not be empty, as if one by one but with nothing in between. After kQueued
  // the chain is empty; after kClaimed it is as it was.
  InboxPush PushChain(Chain& chain);

  // Makes the caller the holder if the inbox is idle. This is how the next user of a recycled owner takes it over.
  bool TryClaim();

  // Makes the caller the holder if the owner is parked: for whoever ends parked owners from outside.
  bool TryUnpark();

  // For the holder.

  // True if a system node has been pushed since the last take. A node that arrives later makes TryPark and TryGoIdle
  // fail.
  bool HasSystem() const { return (word_.load(std::memory_order_relaxed) & kSystem) != 0; }

  // True if a take would find something.
  bool HasNodes() const { return NodeOf(word_.load(std::memory_order_relaxed)) != nullptr; }

  // Takes everything, in the order of the pushes, and clears the system flag.
  List TakeAll() { return InOrderOfPush(TakeNewestFirst()); }

  // The same in the opposite order, as a list that ends with null: for a holder that sorts the nodes into lists of its
  // own anyway.
  Node* TakeNewestFirst();

  // Gives the inbox up although there may be nodes, in it or in the owner's private lists, until a system node is
  // pushed. Fails, and leaves the caller the holder, if one is there already.
  bool TryPark();

  // Gives the inbox up. Fails, and leaves the caller the holder, if there are nodes in it.
  bool TryGoIdle();

  // For tests and snapshots: what was true a moment ago.
  bool IsIdle() const { return word_.load(std::memory_order_relaxed) == kIdle; }
  bool IsParked() const { return (word_.load(std::memory_order_relaxed) & kParked) != 0; }

  // Turns a list that ends with null round.
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

  // Every change is a read-modify-write, so each release below heads a release sequence that the later changes
  // continue, and an acquire pairs with all releases since, not only with the last.
  //
  // - A push releases the node. It pairs with the acquire of the take that gets it.
  // - A push that claims acquires what the last holder released by going idle: the owner's private state. So does
  // TryClaim.
  // - A system push that unparks acquires what the holder released by parking, and releases its node.
  // - A take has nothing to release: what the holder did before stays its own until it parks or goes idle.
  // - The first look of a push is relaxed: only the value counts, and the exchange checks it.
  typename Atomics::template Atomic<uintptr_t> word_{kIdle};
};

using InboxNode = BasicInboxNode<>;
using InboxList = BasicInboxList<>;
using InboxChain = BasicInboxChain<>;
using Inbox = BasicInbox<>;

static_assert(sizeof(Inbox) == sizeof(uintptr_t));

// Only definitions from here on.

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
  // The look spares a read-modify-write that would fail.
  uintptr_t word = word_.load(std::memory_order_relaxed);
  assert((word & kHeld) != 0 && (word & kParked) == 0);
  if (word != kHeld) return false;
  return word_.compare_exchange_strong(word, kIdle, std::memory_order_release, std::memory_order_relaxed);
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_QUEUE_INBOX_H_
