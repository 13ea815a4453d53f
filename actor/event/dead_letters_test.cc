#include "fraktor/actor/event/dead_letters.h"

#include <cstddef>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/event/event_stream.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor {
namespace {

DeadLetter Letter(DeadLetterReason reason) {
  return DeadLetter{{.reason = reason,
                     .sender = "pekko://s/user/a",
                     .recipient = "pekko://s/user/b",
                     .message = {.type_name = "Greet", .type = nullptr, .message = nullptr},
                     .at = {}}};
}

class DeadLettersTest : public ::testing::Test {
 protected:
  EventStream stream_;
  std::vector<std::string> lines_;
  DeadLetters dead_letters_{stream_,
                            {.log_limit = 3, .log_pause = absl::Minutes(5), .log = [this](std::string_view line) {
                               lines_.emplace_back(line);
                             }}};
  Instant now_;
};

TEST_F(DeadLettersTest, CountsByReason) {
  dead_letters_.Publish(Letter(DeadLetterReason::kStopped), now_);
  dead_letters_.Publish(Letter(DeadLetterReason::kStopped), now_);
  dead_letters_.Publish(Dropped{Letter(DeadLetterReason::kMailboxFull)}, now_);
  dead_letters_.Publish(SuppressedDeadLetter{Letter(DeadLetterReason::kNoRecipient)}, now_);
  dead_letters_.Publish(UnhandledMessage{}, now_);
  EXPECT_EQ(dead_letters_.count(DeadLetterReason::kStopped), 2u);
  EXPECT_EQ(dead_letters_.count(DeadLetterReason::kMailboxFull), 1u);
  EXPECT_EQ(dead_letters_.count(DeadLetterReason::kNoRecipient), 1u);
  EXPECT_EQ(dead_letters_.count(DeadLetterReason::kUnhandled), 1u);
  EXPECT_EQ(dead_letters_.count(DeadLetterReason::kQuarantined), 0u);
  EXPECT_EQ(dead_letters_.total(), 5u);
}

TEST_F(DeadLettersTest, PublishesSuppressedOnesOnlyToThoseWhoWantThem) {  // A94
  int dead = 0, suppressed = 0, dropped = 0, all = 0;
  const EventSubscription s1 = stream_.Listen<DeadLetter>([&](const DeadLetter&) { ++dead; });
  const EventSubscription s2 = stream_.Listen<SuppressedDeadLetter>([&](const SuppressedDeadLetter&) { ++suppressed; });
  const EventSubscription s3 = stream_.Listen<Dropped>([&](const Dropped&) { ++dropped; });
  const EventSubscription s4 = stream_.Listen<AllDeadLetters>([&](const AllDeadLetters&) { ++all; });
  dead_letters_.Publish(SuppressedDeadLetter{Letter(DeadLetterReason::kStopped)}, now_);
  EXPECT_EQ(dead, 0);
  EXPECT_EQ(suppressed, 1);
  EXPECT_EQ(all, 1);
  dead_letters_.Publish(Letter(DeadLetterReason::kStopped), now_);
  dead_letters_.Publish(Dropped{Letter(DeadLetterReason::kMailboxFull)}, now_);
  EXPECT_EQ(dead, 1);
  EXPECT_EQ(suppressed, 1);
  EXPECT_EQ(dropped, 1);
  EXPECT_EQ(all, 3);
  EXPECT_EQ(lines_.size(), 2u);  // the suppressed one is not logged
}

TEST_F(DeadLettersTest, CarriesWhoWhatWhyAndWhen) {
  std::string seen;
  Instant at;
  const EventSubscription subscription = stream_.Listen<AllDeadLetters>([&](const AllDeadLetters& letter) {
    seen = std::string(NameOf(letter.reason)) + " " + std::string(letter.sender) + " " + std::string(letter.recipient) +
           " " + std::string(letter.message.type_name);
    at = letter.at;
  });
  dead_letters_.Publish(Letter(DeadLetterReason::kQuarantined), now_ + absl::Seconds(7));
  EXPECT_EQ(seen, "quarantined pekko://s/user/a pekko://s/user/b Greet");
  EXPECT_EQ(at, now_ + absl::Seconds(7));
  EXPECT_EQ(lines_,
            (std::vector<std::string>{"dead letter 1 (quarantined): message \"Greet\" from \"pekko://s/user/a\" to "
                                      "\"pekko://s/user/b\" was not delivered"}));
}

TEST_F(DeadLettersTest, StopsLoggingAtTheLimitAndResumesAfterThePause) {  // A95
  dead_letters_.Publish(Letter(DeadLetterReason::kStopped), now_);
  dead_letters_.Publish(Dropped{Letter(DeadLetterReason::kMailboxFull)}, now_);
  dead_letters_.Publish(UnhandledMessage{}, now_);
  ASSERT_EQ(lines_.size(), 3u);  // dropped and unhandled messages count too
  EXPECT_EQ(lines_[1].find("no more"), std::string::npos);
  EXPECT_NE(lines_[2].find(" came, but the actor has no handler for it"), std::string::npos) << lines_[2];
  EXPECT_NE(lines_[2].find("no more are logged for 5m"), std::string::npos) << lines_[2];
  now_ += absl::Minutes(5) - absl::Nanoseconds(1);
  for (int i = 0; i < 17; ++i) dead_letters_.Publish(Letter(DeadLetterReason::kStopped), now_);
  EXPECT_EQ(lines_.size(), 3u);
  now_ += absl::Nanoseconds(1);
  dead_letters_.Publish(Letter(DeadLetterReason::kStopped), now_);
  ASSERT_EQ(lines_.size(), 4u);
  EXPECT_EQ(lines_[3].substr(0, 13), "dead letter 1");
  EXPECT_NE(lines_[3].find("17 were not logged in the pause"), std::string::npos) << lines_[3];
  for (int i = 0; i < 5; ++i) dead_letters_.Publish(Letter(DeadLetterReason::kStopped), now_);
  EXPECT_EQ(lines_.size(), 6u);
  EXPECT_EQ(dead_letters_.total(), 26u);
}

TEST_F(DeadLettersTest, CannotBeMadeToForgeALogLine) {
  DeadLetter letter = Letter(DeadLetterReason::kInvalidPath);
  letter.recipient = "x\n[ERROR] forged \x1b[31m";
  dead_letters_.Publish(letter, now_);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_EQ(lines_[0].find('\n'), std::string::npos);
  EXPECT_EQ(lines_[0].find('\x1b'), std::string::npos);
}

TEST(DeadLetters, LogsNothingWithALimitOfZero) {
  EventStream stream;
  int lines = 0;
  DeadLetters dead_letters(
      stream, {.log_limit = 0, .log_pause = absl::ZeroDuration(), .log = [&](std::string_view) { ++lines; }});
  dead_letters.Publish(Letter(DeadLetterReason::kStopped), Instant());
  EXPECT_EQ(lines, 0);
  EXPECT_EQ(dead_letters.total(), 1u);
}

TEST(DeadLetters, GoesOnIfTheLogThrows) {
  EventStream stream;
  int lines = 0;
  DeadLetters dead_letters(stream, {.log = [&](std::string_view) {
                             ++lines;
                             throw std::runtime_error("no log");
                           }});
  EXPECT_NO_THROW(dead_letters.Publish(Letter(DeadLetterReason::kStopped), Instant()));
  EXPECT_NO_THROW(dead_letters.Publish(Letter(DeadLetterReason::kStopped), Instant()));
  EXPECT_EQ(lines, 2);
  EXPECT_EQ(dead_letters.total(), 2u);
}

TEST(DeadLetters, GivesEveryReasonANameOfItsOwn) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kDeadLetterReasonCount; ++i) names.insert(NameOf(static_cast<DeadLetterReason>(i)));
  EXPECT_EQ(names.size(), kDeadLetterReasonCount);
  EXPECT_EQ(names.count("unknown"), 0u);
  EXPECT_EQ(static_cast<size_t>(DeadLetterReason::kNotCopyable) + 1, kDeadLetterReasonCount);
}

