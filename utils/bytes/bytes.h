// Encodes numbers and texts as bytes, and decodes them: for records, keys and messages.
//
//   std::string bytes;
//   AppendVarint(bytes, 300);
//   AppendSized(bytes, "text");
//   ByteReader reader(bytes);
//   uint64_t number = reader.Varint();
//   std::string_view text = reader.Sized();
//   if (!reader.ok()) return absl::DataLossError("the record is too short");   // one check, after the last read
//
//   std::string record(VarintBytes(300) + SizedBytes(text.size()), '\0');
//   char* const end = PutSized(PutVarint(record.data(), 300), text);           // into memory of the caller
//
// Thread safety: values and free functions.
#ifndef FRAKTOR_UTILS_BYTES_BYTES_H_
#define FRAKTOR_UTILS_BYTES_BYTES_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace fraktor::inline v0 {

// The bytes of a varint: it has seven bits of the number in each byte. The formula is exact for 64
// bits, although 9/64 is a little less than 1/7.
constexpr size_t VarintBytes(uint64_t value) { return (static_cast<size_t>(std::bit_width(value | 1)) * 9 + 64) / 64; }
// The bytes of a text of that many bytes, with its length before it.
constexpr size_t SizedBytes(size_t bytes) { return VarintBytes(bytes) + bytes; }

// Each Put function writes to `at`, where the caller has made room, and returns the end of the
// written bytes.

// Seven bits in each byte, lowest bits first.
inline char* PutVarint(char* at, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *at++ = static_cast<char>(value | 0x80);
  *at++ = static_cast<char>(value);
  return at;
}

// Little endian.
inline char* PutFixed32(char* at, uint32_t value) {
  for (size_t i = 0; i < sizeof(value); ++i) at[i] = static_cast<char>(value >> (8 * i));
  return at + sizeof(value);
}
inline char* PutFixed64(char* at, uint64_t value) {
  for (size_t i = 0; i < sizeof(value); ++i) at[i] = static_cast<char>(value >> (8 * i));
  return at + sizeof(value);
}

// Big endian: the bytes sort like the numbers.
inline char* PutSorted64(char* at, uint64_t value) {
  for (size_t i = 0; i < sizeof(value); ++i) at[i] = static_cast<char>(value >> (56 - 8 * i));
  return at + sizeof(value);
}

inline char* PutBytes(char* at, std::string_view bytes) {
  if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
  return at + bytes.size();
}
// The length, then the text.
inline char* PutSized(char* at, std::string_view text) { return PutBytes(PutVarint(at, text.size()), text); }

// The Append functions write the same bytes at the end of a string.

inline void AppendVarint(std::string& bytes, uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
}

inline void AppendFixed32(std::string& bytes, uint32_t value) {
  char buffer[sizeof(value)];
  PutFixed32(buffer, value);
  bytes.append(buffer, sizeof(value));
}
inline void AppendFixed64(std::string& bytes, uint64_t value) {
  char buffer[sizeof(value)];
  PutFixed64(buffer, value);
  bytes.append(buffer, sizeof(value));
}

inline void AppendSorted16(std::string& bytes, uint16_t value) {
  bytes.push_back(static_cast<char>(value >> 8));
  bytes.push_back(static_cast<char>(value));
}
inline void AppendSorted64(std::string& bytes, uint64_t value) {
  char buffer[sizeof(value)];
  PutSorted64(buffer, value);
  bytes.append(buffer, sizeof(value));
}

inline void AppendSized(std::string& bytes, std::string_view text) {
  AppendVarint(bytes, text.size());
  bytes.append(text);
}

inline uint16_t LoadSorted16(const char* bytes) {
  return static_cast<uint16_t>(static_cast<uint8_t>(bytes[0]) << 8 | static_cast<uint8_t>(bytes[1]));
}
inline uint64_t LoadSorted64(const char* bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(value); ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}
inline uint64_t LoadFixed64(const char* bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(value); ++i) value |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  return value;
}
inline uint32_t LoadFixed32(const char* bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < sizeof(value); ++i) value |= uint32_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  return value;
}

// Reads values from the front of a text. After the first value that is missing, ok() is false and
// every further value is 0 or empty.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  uint8_t Byte() {
    const std::string_view taken = Take(1);
    return taken.empty() ? 0 : static_cast<uint8_t>(taken.front());
  }
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = Byte();
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }
  uint32_t Fixed32() {
    const std::string_view taken = Take(4);
    return taken.empty() ? 0 : LoadFixed32(taken.data());
  }
  uint64_t Fixed64() {
    const std::string_view taken = Take(8);
    return taken.empty() ? 0 : LoadFixed64(taken.data());
  }
  uint16_t Sorted16() {
    const std::string_view taken = Take(2);
    return taken.empty() ? 0 : LoadSorted16(taken.data());
  }
  uint64_t Sorted64() {
    const std::string_view taken = Take(8);
    return taken.empty() ? 0 : LoadSorted64(taken.data());
  }
  std::string_view Sized() { return Take(Varint()); }
  std::string_view Take(uint64_t size) {
    if (size > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest() const { return rest_; }
  bool ok() const { return ok_; }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_BYTES_BYTES_H_
