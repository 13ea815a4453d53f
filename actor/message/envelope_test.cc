#include "fraktor/actor/message/envelope.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "fraktor/actor/message/internal/node_pool.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/queue/internal/inbox.h"

namespace fraktor {

using actor_internal::kNodeClasses;
using actor_internal::NodeCache;
using actor_internal::NodeClass;
using actor_internal::NodePool;
using utils_internal::Inbox;
using utils_internal::InboxList;
using utils_internal::InboxNode;
using utils_internal::InboxPush;
using utils_internal::TableSlot;

namespace {

alignas(64) char slot_of_sender[64];
const ActorRef kSender(reinterpret_cast<TableSlot*>(slot_of_sender), 77);
constexpr MessageTrace kTrace{.enqueued_ns = 1, .trace_id_high = 2, .trace_id_low = 3, .span_id = 4, .trace_flags = 5};

struct Empty {};
struct Greet {
  std::string name;
  int times = 1;
};

template <size_t kBytes>
struct Sized {
  std::array<unsigned char, kBytes> bytes;
};

template <size_t kBytes>
Sized<kBytes> Pattern() {
  Sized<kBytes> sized;
  for (size_t i = 0; i < kBytes; ++i) sized.bytes[i] = static_cast<unsigned char>(i + 1);
  return sized;
}

// Counts its instances. Has any size.
template <size_t kBytes>
class Counted {
 public:
  explicit Counted(int* alive) : alive_(alive) { ++*alive_; }
  Counted(const Counted& other) : alive_(other.alive_) { ++*alive_; }
  Counted(Counted&& other) noexcept : alive_(other.alive_) { ++*alive_; }
  Counted& operator=(const Counted&) = delete;
  ~Counted() {
    EXPECT_GT(*alive_, 0) << "destroyed twice";
    --*alive_;
  }

 private:
  int* alive_;
  [[maybe_unused]] std::array<unsigned char, kBytes - sizeof(int*)> more_;
};

// Checks that every test frees what it allocates.
class EnvelopeTest : public ::testing::Test {
 protected:
  EnvelopeTest() : before_(NodesInUse()) {}
  ~EnvelopeTest() override { EXPECT_EQ(NodesInUse(), before_); }

  static std::array<size_t, kNodeClasses> NodesInUse() {
    NodeCache::OfThisThread().Flush();
    return {NodePool::Stats(NodeClass::k64).issued_nodes, NodePool::Stats(NodeClass::k128).issued_nodes,
            NodePool::Stats(NodeClass::k192).issued_nodes};
  }

  NodeCache& cache_ = NodeCache::OfThisThread();