TEST(DeadLetters, CountsAndLogsFromManyThreads) {
  EventStream stream;
  size_t lines = 0;
  DeadLetters dead_letters(
      stream, {.log_limit = 10, .log_pause = absl::InfiniteDuration(), .log = [&](std::string_view) { ++lines; }});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) dead_letters.Publish(Letter(DeadLetterReason::kStopped), Instant());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(dead_letters.count(DeadLetterReason::kStopped), 4000u);
  EXPECT_EQ(lines, 10u);
}

// The log sends its lines to an actor that has ended.
TEST(DeadLetters, OfTheirOwnLogAreCountedAndPublishedOnly) {
  EventStream stream;
  DeadLetters* self = nullptr;
  std::vector<std::string> lines;
  DeadLetters dead_letters(stream, {.log_limit = 3, .log = [&](std::string_view line) {
                                      lines.emplace_back(line);
                                      if (lines.size() < 10) self->Publish(Letter(DeadLetterReason::kStopped), {});
                                    }});
  self = &dead_letters;
  int heard = 0;
  const EventSubscription all = stream.Listen<AllDeadLetters>([&](const AllDeadLetters&) { ++heard; });
  dead_letters.Publish(Letter(DeadLetterReason::kStopped), {});
  EXPECT_EQ(lines.size(), 1u);
  EXPECT_EQ(heard, 2);
  EXPECT_EQ(dead_letters.count(DeadLetterReason::kStopped), 2u);
  // The next dead letter is logged again.
  dead_letters.Publish(Letter(DeadLetterReason::kStopped), {});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1].find("dead letter 2 "), 0u) << lines[1];
}

TEST_F(DeadLettersTest, ReachAllListenersAndTheLogIfOneThrows) {
  int heard = 0;
  const EventSubscription s1 = stream_.Listen<AllDeadLetters>([](const AllDeadLetters&) { throw 7; });
  const EventSubscription s2 = stream_.Listen<UnhandledMessage>([](const UnhandledMessage&) { throw 7; });
  const EventSubscription s3 = stream_.Listen<AllDeadLetters>([&](const AllDeadLetters&) { ++heard; });
  const EventSubscription s4 = stream_.Listen<UnhandledMessage>([&](const UnhandledMessage&) { ++heard; });
  EXPECT_NO_THROW(dead_letters_.Publish(Letter(DeadLetterReason::kStopped), now_));
  EXPECT_NO_THROW(dead_letters_.Publish(UnhandledMessage{}, now_));
  EXPECT_EQ(heard, 2);
  EXPECT_EQ(lines_.size(), 2u);
}

// No lock is held meanwhile: the log may wait for a thread that loses a message.
TEST(DeadLetters, OfOtherThreadsAreLoggedWhileOneIs) {
  EventStream stream;
  DeadLetters* self = nullptr;
  std::vector<std::string> lines;
  DeadLetters dead_letters(stream,
                           {.log_limit = 3, .log = [&](std::string_view line) {
                              lines.emplace_back(line);
                              if (lines.size() > 1) return;
                              std::thread([&] { self->Publish(Letter(DeadLetterReason::kStopped), {}); }).join();
                            }});
  self = &dead_letters;
  dead_letters.Publish(Letter(DeadLetterReason::kStopped), {});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1].find("dead letter 2 "), 0u) << lines[1];
}

}  // namespace
}  // namespace fraktor
