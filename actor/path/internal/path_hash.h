// The hash of a path: 64 bits, the same in every build, on every platform and in every run, so that
// decisions may depend on it. Internal: ActorPath::hash() is the public way.
//
// The hash grows by one segment at a time: the hash of a child depends only on the hash of its
// parent and the child's name. The hash has no secret key, so that names can be chosen to collide.
// Tables that use it must stay correct then.
#ifndef FRAKTOR_ACTOR_PATH_INTERNAL_PATH_HASH_H_
#define FRAKTOR_ACTOR_PATH_INTERNAL_PATH_HASH_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace fraktor::inline v0::path_internal {

inline constexpr uint64_t kHashFactor = 0x9fb21c651e98df25u;

template <class Word>
Word LittleEndian(Word word) {
  if constexpr (std::endian::native == std::endian::big) {
    if constexpr (sizeof(Word) == 8) return __builtin_bswap64(word);
    return __builtin_bswap32(word);
  }
  return word;
}

template <class Word>
Word LoadLittleEndian(const char* from) {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  return LittleEndian(word);
}

template <class Word>
void StoreLittleEndian(Word word, char* to) {
  word = LittleEndian(word);
  std::memcpy(to, &word, sizeof(word));
}

// Returns up to 7 bytes as a number; the first byte is the lowest.
inline uint64_t PackBytes(std::string_view text) {
  const char* const at = text.data();
  const size_t size = text.size();
  if (size >= 4) {
    return LoadLittleEndian<uint32_t>(at) | uint64_t{LoadLittleEndian<uint32_t>(at + size - 4)} << (8 * (size - 4));
  }
  if (size == 0) return 0;
  const auto byte = [at](size_t i) { return uint64_t{static_cast<unsigned char>(at[i])} << (8 * i); };
  return byte(0) | byte(size / 2) | byte(size - 1);
}

// Returns whether both texts have the same bytes. Made for names, which are short: up to two words
// take no call.
inline bool EqualBytes(std::string_view a, std::string_view b) {
  const size_t size = a.size();
  if (size != b.size()) return false;
  if (size < 8) return PackBytes(a) == PackBytes(b);
  if (size > 16) return std::memcmp(a.data(), b.data(), size) == 0;
  const auto word = [](const char* from) { return LoadLittleEndian<uint64_t>(from); };
  return word(a.data()) == word(b.data()) && word(a.data() + size - 8) == word(b.data() + size - 8);
}

inline uint64_t FinishHash(uint64_t hash) {
  hash ^= hash >> 32;
  hash *= kHashFactor;
  hash ^= hash >> 29;
  return hash;
}

inline uint64_t HashBytes(std::string_view text) {
  const char* at = text.data();
  const size_t size = text.size();
  uint64_t hash = size * 0x9e3779b97f4a7c15u;
  auto take = [&hash](uint64_t word) {
    hash = (hash ^ word) * kHashFactor;
    hash ^= hash >> 35;
  };
  // Each case reads all bytes. A last word that is not full overlaps the word before it.
  if (size >= 8) {
    for (size_t i = 0; i + 8 < size; i += 8) take(LoadLittleEndian<uint64_t>(at + i));
    take(LoadLittleEndian<uint64_t>(at + size - 8));
  } else if (size >= 4) {
    take(uint64_t{LoadLittleEndian<uint32_t>(at)} << 32 | LoadLittleEndian<uint32_t>(at + size - 4));
  } else if (size > 0) {
    const auto byte = [at](size_t i) { return uint64_t{static_cast<unsigned char>(at[i])}; };
    take(byte(0) << 16 | byte(size / 2) << 8 | byte(size - 1));
  }
  return hash;
}

inline uint64_t ChildHash(uint64_t parent, std::string_view name) {
  return FinishHash(((parent << 25 | parent >> 39) + 0x9e3779b97f4a7c15u) ^ HashBytes(name) * 0xd6e8feb86659fd93u);
}

// The hash of a root covers the system, and the protocol, host and port if it has them.
inline uint64_t LocalRootHash(std::string_view system) { return FinishHash(HashBytes(system)); }
inline uint64_t RemoteRootHash(std::string_view protocol, std::string_view system, std::string_view host,
                               uint16_t port) {
  return ChildHash(ChildHash(LocalRootHash(system), protocol), host) + port * kHashFactor;
}

}  // namespace fraktor::inline v0::path_internal

#endif  // FRAKTOR_ACTOR_PATH_INTERNAL_PATH_HASH_H_
