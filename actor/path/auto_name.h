// Names that the runtime makes: `$a`, `$b`, ..., `$~`, `$ab`, ...
//
//   AutoName(0)               // "$a"
//   AutoName(64)              // "$ab"
//   ParseAutoName("$ab")      // 64
//
// The digits are in base 64, the least significant first, from a-z, A-Z, 0-9, + and ~. So an actor without a name of
// its own needs a number and no text.
//
// Thread safety: free functions over values.
#ifndef FRAKTOR_ACTOR_PATH_AUTO_NAME_H_
#define FRAKTOR_ACTOR_PATH_AUTO_NAME_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fraktor::inline v0 {

// The longest automatic name without its prefix.
inline constexpr size_t kMaxAutoNameDigits = 11;

namespace path_internal {
inline constexpr std::string_view kAutoNameDigits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+~";
}

// The text of a number, on the stack.
class AutoNameText {
 public:
  // `prefix` has at most two characters: "$", or "$$" for function refs.
  explicit AutoNameText(uint64_t number, std::string_view prefix = "$") {
    for (char c : prefix.substr(0, 2)) text_[size_++] = c;
    do {
      text_[size_++] = path_internal::kAutoNameDigits[number & 63];
      number >>= 6;
    } while (number != 0);
  }

  std::string_view view() const { return std::string_view(text_, size_); }

 private:
  char text_[2 + kMaxAutoNameDigits];
  size_t size_ = 0;
};

std::string AutoName(uint64_t number);

// The name of the ref that waits for an answer from `target_name`: "greeter$a".
std::string TempName(std::string_view target_name, uint64_t number);

// The number that AutoName would turn into exactly this text; none if there is none.
std::optional<uint64_t> ParseAutoName(std::string_view name);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATH_AUTO_NAME_H_