 private:
  const std::array<size_t, kNodeClasses> before_;
};

TEST_F(EnvelopeTest, CarriesMessageSenderAndTargetWord) {
  EnvelopePtr envelope = MakeEnvelope<Greet>(kSender, "world", 3);
  EXPECT_EQ(envelope->As<Greet>().name, "world");
  EXPECT_EQ(envelope->As<Greet>().times, 3);
  EXPECT_EQ(envelope->sender(), kSender);
  EXPECT_EQ(envelope->target_word(), 0u);
  EXPECT_EQ(envelope->next, nullptr);
  envelope->set_target_word(0xfedcba9876543210);
  EXPECT_EQ(envelope->target_word(), 0xfedcba9876543210);
  EXPECT_EQ(envelope->sender(), kSender);
  EXPECT_EQ(envelope->As<Greet>().name, "world");
}

TEST_F(EnvelopeTest, KnowsItsType) {
  EnvelopePtr envelope = MakeEnvelope<Greet>(kSender, Greet{"world"});
  const Envelope& seen = *envelope;
  EXPECT_EQ(seen.type(), MessageTypeOf<Greet>());
  EXPECT_TRUE(seen.Is<Greet>());
  EXPECT_FALSE(seen.Is<std::string>());
  ASSERT_NE(seen.TryAs<Greet>(), nullptr);
  EXPECT_EQ(seen.TryAs<Greet>()->name, "world");
  EXPECT_EQ(seen.TryAs<std::string>(), nullptr);
  EXPECT_EQ(seen.payload(), &seen.As<Greet>());
}

TEST_F(EnvelopeTest, KeepsItsTypeWhateverItsFlagsAre) {
  EnvelopePtr system = MakeEnvelope<Empty>(kSender);
  EXPECT_FALSE(system->is_system());
  system->MarkAsSystem();
  EXPECT_TRUE(system->is_system());
  EXPECT_TRUE(system->Is<Empty>());
  EXPECT_EQ(system->node_class(), NodeClass::k64);
  EXPECT_EQ(system->trace(), nullptr);

  EnvelopePtr traced = MakeTracedEnvelope<Greet>(cache_, kSender, kTrace, "world");
  traced->MarkAsSystem();
  EXPECT_TRUE(traced->Is<Greet>());
  EXPECT_TRUE(traced->is_system());
  EXPECT_NE(traced->trace(), nullptr);
}

template <size_t kBytes>
void ExpectRoundTrip(NodeClass node_class, NodeClass traced_class) {
  NodeCache& cache = NodeCache::OfThisThread();
  const Sized<kBytes> sent = Pattern<kBytes>();
  EnvelopePtr plain = MakeEnvelope<Sized<kBytes>>(cache, kSender, sent);
  EnvelopePtr neighbour = MakeEnvelope<Sized<kBytes>>(cache, ActorRef(), Sized<kBytes>{});
  EnvelopePtr traced = MakeTracedEnvelope<Sized<kBytes>>(cache, kSender, kTrace, sent);
  EXPECT_EQ(plain->node_class(), node_class) << kBytes;
  EXPECT_EQ(traced->node_class(), traced_class) << kBytes;
  EXPECT_EQ(plain->trace(), nullptr);
  for (Envelope* envelope : {plain.get(), traced.get()}) {
    envelope->set_target_word(~uint64_t{0});
    EXPECT_EQ(envelope->As<Sized<kBytes>>().bytes, sent.bytes) << kBytes;
    EXPECT_EQ(envelope->payload(), &envelope->As<Sized<kBytes>>());
    EXPECT_EQ(envelope->sender(), kSender);
    EXPECT_TRUE(envelope->Is<Sized<kBytes>>());
    EXPECT_EQ(envelope->Take<Sized<kBytes>>().bytes, sent.bytes) << kBytes;
  }
  ASSERT_NE(traced->trace(), nullptr);
  EXPECT_EQ(traced->trace()->enqueued_ns, 1);
  EXPECT_EQ(traced->trace()->span_id, 4u);
  EXPECT_EQ(traced->trace()->trace_flags, 5);
  EXPECT_EQ(traced->trace()->trace_id_high, 2u);
  EXPECT_EQ(traced->trace()->trace_id_low, 3u);
  EXPECT_EQ(neighbour->As<Sized<kBytes>>().bytes, Sized<kBytes>{}.bytes) << "written by a neighbour";
}

TEST_F(EnvelopeTest, PutsMessagesWhereTheyFit) {
  ExpectRoundTrip<1>(NodeClass::k64, NodeClass::k128);
  ExpectRoundTrip<23>(NodeClass::k64, NodeClass::k128);
  ExpectRoundTrip<24>(NodeClass::k64, NodeClass::k128);
  ExpectRoundTrip<25>(NodeClass::k128, NodeClass::k128);
  ExpectRoundTrip<48>(NodeClass::k128, NodeClass::k128);
  ExpectRoundTrip<49>(NodeClass::k128, NodeClass::k192);
  ExpectRoundTrip<88>(NodeClass::k128, NodeClass::k192);
  // On the heap, with a pointer in the node.
  ExpectRoundTrip<89>(NodeClass::k64, NodeClass::k128);
  ExpectRoundTrip<100'000>(NodeClass::k64, NodeClass::k128);
}

TEST_F(EnvelopeTest, CarriesMessagesWithoutContents) {
  static_assert(std::is_empty_v<Empty>);
  EnvelopePtr envelope = MakeEnvelope<Empty>(kSender);
  EXPECT_TRUE(envelope->Is<Empty>());
  EXPECT_EQ(envelope->node_class(), NodeClass::k64);
  [[maybe_unused]] const Empty empty = envelope->Take<Empty>();
}

template <size_t kAlignment>
void ExpectAligned() {
  struct alignas(kAlignment) Aligned {
    int64_t value;
  };
  // Several nodes, because one address may be right by chance.
  std::vector<EnvelopePtr> envelopes;
  for (int64_t i = 0; i < 10; ++i) {
    envelopes.push_back(MakeEnvelope<Aligned>(kSender, i));
    envelopes.push_back(MakeTracedEnvelope<Aligned>(NodeCache::OfThisThread(), kSender, kTrace, i));
    for (size_t e = envelopes.size() - 2; e < envelopes.size(); ++e) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(&envelopes[e]->As<Aligned>()) % kAlignment, 0u);
      EXPECT_EQ(envelopes[e]->As<Aligned>().value, i);
      EXPECT_EQ(envelopes[e]->payload(), &envelopes[e]->As<Aligned>());
    }
  }
}

