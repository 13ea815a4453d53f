#include "fraktor/remote/association/system_delivery.h"

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor {
namespace {

Instant At(int64_t ms) { return Instant() + absl::Milliseconds(ms); }

wire::SystemMessage Message(uint64_t uid) {
  wire::SystemMessage message;
  message.mutable_stop()->mutable_actor()->set_uid(uid);
  return message;
}

std::vector<uint64_t> NumbersOf(const wire::SystemMessages& messages) {
  std::vector<uint64_t> numbers;
  for (const wire::SystemMessage& message : messages.messages()) numbers.push_back(message.number());
  return numbers;
}

// R19
TEST(SystemOutbox, NumbersFromOneKeepsAndSendsAgain) {
  SystemOutbox outbox({.resend_interval = absl::Seconds(1)});
  wire::SystemMessages due;
  EXPECT_FALSE(outbox.TakeDue(At(0), {.messages = 10}, due));
  for (uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(outbox.Add(Message(i + 1), At(0)));
  ASSERT_TRUE(outbox.TakeDue(At(0), {.messages = 10}, due));
  EXPECT_EQ(NumbersOf(due), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(due.first_kept(), 1u);
  EXPECT_FALSE(outbox.TakeDue(At(999), {.messages = 10}, due));
  ASSERT_TRUE(outbox.TakeDue(At(1000), {.messages = 10}, due));
  EXPECT_EQ(NumbersOf(due), (std::vector<uint64_t>{1, 2, 3}));
  outbox.Acknowledge(2, At(1100));
  EXPECT_EQ(outbox.pending(), 1u);
  ASSERT_TRUE(outbox.Add(Message(4), At(1200)));
  ASSERT_TRUE(outbox.TakeDue(At(1200), {.messages = 10}, due));
  EXPECT_EQ(NumbersOf(due), (std::vector<uint64_t>{4}));  // The third is on its way.
  EXPECT_EQ(due.first_kept(), 3u);
  ASSERT_TRUE(outbox.TakeDue(At(2200), {.messages = 10}, due));
  EXPECT_EQ(NumbersOf(due), (std::vector<uint64_t>{3, 4}));
  outbox.Acknowledge(4, At(2300));
  EXPECT_FALSE(outbox.TakeDue(At(9000), {.messages = 10}, due));
}

// R17
TEST(SystemOutbox, RefusesOneTooManyAndSaysWhenItHasWaitedTooLong) {
  SystemOutbox outbox({.max_pending = 2, .give_up_after = absl::Hours(6)});
  EXPECT_TRUE(outbox.Add(Message(1), At(0)));
  EXPECT_TRUE(outbox.Add(Message(2), At(1)));
  EXPECT_FALSE(outbox.Add(Message(3), At(2)));
  EXPECT_FALSE(outbox.HasGivenUp(At(0) + absl::Hours(5)));
  EXPECT_TRUE(outbox.HasGivenUp(At(0) + absl::Hours(6)));
  outbox.Acknowledge(2, At(3));
  EXPECT_FALSE(outbox.HasGivenUp(At(0) + absl::Hours(60)));
}

// R21: what is lost is sent again also while others come all the time.
TEST(SystemDelivery, SendsAgainWhatWasLostWhileNewOnesComeWithoutEnd) {
  SystemOutbox outbox({.max_pending = 300, .resend_interval = absl::Seconds(1)});
  SystemInbox inbox;
  for (int64_t ms = 0; ms < 20'000; ms += 10) {
    ASSERT_TRUE(outbox.Add(Message(1), At(ms))) << "after " << ms << " ms, with " << inbox.delivered() << " delivered";
    wire::SystemMessages due;
    while (outbox.TakeDue(At(ms), {.messages = 64}, due)) {
      // Now and then the only frame with a message is lost.
      const bool is_lost = due.messages_size() == 1 && due.messages(0).number() % 100 == 1;
      if (!is_lost) inbox.Take(due);
    }
    outbox.Acknowledge(inbox.delivered(), At(ms));
  }
  EXPECT_GT(inbox.delivered(), 1800u);
}

TEST(SystemOutbox, FillsFramesByBytesAndRefusesTooManyOfThem) {
  SystemOutbox outbox({.max_pending_bytes = 10'000});
  wire::SystemMessage large;
  large.mutable_watch()->mutable_watchee()->set_path(std::string(1000, 'x'));
  int added = 0;
  while (outbox.Add(large, At(0))) ++added;
  EXPECT_EQ(added, 9);
  EXPECT_LE(outbox.pending_bytes(), 10'000u);
  wire::SystemMessages due;
  int frames = 0;
  int messages = 0;
  for (; outbox.TakeDue(At(0), {.messages = 64, .bytes = 4096}, due); ++frames) {
    EXPECT_LE(due.ByteSizeLong(), 4096u + 16u);
    messages += due.messages_size();
  }
  EXPECT_EQ(frames, 3);
  EXPECT_EQ(messages, 9);
  // One that is larger than that goes alone.
  outbox.Acknowledge(9, At(0));
  EXPECT_EQ(outbox.pending_bytes(), 0u);
  ASSERT_TRUE(outbox.Add(large, At(0)));
  ASSERT_TRUE(outbox.TakeDue(At(0), {.messages = 64, .bytes = 100}, due));
  EXPECT_EQ(due.messages_size(), 1);
}

TEST(SystemInbox, GoesOnAfterWhatTheSenderHasGivenUp) {
  SystemOutbox outbox({});
  SystemInbox inbox;
  wire::SystemMessages due;
  ASSERT_TRUE(outbox.Add(Message(1), At(0)));
  ASSERT_TRUE(outbox.TakeDue(At(0), {.messages = 10}, due));
  EXPECT_EQ(inbox.Take(due).size(), 1u);
  ASSERT_TRUE(outbox.Add(Message(2), At(0)));
  outbox.Clear();
  ASSERT_TRUE(outbox.Add(Message(3), At(0)));
  ASSERT_TRUE(outbox.TakeDue(At(0), {.messages = 10}, due));
  const auto fresh = inbox.Take(due);
  ASSERT_EQ(fresh.size(), 1u);
  EXPECT_EQ(fresh[0]->stop().actor().uid(), 3u);
  EXPECT_EQ(inbox.delivered(), 3u);
}

// Whatever is lost, doubled or late: each arrives once, in order.
void RunLossy(uint64_t seed, double loss, const std::vector<uint64_t>& lost_first) {
  constexpr uint64_t kMessages = 500;
  Random random(seed);
  SystemOutbox outbox({.resend_interval = absl::Seconds(1)});
  SystemInbox inbox;
  std::vector<uint64_t> delivered;
  std::deque<wire::SystemMessages> late;
  uint64_t added = 0;
  for (int64_t ms = 0; delivered.size() < kMessages; ms += 10) {
    ASSERT_LT(ms, 10'000'000) << "seed " << seed;
    if (added < kMessages) {
      ASSERT_TRUE(outbox.Add(Message(++added), At(ms)));
    }
    wire::SystemMessages due;
    while (outbox.TakeDue(At(ms), {.messages = 7}, due)) {
      bool is_lost = random.Bernoulli(loss);
      for (const uint64_t number : lost_first) {
        for (const wire::SystemMessage& one : due.messages())
          is_lost = is_lost || (ms < 5500 && one.number() == number);
      }
      if (is_lost) continue;
      late.push_back(due);
      if (random.Bernoulli(loss)) late.push_back(due);
    }
    if (!late.empty() && random.Bernoulli(loss)) std::swap(late.front(), late.back());
    while (!late.empty()) {
      for (const wire::SystemMessage* const message : inbox.Take(late.front())) {
        delivered.push_back(message->stop().actor().uid());
      }
      late.pop_front();
      if (!random.Bernoulli(loss)) outbox.Acknowledge(inbox.delivered(), At(ms));
    }
  }
  for (uint64_t i = 0; i < kMessages; ++i) ASSERT_EQ(delivered[i], i + 1) << "seed " << seed;
}

// R21
TEST(SystemDelivery, BringsEachOnceInOrderWhateverIsLost) {
  for (uint64_t seed = 1; seed <= 20; ++seed) RunLossy(seed, 0.05, {});
  RunLossy(1, 0.4, {});
  RunLossy(2, 0, {1});
  RunLossy(3, 0, {250});
  RunLossy(4, 0, {500});
}

}  // namespace
}  // namespace fraktor
