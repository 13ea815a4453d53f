#include "fraktor/persistence/journal/crc32c.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace fraktor::inline v0 {
namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[0] is the usual one; tables[k] is for a byte with k bytes behind it.
constexpr Tables MakeTables() {
  Tables tables = {};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
    tables[0][i] = crc;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t i = 0; i < 256; ++i) tables[k][i] = (tables[k - 1][i] >> 8) ^ tables[0][tables[k - 1][i] & 0xff];
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

uint32_t ExtendByTables(uint32_t crc, const char* data, size_t size) {
  crc = ~crc;
  for (; size >= 8; data += 8, size -= 8) {
    std::array<uint8_t, 8> b;
    std::memcpy(b.data(), data, 8);
    crc = kTables[7][b[0] ^ (crc & 0xff)] ^ kTables[6][b[1] ^ ((crc >> 8) & 0xff)] ^
          kTables[5][b[2] ^ ((crc >> 16) & 0xff)] ^ kTables[4][b[3] ^ (crc >> 24)] ^ kTables[3][b[4]] ^
          kTables[2][b[5]] ^ kTables[1][b[6]] ^ kTables[0][b[7]];
  }
  for (; size > 0; ++data, --size) crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<uint8_t>(*data)) & 0xff];
  return ~crc;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) uint32_t ExtendByInstruction(uint32_t crc, const char* data, size_t size) {
  uint64_t state = ~crc;
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    state = __builtin_ia32_crc32di(state, word);
  }
  auto narrow = static_cast<uint32_t>(state);
  for (; size > 0; ++data, --size) narrow = __builtin_ia32_crc32qi(narrow, static_cast<uint8_t>(*data));
  return ~narrow;
}

bool HasInstruction() {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}

#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)

uint32_t ExtendByInstruction(uint32_t crc, const char* data, size_t size) {
  crc = ~crc;
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    crc = __crc32cd(crc, word);
  }
  for (; size > 0; ++data, --size) crc = __crc32cb(crc, static_cast<uint8_t>(*data));
  return ~crc;
}

constexpr bool HasInstruction() { return true; }

#else

uint32_t ExtendByInstruction(uint32_t crc, const char* data, size_t size) { return ExtendByTables(crc, data, size); }

constexpr bool HasInstruction() { return false; }

#endif

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, std::string_view bytes) {
  return HasInstruction() ? ExtendByInstruction(crc, bytes.data(), bytes.size())
                          : ExtendByTables(crc, bytes.data(), bytes.size());
}

namespace journal_internal {

uint32_t ExtendCrc32cPortable(uint32_t crc, std::string_view bytes) {
  return ExtendByTables(crc, bytes.data(), bytes.size());
}

}  // namespace journal_internal
}  // namespace fraktor::inline v0
