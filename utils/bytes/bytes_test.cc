#include "fraktor/utils/bytes/bytes.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"

namespace fraktor {
namespace {

TEST(ByteReader, SaysThatSomethingIsMissing) {
  std::string bytes;
  AppendVarint(bytes, 300);
  AppendSized(bytes, "text");
  AppendFixed32(bytes, 5);
  ByteReader reader(bytes);
  EXPECT_EQ(reader.Varint(), 300u);
  EXPECT_EQ(reader.Sized(), "text");
  EXPECT_EQ(reader.Fixed32(), 5u);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.Fixed64(), 0u);
  EXPECT_FALSE(reader.ok());
  ByteReader endless(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11));
  endless.Varint();
  EXPECT_FALSE(endless.ok());
}

TEST(ByteReader, ReadsWhatWasAppended) {
  for (const uint64_t number :
       {uint64_t{0}, uint64_t{127}, uint64_t{128}, uint64_t{1} << 35, std::numeric_limits<uint64_t>::max()}) {
    std::string bytes;
    AppendVarint(bytes, number);
    AppendFixed64(bytes, number);
    AppendSorted64(bytes, number);
    AppendSorted16(bytes, static_cast<uint16_t>(number));
    ByteReader reader(bytes);
    EXPECT_EQ(reader.Varint(), number);
    EXPECT_EQ(reader.Fixed64(), number);
    EXPECT_EQ(reader.Sorted64(), number);
    EXPECT_EQ(reader.Sorted16(), static_cast<uint16_t>(number));
    EXPECT_TRUE(reader.ok());
    EXPECT_TRUE(reader.rest().empty());
  }
}

TEST(Bytes, ArePutAsTheyAreAppendedAndTakeWhatIsSaid) {
  std::vector<uint64_t> numbers = {0, std::numeric_limits<uint64_t>::max()};
  for (int bits = 0; bits < 64; ++bits) {
    numbers.push_back(uint64_t{1} << bits);
    numbers.push_back((uint64_t{1} << bits) - 1);
  }
  for (const uint64_t number : numbers) {
    const std::string text(number % 300, 'x');
    std::string varint;
    AppendVarint(varint, number);
    EXPECT_EQ(varint.size(), VarintBytes(number)) << number;
    std::string sized;
    AppendSized(sized, text);
    EXPECT_EQ(sized.size(), SizedBytes(text.size()));
    std::string appended = varint;
    AppendFixed32(appended, static_cast<uint32_t>(number));
    AppendFixed64(appended, number);
    AppendSorted64(appended, number);
    appended += sized + text;
    std::string put(appended.size() + 1, '?');
    char* at = PutVarint(put.data(), number);
    at = PutFixed32(at, static_cast<uint32_t>(number));
    at = PutSorted64(PutFixed64(at, number), number);
    at = PutBytes(PutSized(at, text), text);
    EXPECT_EQ(at, put.data() + appended.size()) << number;
    EXPECT_EQ(put, appended + '?') << number;
  }
}

TEST(ByteReader, TakesNoTextThatIsLongerThanWhatIsLeft) {
  std::string bytes;
  AppendVarint(bytes, std::numeric_limits<uint64_t>::max());
  bytes += "text";
  ByteReader reader(bytes);
  EXPECT_EQ(reader.Sized(), "");
  EXPECT_FALSE(reader.ok());
}

}  // namespace
}  // namespace fraktor
