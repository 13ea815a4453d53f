// CompactName: the name of an actor in 8 bytes.
//
//   CompactName::Auto(27)             // "$B": in place, as all automatic names below 64^6; the others are a number
//   CompactName::Of("cart")           // up to 7 bytes in place
//   CompactName::Of("customer-4711")  // on the heap, with its length
//
// Thread safety: thread-compatible; const methods only read.
#ifndef FRAKTOR_ACTOR_REGISTRY_COMPACT_NAME_H_
#define FRAKTOR_ACTOR_REGISTRY_COMPACT_NAME_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "fraktor/actor/path/auto_name.h"
#include "fraktor/actor/path/path_hash.h"

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

  // The automatic name of a number below 2^62. It never needs the heap.
  static CompactName Auto(uint64_t number) {
    const AutoNameText text(number);
    if (text.view().size() <= kMaxInPlace) return CompactName(InPlace(text.view()));
    return CompactName(number << 2 | kAuto);
  }

  static CompactName Of(std::string_view text) {
    CompactName name;
    if (text.size() <= kMaxInPlace) {
      name.word_ = InPlace(text);
      return name;
    }
    auto heap = std::make_unique<char[]>(sizeof(uint32_t) + text.size());
    const auto size = static_cast<uint32_t>(text.size());
    std::memcpy(heap.get(), &size, sizeof(size));
    std::memcpy(heap.get() + sizeof(size), text.data(), text.size());
    name.word_ = reinterpret_cast<uintptr_t>(heap.release());
    return name;
  }

  size_t size() const {
    switch (word_ & 3) {
      case kAuto:
        return 1 + AutoDigits();
      case kInPlace:
        return InPlaceSize();
      default:
        return word_ == 0 ? 0 : HeapSize();
    }
  }

  // Writes a slash and the text so that they end at `end`, and returns where they begin. What stands in the 8 bytes
  // before `end` is lost, also where the name is shorter: whoever writes a path goes from its end to its beginning.
  char* WriteWithSlashBefore(char* end) const {
    if ((word_ & 3) == kInPlace) {
      // The text fills the word from its second byte on. A slash in the first one makes it a step of the path, and the
      // shift puts its end where it belongs.
      const size_t length = InPlaceSize();
      StoreLittleEndian(((word_ & ~uint64_t{0xff}) | '/') << (8 * (kMaxInPlace - length)), end - sizeof(word_));
      return end - length - 1;
    }
    char* const begin = end - size();
    if ((word_ & 3) == kAuto) {
      *begin = '$';
      uint64_t number = word_ >> 2;
      for (char* digit = begin + 1; digit < end; ++digit, number >>= 6) *digit = kAutoNameDigits[number & 63];
    } else if (word_ != 0) {
      CopyHeapText(begin);
    }
    *(begin - 1) = '/';
    return begin - 1;
  }

  // Whether this is the text.
  bool Is(std::string_view text) const {
    switch (word_ & 3) {
      case kAuto:
        return IsAutoName(text);
      case kInPlace:
        return text.size() == InPlaceSize() && InPlace(text) == word_;
      default:
        if (word_ == 0) return text.empty();
        return EqualBytes(std::string_view(Heap() + sizeof(uint32_t), HeapSize()), text);
    }
  }

 private:
  static constexpr uint64_t kAuto = 1;
  static constexpr uint64_t kInPlace = 2;
  static constexpr size_t kMaxInPlace = 7;

  explicit CompactName(uint64_t word) : word_(word) {}

  static uint64_t InPlace(std::string_view text) { return PackBytes(text) << 8 | text.size() << 2 | kInPlace; }
  size_t InPlaceSize() const { return (word_ & 0xff) >> 2; }
  bool IsAutoName(std::string_view text) const {
    if (text.size() < 2 || text[0] != '$') return false;
    uint64_t number = word_ >> 2;
    for (size_t i = 1; i < text.size(); ++i, number >>= 6) {
      if (text[i] != kAutoNameDigits[number & 63]) return false;
    }
    return number == 0 && (text.size() == 2 || text.back() != kAutoNameDigits[0]);
  }
  // Six bits each, and at least one.
  size_t AutoDigits() const { return (static_cast<size_t>(std::bit_width(word_ >> 2 | 1)) + 5) / 6; }
  uint32_t HeapSize() const {
    uint32_t size;
    std::memcpy(&size, Heap(), sizeof(size));
    return size;
  }
  // The heap has names of more than 7 bytes only, so that two words which overlap are enough up to 16.
  void CopyHeapText(char* to) const {
    const char* const from = Heap() + sizeof(uint32_t);
    const size_t length = HeapSize();
    if (length > 2 * sizeof(uint64_t)) {
      std::memcpy(to, from, length);
      return;
    }
    uint64_t first;
    uint64_t last;
    std::memcpy(&first, from, sizeof(first));
    std::memcpy(&last, from + length - sizeof(last), sizeof(last));
    std::memcpy(to, &first, sizeof(first));
    std::memcpy(to + length - sizeof(last), &last, sizeof(last));
  }
  bool IsHeap() const { return word_ != 0 && (word_ & 3) == 0; }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a tagged pointer
  char* Heap() const { return reinterpret_cast<char*>(static_cast<uintptr_t>(word_)); }

  // Zero, a pointer, or one of the tags in the two lowest bits. In place: the size above the tag in the lowest byte,
  // the text in the others.
  uint64_t word_ = 0;
};

}  // namespace fraktor::inline v0::path_internal

#endif  // FRAKTOR_ACTOR_REGISTRY_COMPACT_NAME_H_
