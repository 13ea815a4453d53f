// IndexedSet: a list without duplicates that finds, adds and removes an element in constant time.
//
//   IndexedSet<ActorRef, 2> watchers;
//   watchers.Insert(watcher);                                   // false if it is there already
//   for (const ActorRef each : watchers) Tell(each, Ended{});
//   watchers.Erase(watcher);                                    // false if it is not there
//
// The elements have the order of their insertion, and iteration never follows a hash. A set of at
// most kMaxUnindexed elements keeps that order in Erase. In a larger set, the last element takes
// the place of the erased one. So the order depends on the calls alone, and is the same in every
// run.
//
// A set of up to kInline elements allocates nothing. A set of more than kMaxUnindexed elements has
// a hash index beside the list.
//
// `KeyOf` tells which part of an element identifies it; by default the element is its own key. Keys
// need operator== and AbslHashValue.
//
// Thread safety: as a std::vector.
#ifndef FRAKTOR_UTILS_TABLE_INDEXED_SET_H_
#define FRAKTOR_UTILS_TABLE_INDEXED_SET_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace fraktor::inline v0 {

template <class T, size_t kInline = 1, class KeyOf = std::identity>
class IndexedSet {
 public:
  using Key = std::decay_t<std::invoke_result_t<const KeyOf&, const T&>>;
  using Items = absl::InlinedVector<T, kInline>;
  using const_iterator = typename Items::const_iterator;
  using value_type = T;

  static constexpr size_t kMaxUnindexed = 16;

  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  const_iterator begin() const { return items_.begin(); }
  const_iterator end() const { return items_.end(); }
  const T& operator[](size_t i) const { return items_[i]; }
  const T& back() const { return items_.back(); }
  absl::Span<const T> span() const { return items_; }

  bool Contains(const Key& key) const { return PlaceOf(key) < items_.size(); }

  // Returns the element with that key, or null. The caller must not change the key through the
  // pointer, which is valid until the next change of the set.
  T* Find(const Key& key) {
    const size_t place = PlaceOf(key);
    return place < items_.size() ? &items_[place] : nullptr;
  }

  // Adds an element at the end. Returns false, and changes nothing, if there is one with its key.
  bool Insert(T item) {
    if (index_ != nullptr) {
      if (!index_->try_emplace(KeyOf()(item), items_.size()).second) return false;
      items_.push_back(std::move(item));
      return true;
    }
    if (Contains(KeyOf()(item))) return false;
    items_.push_back(std::move(item));
    if (items_.size() > kMaxUnindexed) MakeIndex();
    return true;
  }

  // Returns false if there is no element with that key.
  bool Erase(const Key& key) {
    const size_t place = PlaceOf(key);
    if (place >= items_.size()) return false;
    if (index_ == nullptr) {
      items_.erase(items_.begin() + static_cast<ptrdiff_t>(place));
      return true;
    }
    // Not by `key`, which may be a part of the element.
    index_->erase(KeyOf()(items_[place]));
    if (place + 1 < items_.size()) {
      items_[place] = std::move(items_.back());
      index_->find(KeyOf()(items_[place]))->second = place;
    }
    items_.pop_back();
    // Well below the size at which an index is made, so that a set near that size does not make one
    // again and again.
    if (items_.size() <= kMaxUnindexed / 2) index_ = nullptr;
    return true;
  }

  // Removes all elements for which `is_wanted` returns false, in linear time. The others keep their
  // order.
  template <class IsWanted>
  void Keep(IsWanted is_wanted) {
    size_t kept = 0;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (!is_wanted(static_cast<const T&>(items_[i]))) continue;
      if (kept != i) items_[kept] = std::move(items_[i]);
      ++kept;
    }
    if (kept == items_.size()) return;
    items_.erase(items_.begin() + static_cast<ptrdiff_t>(kept), items_.end());
    index_ = nullptr;
    if (items_.size() > kMaxUnindexed) MakeIndex();
  }

  void Clear() {
    items_.clear();
    index_ = nullptr;
  }

 private:
  using Index = absl::flat_hash_map<Key, size_t>;

  // Returns size() if there is no such element.
  size_t PlaceOf(const Key& key) const {
    if (index_ != nullptr) {
      const auto found = index_->find(key);
      return found == index_->end() ? items_.size() : found->second;
    }
    size_t place = 0;
    while (place < items_.size() && !(KeyOf()(items_[place]) == key)) ++place;
    return place;
  }

  void MakeIndex() {
    index_ = std::make_unique<Index>();
    index_->reserve(2 * items_.size());
    for (size_t i = 0; i < items_.size(); ++i) index_->emplace(KeyOf()(items_[i]), i);
  }

  Items items_;
  std::unique_ptr<Index> index_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TABLE_INDEXED_SET_H_
