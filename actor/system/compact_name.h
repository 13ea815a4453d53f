// CompactName: the name of an actor in 8 bytes.
//
//   CompactName::Auto(27)             // "$B", as a number
//   CompactName::Of("cart")           // up to 7 bytes in place
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

  // `number` is below 2^62.
  static CompactName Auto(uint64_t number) { return CompactName(number << 2 | kAuto); }

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

  bool IsAuto() const { return (word_ & 3) == kAuto; }

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

  // Writes the text so that it ends at `end`, and returns where it begins.
  char* WriteBefore(char* end) const {
    switch (word_ & 3) {
      case kAuto: {
        const size_t digits = AutoDigits();
        char* const begin = end - digits - 1;
        *begin = '$';
        uint64_t number = word_ >> 2;
        for (size_t i = 1; i <= digits; ++i, number >>= 6) begin[i] = kAutoNameDigits[number & 63];
        return begin;
      }
      case kInPlace: {
        char* const begin = end - InPlaceSize();
        if (const size_t length = InPlaceSize(); length >= 4) {
          // Two words that overlap.
          StoreLittleEndian(static_cast<uint32_t>(word_ >> 8), begin);
          StoreLittleEndian(static_cast<uint32_t>(word_ >> (8 * length - 24)), end - 4);
        } else {
          for (size_t i = 0; i < length; ++i) begin[i] = InPlaceCharacter(i);
        }
        return begin;
      }
      default: {
        if (word_ == 0) return end;
        char* const begin = end - HeapSize();
        std::memcpy(begin, Heap() + sizeof(uint32_t), HeapSize());
        return begin;
      }
    }
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
  char InPlaceCharacter(size_t i) const { return static_cast<char>(word_ >> (8 * i + 8)); }
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
  bool IsHeap() const { return word_ != 0 && (word_ & 3) == 0; }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a tagged pointer
  char* Heap() const { return reinterpret_cast<char*>(static_cast<uintptr_t>(word_)); }

  // Zero, a pointer, or one of the tags in the two lowest bits. In place: the size above the tag in the lowest byte,
  // the text in the others.
  uint64_t word_ = 0;
};

}  // namespace fraktor::inline v0::path_internal

#endif  // FRAKTOR_ACTOR_SYSTEM_COMPACT_NAME_H_
