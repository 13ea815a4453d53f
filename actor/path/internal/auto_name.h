// AutoName: the names that the runtime gives to actors without one: `$a`, `$b`, ..., `$~`, `$ab`,
// ...
//
//   std::string first = AutoName(0);                        // "$a"
//   std::string later = AutoName(64);                       // "$ab"
//   std::optional<uint64_t> number = ParseAutoName("$ab");  // 64
//
// The digits are in base 64, the least significant first: a-z, A-Z, 0-9, + and ~. So the runtime
// stores a number, and no text, for an actor without a name.
//
// Thread safety: free functions over values.
#ifndef FRAKTOR_ACTOR_PATH_INTERNAL_AUTO_NAME_H_
#define FRAKTOR_ACTOR_PATH_INTERNAL_AUTO_NAME_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fraktor::inline v0::path_internal {

// The length of the longest automatic name, without its prefix.
inline constexpr size_t kMaxAutoNameDigits = 11;

inline constexpr std::string_view kAutoNameDigits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+~";

// The automatic name of a number, on the stack.
class AutoNameText {
 public:
  // `prefix` has at most two characters: "$", or "$$" for function references.
  explicit AutoNameText(uint64_t number, std::string_view prefix = "$") {
    for (char c : prefix.substr(0, 2)) text_[size_++] = c;
    do {
      text_[size_++] = kAutoNameDigits[number & 63];
      number >>= 6;
    } while (number != 0);
  }

  std::string_view view() const { return std::string_view(text_, size_); }

 private:
  char text_[2 + kMaxAutoNameDigits];
  size_t size_ = 0;
};

std::string AutoName(uint64_t number);

// Returns the name of the reference that waits for the reply of `target_name`: "greeter$a".
std::string TempName(std::string_view target_name, uint64_t number);

// Returns the number for which AutoName returns exactly this text. None for other texts.
std::optional<uint64_t> ParseAutoName(std::string_view name);

}  // namespace fraktor::inline v0::path_internal

#endif  // FRAKTOR_ACTOR_PATH_INTERNAL_AUTO_NAME_H_
