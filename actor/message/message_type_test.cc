#include "fraktor/actor/message/message_type.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"

#include "fraktor/actor/message/internal/node_pool.h"
#include "fraktor/actor/message/type_name.h"

namespace shop {
struct Order {
  int64_t id;
};
struct Twin {
  int64_t id;
};
struct Pause {};
struct Resume : fraktor::ControlMessage {
  int after = 0;
};
}  // namespace shop

template <>
inline constexpr bool fraktor::kIsControlMessage<shop::Pause> = true;

namespace fraktor {

using actor_internal::NodeClass;

namespace {

template <size_t kSize, size_t kAlignment>
struct alignas(kAlignment) Aligned {
  unsigned char bytes[kSize];
};

TEST(MessageType, IsOnePerType) {
  EXPECT_EQ(MessageTypeOf<shop::Order>(), MessageTypeOf<shop::Order>());
  EXPECT_NE(MessageTypeOf<shop::Order>(), MessageTypeOf<shop::Twin>()) << "equal contents are not equal types";
  const std::set<const MessageType*> types = {MessageTypeOf<int>(), MessageTypeOf<unsigned>(),
                                              MessageTypeOf<std::string>(), MessageTypeOf<shop::Pause>()};
  EXPECT_EQ(types.size(), 4u);
}

TEST(MessageType, IsKnownWhenTheProgramIsCompiled) {
  constexpr const MessageType* kType = MessageTypeOf<shop::Order>();
  EXPECT_EQ(kType, MessageTypeOf<shop::Order>());
}

TEST(MessageType, DescribesItsType) {
  const MessageType& order = *MessageTypeOf<shop::Order>();
  EXPECT_EQ(order.name(), "shop::Order");
  EXPECT_EQ(order.name_hash(), HashOfTypeName("shop::Order"));
  EXPECT_EQ(order.size(), 8u);
  EXPECT_FALSE(order.is_control());
  EXPECT_TRUE(MessageTypeOf<shop::Pause>()->is_control());
  EXPECT_TRUE(MessageTypeOf<shop::Resume>()->is_control());
  EXPECT_EQ(sizeof(shop::Resume), sizeof(int)) << "the base takes no room";
  EXPECT_EQ((shop::Resume{{}, 5}).after, 5);
}

TEST(MessageType, HasNothingToReleaseForTrivialMessagesInTheNode) {
  EXPECT_EQ(MessageTypeOf<shop::Order>()->release(), nullptr);
  EXPECT_EQ((MessageTypeOf<Aligned<88, 1>>()->release()), nullptr);
  EXPECT_NE(MessageTypeOf<std::string>()->release(), nullptr);
  EXPECT_NE((MessageTypeOf<Aligned<89, 1>>()->release()), nullptr) << "the heap has to get it back";
}

TEST(MessageType, KnowsWhatCanBeCopied) {
  EXPECT_TRUE(MessageTypeOf<std::string>()->is_copyable());
  EXPECT_FALSE(MessageTypeOf<std::unique_ptr<int>>()->is_copyable());
}

TEST(MessageType, LeavesTheLowBitsOfItsAddressFree) {
  EXPECT_EQ(reinterpret_cast<uintptr_t>(MessageTypeOf<shop::Order>()) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(MessageTypeOf<shop::Twin>()) % 64, 0u);
}

TEST(MessageLayout, PutsStricterAlignedMessagesFurtherBack) {
  EXPECT_EQ((MessageLayout<Aligned<8, 8>>::kOffset), 40u);
  EXPECT_EQ((MessageLayout<Aligned<16, 16>>::kOffset), 48u);
  EXPECT_EQ((MessageLayout<Aligned<16, 16>>::kNodeClass), NodeClass::k64);
  EXPECT_EQ((MessageLayout<Aligned<32, 16>>::kNodeClass), NodeClass::k128);
  EXPECT_EQ((MessageLayout<Aligned<80, 16>>::kIsOnHeap), false);
  EXPECT_EQ((MessageLayout<Aligned<96, 16>>::kIsOnHeap), true);
  EXPECT_EQ((MessageLayout<Aligned<64, 64>>::kOffset), 64u);
  EXPECT_EQ((MessageLayout<Aligned<64, 64>>::kNodeClass), NodeClass::k128);
  EXPECT_EQ((MessageLayout<Aligned<64, 64>>::kTracedNodeClass), NodeClass::k192);
  EXPECT_EQ((MessageLayout<Aligned<128, 128>>::kIsOnHeap), true);
  EXPECT_EQ((MessageLayout<Aligned<128, 128>>::kOffset), 40u) << "the pointer";
}

}  // namespace
}  // namespace fraktor
