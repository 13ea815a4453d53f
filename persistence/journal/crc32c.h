// The checksum of stored records: CRC-32C (Castagnoli), with the processor's instruction where
// there is one.
//
//   uint32_t crc = ExtendCrc32c(ExtendCrc32c(0, key), value);   // the same as of both together
//
// Thread safety: free functions.
#ifndef FRAKTOR_PERSISTENCE_JOURNAL_CRC32C_H_
#define FRAKTOR_PERSISTENCE_JOURNAL_CRC32C_H_

#include <cstdint>
#include <string_view>

namespace fraktor::inline v0 {

// The checksum of what `crc` is the checksum of, followed by `bytes`. 0 is the checksum of nothing.
uint32_t ExtendCrc32c(uint32_t crc, std::string_view bytes);

namespace journal_internal {

// The same by tables, on every processor.
uint32_t ExtendCrc32cPortable(uint32_t crc, std::string_view bytes);

}  // namespace journal_internal
}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_JOURNAL_CRC32C_H_