TEST_F(EnvelopeTest, AlignsMessagesAsTheyAsk) {
  ExpectAligned<8>();
  ExpectAligned<16>();
  ExpectAligned<32>();
  ExpectAligned<64>();
  ExpectAligned<128>();
  ExpectAligned<4096>();
}

template <size_t kBytes>
void ExpectDestroyedOnce() {
  using Message = Counted<kBytes>;
  NodeCache& cache = NodeCache::OfThisThread();
  int alive = 0;
  {
    EnvelopePtr dropped = MakeEnvelope<Message>(kSender, &alive);
    EXPECT_EQ(alive, 1);
    EnvelopePtr traced = MakeTracedEnvelope<Message>(cache, kSender, kTrace, &alive);
    EXPECT_EQ(alive, 2);
  }
  EXPECT_EQ(alive, 0) << kBytes;
  EndEnvelope(cache, MakeEnvelope<Message>(cache, kSender, &alive).release());
  EXPECT_EQ(alive, 0) << kBytes;
  {
    EnvelopePtr taken = MakeEnvelope<Message>(kSender, &alive);
    const Message message = taken->Take<Message>();
    EXPECT_EQ(alive, 2) << "the one that was taken and the one that was left";
    taken.reset();
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0) << kBytes;
  {
    EnvelopePtr original = MakeEnvelope<Message>(kSender, &alive);
    EnvelopePtr copy = CopyEnvelope(cache, *original);
    EXPECT_EQ(alive, 2);
  }
  EXPECT_EQ(alive, 0) << kBytes;
  {
    EnvelopePtr traced = WithTrace(cache, MakeEnvelope<Message>(kSender, &alive), kTrace);
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0) << kBytes;
}

TEST_F(EnvelopeTest, DestroysEachMessageOnce) {
  ExpectDestroyedOnce<16>();
  ExpectDestroyedOnce<24>();
  ExpectDestroyedOnce<32>();
  ExpectDestroyedOnce<48>();
  ExpectDestroyedOnce<56>();
  ExpectDestroyedOnce<88>();
  ExpectDestroyedOnce<96>();
  ExpectDestroyedOnce<4096>();
}

TEST_F(EnvelopeTest, CarriesWhatCanOnlyBeMoved) {
  struct Parcel {
    std::unique_ptr<std::string> contents;
  };
  EnvelopePtr envelope = MakeEnvelope<Parcel>(kSender, std::make_unique<std::string>("tea"));
  EXPECT_EQ(CopyEnvelope(cache_, *envelope), nullptr);
  Parcel parcel = envelope->Take<Parcel>();
  EXPECT_EQ(*parcel.contents, "tea");
  EXPECT_EQ(envelope->As<Parcel>().contents, nullptr);
}

TEST_F(EnvelopeTest, ConstructsAsTheTypeWants) {
  EXPECT_EQ(MakeEnvelope<std::vector<int>>(kSender, size_t{3}, 7)->As<std::vector<int>>(), std::vector<int>({7, 7, 7}));
  EXPECT_EQ(MakeEnvelope<int64_t>(kSender, 42)->As<int64_t>(), 42);
  EXPECT_EQ(MakeEnvelope<Greet>(kSender)->As<Greet>().times, 1);
  const Greet greet{"world", 2};
  EXPECT_EQ(MakeEnvelope<Greet>(kSender, greet)->As<Greet>().name, "world");
}

