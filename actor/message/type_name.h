// TypeName: the name of a C++ type as readable text, at compile time.
//
//   static_assert(TypeName<shop::Order>() == "shop::Order");
//
// For logs, metrics and trace hashes of simulations. Never use it on the wire or in storage: there
// a manifest names a type.
//
// gcc and clang give the same text for classes and enums in namespaces, also in unnamed ones, and
// for templates of such types, built-in types and integers of a declared type. They differ for
// lambdas, classes inside of functions, `auto` parameters and characters other than `char`. Inline
// namespaces of the standard library and of this library are left out; others are as the compiler
// prints them.
//
// Thread safety: constants.
#ifndef FRAKTOR_ACTOR_MESSAGE_TYPE_NAME_H_
#define FRAKTOR_ACTOR_MESSAGE_TYPE_NAME_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fraktor::inline v0 {

// A namespace without types: gcc leaves out the namespace that a type shares with this function.
namespace type_name_internal {

template <class T>
constexpr std::string_view Signature() {
  const char* const text = __PRETTY_FUNCTION__;
  return text;
}

inline constexpr std::string_view kProbe = "double";
inline constexpr size_t kPrefix = Signature<double>().find(kProbe, Signature<double>().find('['));
inline constexpr size_t kSuffix = Signature<double>().size() - kPrefix - kProbe.size();

template <class T>
constexpr std::string_view CompilersName() {
  std::string_view name = Signature<T>();
  name.remove_prefix(kPrefix);
  name.remove_suffix(kSuffix);
  return name;
}

struct Spelling {
  std::string_view from;
  std::string_view to;
};

// Texts that gcc and the standard libraries spell differently from clang; the longer first. No
// replacement is longer than twice the text that it replaces.
inline constexpr std::array<Spelling, 12> kSpellings = {{
    {"fraktor::v0::actor_internal::", "fraktor::"},
    {"fraktor::actor_internal::", "fraktor::"},
    {"fraktor::v0::", "fraktor::"},
    {"std::__cxx11::", "std::"},
    {"std::__1::", "std::"},
    {"{anonymous}", "(anonymous namespace)"},
    {"long long unsigned int", "unsigned long long"},
    {"long long int", "long long"},
    {"long unsigned int", "unsigned long"},
    {"long int", "long"},
    {"short unsigned int", "unsigned short"},
    {"short int", "short"},
}};

constexpr bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

template <size_t kCapacity>
struct Text {
  std::array<char, kCapacity> characters{};
  size_t size = 0;

  constexpr void Append(std::string_view text) {
    for (const char c : text) characters[size++] = c;
  }
};

template <size_t kCapacity>
constexpr Text<kCapacity> Normalize(std::string_view name) {
  Text<kCapacity> text;
  for (size_t i = 0; i < name.size();) {
    const std::string_view rest = name.substr(i);
    const bool at_word = i == 0 || !IsWordCharacter(name[i - 1]);
    // An index and not a pointer: with -fsanitize=undefined, GCC 12 does not treat a comparison
    // with null as a constant.
    size_t found = 0;
    for (; found < kSpellings.size(); ++found) {
      const std::string_view from = kSpellings[found].from;
      if (!at_word || !rest.starts_with(from)) continue;
      const bool goes_on = rest.size() > from.size() && IsWordCharacter(rest[from.size()]);
      if (!IsWordCharacter(from.back()) || !goes_on) break;
    }
    if (found < kSpellings.size()) {
      text.Append(kSpellings[found].to);
      i += kSpellings[found].from.size();
      continue;
    }
    // Removes the spaces of "T *" and "> >".
    const bool drops_space = rest.size() > 1 && rest[0] == ' ' && (rest[1] == '*' || rest[1] == '&' || rest[1] == '>');
    if (!drops_space) text.Append(rest.substr(0, 1));
    ++i;
  }
  return text;
}

template <class T>
inline constexpr auto kName = Normalize<2 * CompilersName<T>().size()>(CompilersName<T>());

}  // namespace type_name_internal

// The name of T, with its namespaces. Lives as long as the program.
template <class T>
constexpr std::string_view TypeName() {
  return {type_name_internal::kName<T>.characters.data(), type_name_internal::kName<T>.size};
}

// 64-bit FNV-1a: the same on every machine and in every run.
constexpr uint64_t HashOfTypeName(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_MESSAGE_TYPE_NAME_H_
