// OpenAsks: the asks of one actor that have no reply yet, ordered by deadline. Add is called when a
// promise is opened, Remove when its reply has come, and Earliest when the timer has fired.
//
// The cost does not depend on how many asks are open, nor on their deadlines, for the usual asker,
// whose asks have one timeout or two: asks are appended to two lanes, which are lists in the order
// of the deadlines. An ask that is due before the last of both lanes goes to a pairing heap: there
// Add costs O(1) and Remove O(log n), amortized. The links are in the promises, so nothing is
// allocated.
//
// Thread safety: belongs to the turn of the asker.
#ifndef FRAKTOR_ACTOR_SLOT_INTERNAL_OPEN_ASKS_H_
#define FRAKTOR_ACTOR_SLOT_INTERNAL_OPEN_ASKS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "fraktor/actor/slot/internal/promise_slot.h"

namespace fraktor::inline v0::actor_internal {

// How promises are found by their links, which are numbers.
struct PromiseLinks {
  using Node = PromiseSlot;
  static PromiseSlot* At(uint32_t number) { return ProcessPromises().At(number); }
  static uint32_t NumberOf(const PromiseSlot& promise) { return PromiseSlotTable::IndexOf(&promise); }
  static int64_t DeadlineOf(const PromiseSlot& promise) { return promise.deadline_ns(); }
};

// Links::Node has `uint32_t previous, next, child`, which belong to this as long as the node is in
// it. A template for tests that count the steps.
template <class Links = PromiseLinks>
class BasicOpenAsks {
 public:
  using Node = typename Links::Node;

  void Add(Node& ask) {
    // Most actors have one open ask.
    if (lanes_[0].last == nullptr) [[likely]] {
      PutAlone(lanes_[0], ask);
    } else {
      AddToOthers(ask);
    }
  }

  void Remove(Node& ask) {
    if (lanes_[0].first == &ask && lanes_[0].last == &ask) [[likely]] {
      lanes_[0] = {};
    } else {
      RemoveFromOthers(ask);
    }
  }

  // The ask with the earliest deadline, of those that SetOverdue was not called for; null if there
  // is none.
  Node* Earliest() const {
    Node* earliest = lanes_[0].first;
    for (Node* const other : {lanes_[1].first, heap_}) {
      if (other != nullptr && (earliest == nullptr || IsBefore(*other, *earliest))) earliest = other;
    }
    return earliest;
  }

  // Ignores the deadline of the ask, whose reply is about to arrive. The ask stays until Remove.
  void SetOverdue(Node& ask) {
    Remove(ask);
    Append(overdue_, ask);
  }

  // Removes one ask and returns it: first overdue ones, then the earliest. Null if there is none.
  Node* TakeFirst() {
    Node* const ask = overdue_.first != nullptr ? overdue_.first : Earliest();
    if (ask != nullptr) Remove(*ask);
    return ask;
  }

 private:
  struct Lane {
    Node* first = nullptr;
    Node* last = nullptr;
  };

  static constexpr uint32_t kNone = UINT32_MAX;
  // In Node::child: the node is in a lane, not in the heap.
  static constexpr uint32_t kInLane = UINT32_MAX - 1;

  static Node* At(uint32_t number) { return number == kNone ? nullptr : Links::At(number); }
  static uint32_t NumberOf(const Node* node) { return node == nullptr ? kNone : Links::NumberOf(*node); }
  static bool IsBefore(const Node& a, const Node& b) { return Links::DeadlineOf(a) < Links::DeadlineOf(b); }

  static void PutAlone(Lane& lane, Node& ask) {
    ask.previous = ask.next = kNone;
    ask.child = kInLane;
    lane.first = lane.last = &ask;
  }

  static void Append(Lane& lane, Node& ask) {
    if (lane.last == nullptr) {
      PutAlone(lane, ask);
      return;
    }
    ask.previous = Links::NumberOf(*lane.last);
    ask.next = kNone;
    ask.child = kInLane;
    lane.last->next = Links::NumberOf(ask);
    lane.last = &ask;
  }

  [[gnu::noinline]] void AddToOthers(Node& ask) {
    for (Lane& lane : lanes_) {
      if (lane.last == nullptr || !IsBefore(ask, *lane.last)) {
        Append(lane, ask);
        return;
      }
    }
    ask.previous = ask.next = ask.child = kNone;
    heap_ = heap_ == nullptr ? &ask : Meld(*heap_, ask);
  }

  [[gnu::noinline]] void RemoveFromOthers(Node& ask) {
    if (ask.child == kInLane) {
      RemoveFromLane(ask);
    } else {
      RemoveFromHeap(ask);
    }
  }

  void RemoveFromLane(Node& ask) {
    Node* const before = At(ask.previous);
    Node* const after = At(ask.next);
    if (before != nullptr) before->next = ask.next;
    if (after != nullptr) after->previous = ask.previous;
    if (before != nullptr && after != nullptr) return;
    // The node is at an end of a lane.
    for (Lane* const lane : {&lanes_[0], &lanes_[1], &overdue_}) {
      if (lane->first == &ask) lane->first = after;
      if (lane->last == &ask) lane->last = before;
    }
  }

  // Puts the later of two roots below the earlier, as its first child. The root's `previous` and
  // `next` are kNone.
  static Node* Meld(Node& a, Node& b) {
    Node& root = IsBefore(b, a) ? b : a;
    Node& below = &root == &a ? b : a;
    below.previous = Links::NumberOf(root);
    below.next = root.child;
    if (Node* const sibling = At(root.child)) sibling->previous = Links::NumberOf(below);
    root.child = Links::NumberOf(below);
    return &root;
  }

  void RemoveFromHeap(Node& ask) {
    Node* const below = MeldSiblings(At(ask.child));
    if (heap_ == &ask) {
      heap_ = below;
      return;
    }
    // `previous` of a first child is its parent.
    Node& before = *At(ask.previous);
    (before.child == Links::NumberOf(ask) ? before.child : before.next) = ask.next;
    if (Node* const after = At(ask.next)) after->previous = ask.previous;
    if (below != nullptr) heap_ = Meld(*heap_, *below);
  }

  // Makes one tree of a list of siblings whose parent is removed: melds pairs, and then the pairs
  // from last to first.
  static Node* MeldSiblings(Node* first) {
    Node* pairs = nullptr;  // The last pair. `next` leads to the pairs before it.
    while (first != nullptr) {
      Node* pair = first;
      Node* const second = At(first->next);
      first = second == nullptr ? nullptr : At(second->next);
      pair->previous = pair->next = kNone;
      if (second != nullptr) {
        second->previous = second->next = kNone;
        pair = Meld(*pair, *second);
      }
      pair->next = NumberOf(pairs);
      pairs = pair;
    }
    if (pairs == nullptr) return nullptr;
    Node* root = pairs;
    pairs = At(root->next);
    root->next = kNone;
    while (pairs != nullptr) {
      Node* const next = At(pairs->next);
      pairs->next = kNone;
      root = Meld(*root, *pairs);
      pairs = next;
    }
    return root;
  }

  // In the order of their deadlines.
  std::array<Lane, 2> lanes_;
  Node* heap_ = nullptr;
  Lane overdue_;
};

using OpenAsks = BasicOpenAsks<>;

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_SLOT_INTERNAL_OPEN_ASKS_H_