struct Throwing {
  explicit Throwing(bool throws) {
    if (throws) throw std::runtime_error("refused");
  }
  Throwing(const Throwing&) { throw std::runtime_error("not again"); }
  Throwing(Throwing&&) noexcept {}
  Throwing& operator=(const Throwing&) = delete;
};
struct LargeThrowing : Throwing {
  using Throwing::Throwing;
  LargeThrowing(LargeThrowing&&) noexcept = default;
  LargeThrowing(const LargeThrowing&) = default;
  LargeThrowing& operator=(const LargeThrowing&) = delete;
  std::array<unsigned char, 200> more{};
};

// The fixture counts nodes; the sanitizer checks the heap.
TEST_F(EnvelopeTest, GivesTheNodeBackIfTheMessageThrows) {
  for (int i = 0; i < 1000; ++i) {
    EXPECT_THROW(MakeEnvelope<Throwing>(kSender, true), std::runtime_error);
    EXPECT_THROW(MakeEnvelope<LargeThrowing>(kSender, true), std::runtime_error);
    EXPECT_THROW(MakeTracedEnvelope<Throwing>(cache_, kSender, kTrace, true), std::runtime_error);
  }
  const EnvelopePtr made = MakeEnvelope<Throwing>(kSender, false);
  EXPECT_THROW(CopyEnvelope(cache_, *made), std::runtime_error);
  const EnvelopePtr large = MakeEnvelope<LargeThrowing>(kSender, false);
  EXPECT_THROW(CopyEnvelope(cache_, *large), std::runtime_error);
}

TEST_F(EnvelopeTest, CopiesEverythingButTheLink) {
  for (const bool traced : {false, true}) {
    EnvelopePtr original = traced ? MakeTracedEnvelope<Greet>(cache_, kSender, kTrace, "world", 2)
                                  : MakeEnvelope<Greet>(cache_, kSender, "world", 2);
    original->set_target_word(99);
    original->MarkAsSystem();
    original->next = original.get();
    EnvelopePtr copy = CopyEnvelope(cache_, *original);
    ASSERT_NE(copy, nullptr);
    original.reset();
    EXPECT_EQ(copy->As<Greet>().name, "world");
    EXPECT_EQ(copy->As<Greet>().times, 2);
    EXPECT_EQ(copy->sender(), kSender);
    EXPECT_EQ(copy->target_word(), 99u);
    EXPECT_TRUE(copy->is_system());
    EXPECT_EQ(copy->next, nullptr);
    EXPECT_EQ(copy->trace() != nullptr, traced);
    if (traced) {
      EXPECT_EQ(copy->trace()->trace_id_low, 3u);
    }
  }
}

// SCH-11: a caller that samples an existing message moves it to a larger node.
template <class M, class Make, class Check>
void ExpectMovedToTraced(NodeCache& cache, Make make, Check check) {
  EnvelopePtr original = make();
  ASSERT_EQ(original->trace(), nullptr);
  original->set_target_word(99);
  const NodeClass expected = original->type()->traced_node_class();
  EnvelopePtr traced = WithTrace(cache, std::move(original), kTrace);
  ASSERT_NE(traced->trace(), nullptr);
  EXPECT_EQ(traced->trace()->enqueued_ns, 1);
  EXPECT_EQ(traced->trace()->trace_flags, 5);
  EXPECT_EQ(traced->node_class(), expected);
  EXPECT_EQ(traced->sender(), kSender);
  EXPECT_EQ(traced->target_word(), 99u);
  EXPECT_FALSE(traced->is_system());
  check(traced->As<M>());
}

TEST_F(EnvelopeTest, MovesAMessageToANodeWithATrace) {
  ExpectMovedToTraced<int64_t>(
      cache_, [] { return MakeEnvelope<int64_t>(kSender, 42); }, [](int64_t number) { EXPECT_EQ(number, 42); });
  struct Parcel {
    std::unique_ptr<std::string> contents;
  };
  ExpectMovedToTraced<Parcel>(
      cache_, [] { return MakeEnvelope<Parcel>(kSender, std::make_unique<std::string>("tea")); },
      [](const Parcel& parcel) { EXPECT_EQ(*parcel.contents, "tea"); });
  const std::string text(1000, 'x');
  struct Large {
    std::string text;
    std::array<unsigned char, 200> more{};
  };
  ExpectMovedToTraced<Large>(
      cache_, [&] { return MakeEnvelope<Large>(kSender, text); },
      [&](const Large& large) { EXPECT_EQ(large.text, text); });
  ExpectMovedToTraced<Empty>(
      cache_, [] { return MakeEnvelope<Empty>(kSender); }, [](const Empty&) {});
}

