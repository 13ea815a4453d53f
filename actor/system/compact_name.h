// CompactName: the name of an actor in 8 bytes.
//
//   CompactName::Auto(27)          // "$B", as a number
//   CompactName::Of("cart")        // up to 7 bytes in place
//   CompactName::Of("customer-4711")  // on the heap, with its length
//
// Thread safety: thread-compatible; const methods only read.
#ifndef FRAKTOR_ACTOR_SYSTEM_COMPACT_NAME_H_
#define FRAKTOR_ACTOR_SYSTEM_COMPACT_NAME_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "fraktor/actor/path/auto_name.h"

namespace fraktor::inline v0::path_internal {

class CompactName {
 public:
  CompactName() = default;
  CompactName(CompactName&& other) noexcept : word_(std::exchange(other.word_, 0)) {}
  CompactName& operator=(CompactName&& other) noexcept {
    std::swap(word_, other.word_);
    return *this;
  }
  ~CompactName() {
    if (IsHeap()) std::unique_ptr<char[]>(Heap()).reset();
  }

  // `number` is below 2^62.
  static CompactName Auto(uint64_t number) { return CompactName(number << 2 | kAuto); }

  static CompactName Of(std::string_view text) {
    CompactName name;
    if (text.size() <= kMaxInPlace) {
      char bytes[8] = {};
      std::memcpy(bytes + (std::endian::native == std::endian::little ? 1 : 0), text.data(), text.size());
      std::memcpy(&name.word_, bytes, sizeof(bytes));
      name.word_ |= text.size() << 2 | kInPlace;
      return name;
    }
    auto heap = std::make_unique<char[]>(sizeof(uint32_t) + text.size());
    const auto size = static_cast<uint32_t>(text.size());
    std::memcpy(heap.get(), &size, sizeof(size));
    std::memcpy(heap.get() + sizeof(size), text.data(), text.size());
    name.word_ = reinterpret_cast<uintptr_t>(heap.release());
    return name;
  }

  bool IsAuto() const { return (word_ & 3) == kAuto; }

  // Calls `use(std::string_view)` with the name's text, which holds for the call.
  template <class Use>
  decltype(auto) With(Use use) const {
    if (IsAuto()) return use(AutoNameText(word_ >> 2).view());
    if ((word_ & 3) == kInPlace) {
      char bytes[8];
      std::memcpy(bytes, &word_, sizeof(bytes));
      const size_t begin = std::endian::native == std::endian::little ? 1 : 0;
      return use(std::string_view(bytes + begin, (word_ & 0xff) >> 2));
    }
    if (!IsHeap()) return use(std::string_view());
    uint32_t size;
    std::memcpy(&size, Heap(), sizeof(size));
    return use(std::string_view(Heap() + sizeof(size), size));
  }

 private:
  static constexpr uint64_t kAuto = 1;
  static constexpr uint64_t kInPlace = 2;
  static constexpr size_t kMaxInPlace = 7;

  explicit CompactName(uint64_t word) : word_(word) {}

  bool IsHeap() const { return word_ != 0 && (word_ & 3) == 0; }
  char* Heap() const { return reinterpret_cast<char*>(static_cast<uintptr_t>(word_)); }

  // Zero, a pointer, or one of the tags in the two lowest bits. In place: the size above the tag in the lowest byte,
  // the text in the others.
  uint64_t word_ = 0;
};

}  // namespace fraktor::inline v0::path_internal

#endif  // FRAKTOR_ACTOR_SYSTEM_COMPACT_NAME_H_
