#include "fraktor/actor/mailbox/internal/ordered_envelopes.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "fraktor/actor/mailbox/internal/envelope_list.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor {
namespace ordered_test {

struct Job {
  int rank;
  int number;
};
struct Pause {
  int number;
};

}  // namespace ordered_test

template <>
inline constexpr bool kIsControlMessage<ordered_test::Pause> = true;

namespace actor_internal {
namespace {

using ordered_test::Job;
using ordered_test::Pause;

Envelope* AJob(int rank, int number) { return MakeEnvelope<Job>(ActorRef(), rank, number).release(); }
Envelope* APause(int number) { return MakeEnvelope<Pause>(ActorRef(), number).release(); }

int NumberOf(EnvelopePtr envelope) {
  const Pause* const pause = envelope->TryAs<Pause>();
  return pause != nullptr ? pause->number : envelope->As<Job>().number;
}

std::vector<int> PopAll(OrderedEnvelopes& queue) {
  std::vector<int> numbers;
  while (Envelope* const envelope = queue.PopFront()) numbers.push_back(NumberOf(EnvelopePtr(envelope)));
  EXPECT_TRUE(queue.empty());
  return numbers;
}

MailboxOptions ByRank() {
  return {.order = MessageOrder::kPriority,
          .priority = [](const Envelope& envelope) { return envelope.Is<Job>() ? envelope.As<Job>().rank : 0; }};
}

// A55
TEST(OrderedEnvelopes, KeepFifoIfThatIsTheOrder) {
  OrderedEnvelopes queue({});
  EXPECT_EQ(queue.PopFront(), nullptr);
  queue.Add(AJob(5, 1));
  queue.Add(APause(2));
  queue.Add(AJob(1, 3));
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_EQ(PopAll(queue), (std::vector<int>{1, 2, 3}));
}

// A65
TEST(OrderedEnvelopes, HandOutControlMessagesFirst) {
  OrderedEnvelopes queue({.order = MessageOrder::kControlFirst});
  queue.Add(AJob(0, 1));
  queue.Add(APause(2));
  queue.Add(AJob(0, 3));
  queue.Add(APause(4));
  EXPECT_EQ(NumberOf(EnvelopePtr(queue.PopFront())), 2);
  queue.Add(APause(5));
  EXPECT_EQ(PopAll(queue), (std::vector<int>{4, 5, 1, 3}));
}

// A65
TEST(OrderedEnvelopes, HandOutTheLowestRankFirst) {
  OrderedEnvelopes queue(ByRank());
  queue.Add(AJob(3, 1));
  queue.Add(AJob(INT_MAX, 2));
  queue.Add(AJob(INT_MIN, 3));
  queue.Add(AJob(-1, 4));
  EXPECT_EQ(NumberOf(EnvelopePtr(queue.PopFront())), 3);
  queue.Add(AJob(-2, 5));
  EXPECT_EQ(PopAll(queue), (std::vector<int>{5, 4, 1, 2}));
}

// A65
TEST(OrderedEnvelopes, KeepFifoAmongEquals) {
  OrderedEnvelopes queue(ByRank());
  std::vector<std::pair<int, int>> expected;
  uint32_t random = 12345;
  for (int number = 0; number < 500; ++number) {
    random = random * 1664525 + 1013904223;
    const int rank = static_cast<int>(random >> 30);
    expected.emplace_back(rank, number);
    queue.Add(AJob(rank, number));
  }
  std::sort(expected.begin(), expected.end());
  std::vector<int> numbers;
  for (const auto& [rank, number] : expected) numbers.push_back(number);
  EXPECT_EQ(PopAll(queue), numbers);
}

// A69
TEST(OrderedEnvelopes, PutWhatWasStashedBeforeEverythingElse) {
  for (const MailboxOptions& options :
       {MailboxOptions{}, MailboxOptions{.order = MessageOrder::kControlFirst}, ByRank()}) {
    OrderedEnvelopes queue(options);
    queue.Add(APause(1));
    EnvelopeList stash;
    stash.PushBack(AJob(9, 2));
    stash.PushBack(AJob(8, 3));
    queue.AddFront(stash);
    queue.AddFront({});
    EnvelopeList later;
    later.PushBack(AJob(7, 4));
    queue.AddFront(later);
    queue.Add(APause(5));
    EXPECT_EQ(queue.size(), 5u);
    EXPECT_EQ(PopAll(queue), (std::vector<int>{4, 2, 3, 1, 5}));
  }
}

// A65
TEST(OrderedEnvelopes, PutAMessageLastIfItsRankIsNotToBeHad) {
  OrderedEnvelopes queue({.order = MessageOrder::kPriority, .priority = [](const Envelope& envelope) {
                            const int rank = envelope.As<Job>().rank;
                            if (rank == 13) throw std::runtime_error("no rank");
                            if (rank == 14) throw 14;
                            return rank;
                          }});
  queue.Add(AJob(13, 1));
  queue.Add(AJob(INT_MAX, 2));
  queue.Add(AJob(14, 3));
  queue.Add(AJob(5, 4));
  EXPECT_EQ(queue.priority_failures(), 2u);
  EXPECT_EQ(queue.size(), 4u);
  EXPECT_EQ(PopAll(queue), (std::vector<int>{4, 1, 2, 3}));
}

TEST(OrderedEnvelopes, RankAMessageOnce) {
  int calls = 0;
  OrderedEnvelopes queue({.order = MessageOrder::kPriority, .priority = [&calls](const Envelope&) { return ++calls; }});
  for (int number = 0; number < 20; ++number) queue.Add(AJob(0, number));
  PopAll(queue);
  EXPECT_EQ(calls, 20);
}

TEST(OrderedEnvelopes, GiveUpEverythingInTheirOrder) {
  OrderedEnvelopes queue(ByRank());
  queue.Add(AJob(2, 1));
  queue.Add(AJob(1, 2));
  EnvelopeList stash;
  stash.PushBack(AJob(3, 3));
  queue.AddFront(stash);
  EnvelopeList all = queue.TakeAll();
  EXPECT_TRUE(queue.empty());
  std::vector<int> numbers;
  while (Envelope* const envelope = all.PopFront()) numbers.push_back(NumberOf(EnvelopePtr(envelope)));
  EXPECT_EQ(numbers, (std::vector<int>{3, 2, 1}));
}

}  // namespace
}  // namespace actor_internal
}  // namespace fraktor