// A message that holds messages, such as a dropped stash.
TEST_F(EnvelopeTest, EndsMessagesInsideOfMessages) {
  int alive = 0;
  {
    EnvelopePtr chain = MakeEnvelope<Counted<16>>(kSender, &alive);
    for (int i = 0; i < 1000; ++i) chain = MakeEnvelope<EnvelopePtr>(kSender, std::move(chain));
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST_F(EnvelopeTest, GoesThroughAnInbox) {
  Inbox inbox;
  ASSERT_TRUE(inbox.TryClaim());
  EXPECT_EQ(inbox.Push(MakeEnvelope<Greet>(kSender, "first").release()), InboxPush::kQueued);
  EXPECT_EQ(inbox.Push(MakeEnvelope<Greet>(kSender, "second").release()), InboxPush::kQueued);
  const InboxList list = inbox.TakeAll();
  const EnvelopePtr first(Envelope::Of(list.first));
  const EnvelopePtr second(Envelope::Of(first->next));
  EXPECT_EQ(first->As<Greet>().name, "first");
  EXPECT_EQ(second->As<Greet>().name, "second");
  EXPECT_TRUE(inbox.TryGoIdle());
}

// Four threads: two send to an inbox each, two receive and end the messages.
TEST_F(EnvelopeTest, IsMadeByOneThreadAndEndedByAnother) {
  constexpr int64_t kMessages = 20'000;
  struct Mail {
    int64_t number;
    std::string text;  // long enough for the heap: the sanitizer sees a message that is lost or ended twice
  };
  struct Lane {
    Inbox inbox;
    std::atomic<bool> scheduled{
        false};  // hands the claimed inbox to the consumer: release by the sender, acquire there
    Envelope* first = nullptr;
    int64_t received = 0;
    int64_t sum = 0;
    bool in_order = true;
  };
  std::array<Lane, 2> lanes;
  std::vector<std::thread> threads;
  for (Lane& lane : lanes) {
    threads.emplace_back([&lane] {
      for (int64_t i = 0; i < kMessages; ++i) {
        Envelope* const envelope =
            MakeEnvelope<Mail>(kSender, i, std::string("a text that does not fit into the string itself")).release();
        if (lane.inbox.Push(envelope) == InboxPush::kClaimed) {
          lane.first = envelope;
          lane.scheduled.store(true, std::memory_order_release);
        }
      }
    });
    threads.emplace_back([&lane] {
      const auto handle = [&lane](InboxNode* node) {
        while (node != nullptr) {
          const EnvelopePtr envelope(Envelope::Of(node));
          node = envelope->next;
          const Mail mail = envelope->Take<Mail>();
          lane.in_order = lane.in_order && mail.number == lane.received;
          ++lane.received;
          lane.sum += mail.number;
        }
      };
      while (lane.received < kMessages) {
        while (!lane.scheduled.load(std::memory_order_acquire)) std::this_thread::yield();
        lane.scheduled.store(false, std::memory_order_relaxed);
        handle(std::exchange(lane.first, nullptr));
        while (!lane.inbox.TryGoIdle()) handle(lane.inbox.TakeAll().first);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Lane& lane : lanes) {
    EXPECT_EQ(lane.received, kMessages);
    EXPECT_EQ(lane.sum, kMessages * (kMessages - 1) / 2);
    EXPECT_TRUE(lane.in_order);
  }
}

#ifdef FRAKTOR_NODE_POOL_ASAN
TEST_F(EnvelopeTest, IsReportedWhenItIsUsedAfterItsEnd) {
  EnvelopePtr envelope = MakeEnvelope<int64_t>(kSender, 1);
  Envelope* const ended = envelope.get();
  envelope.reset();
  EXPECT_DEATH(ended->set_target_word(1), "use-after-poison");
  EXPECT_DEATH(ended->As<int64_t>() = 1, "use-after-poison");
}
#endif

#ifndef NDEBUG
TEST_F(EnvelopeTest, ChecksTheTypeInDebugBuilds) {
  EnvelopePtr envelope = MakeEnvelope<int64_t>(kSender, 1);
  EXPECT_DEATH(envelope->As<uint64_t>() = 1, "Is<M>");
}
#endif

}  // namespace
}  // namespace fraktor
