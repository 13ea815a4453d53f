// CompactName: the name of an actor in 8 bytes. Internal to the registry and the actor tree.
//
// A name of up to 7 bytes is in place; so are the automatic names of numbers below 64^6. Larger
// automatic names are stored as their number. Other names are on the heap, with their length.
//
// Thread safety: thread-compatible; const methods only read.
#ifndef FRAKTOR_ACTOR_REGISTRY_INTERNAL_COMPACT_NAME_H_
#define FRAKTOR_ACTOR_REGISTRY_INTERNAL_COMPACT_NAME_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "fraktor/actor/path/internal/auto_name.h"
#include "fraktor/actor/path/internal/path_hash.h"

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

  // Returns the automatic name of a number below 2^62. It never needs the heap.
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

  // Writes a slash and the text so that they end at `end`, and returns where they begin. Overwrites
  // the 8 bytes before `end`, even if the name is shorter, so callers must write a path from its
  // end to its beginning.
  char* WriteWithSlashBefore(char* end) const {
    if ((word_ & 3) == kInPlace) {
      // The text fills the word from its second byte on. The slash replaces the first byte, and the
      // shift moves the end of the text to `end`.
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

  // Returns whether the name is `text`.
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
  // Each digit has six bits; there is at least one.
  size_t AutoDigits() const { return (static_cast<size_t>(std::bit_width(word_ >> 2 | 1)) + 5) / 6; }
  uint32_t HeapSize() const {
    uint32_t size;
    std::memcpy(&size, Heap(), sizeof(size));
    return size;
  }
  // Only names of more than 7 bytes are on the heap, so two overlapping words copy up to 16 bytes.
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

  // Zero, a pointer, or a value with a tag in the two lowest bits. For a name in place, the lowest
  // byte holds the tag and above it the size; the other bytes hold the text.
  uint64_t word_ = 0;
};

}  // namespace fraktor::inline v0::path_internal

#endif  // FRAKTOR_ACTOR_REGISTRY_INTERNAL_COMPACT_NAME_H_
