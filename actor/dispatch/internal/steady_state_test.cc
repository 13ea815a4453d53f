// Counts the allocations, by operator new and by malloc in any library, while actors send messages.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/internal/invoker_fixture.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/utils/testing/counted_allocations.h"

namespace fraktor::actor_internal {
namespace {

template <size_t kBytes>
struct Ball {
  std::array<unsigned char, kBytes> bytes = {};
};
struct Kick {};

constexpr int kWarmUp = 2000;
constexpr int kRounds = 20000;

// Sends a ball back and forth, as often as the test says.
template <size_t kBytes>
class Player final : public ActorInstance {
 public:
  explicit Player(int& left) : left_(left) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (message.Is<Kick>()) {
      context.Tell(other, Ball<kBytes>{});
    } else if (--left_ > 0) {
      context.Tell(context.sender(), message.As<Ball<kBytes>>());
    }
    return absl::OkStatus();
  }

  ActorRef other;

 private:
  int& left_;
};

// Asks again as soon as it has a reply.
template <size_t kBytes>
class Asker final : public ActorInstance {
 public:
  Asker(ActorRef server, int& left) : server_(server), left_(left) {}

  absl::Status Receive(ActorContext& context, Envelope&) override { return Ask(context); }
  absl::Status OnReply(ActorContext& context, ActorRef, absl::StatusOr<Envelope*> answer) override {
    if (!answer.ok()) return answer.status();
    return --left_ > 0 ? Ask(context) : absl::OkStatus();
  }

 private:
  absl::Status Ask(ActorContext& context) {
    return context.AskOnReply(server_, Ball<kBytes>{}, absl::Seconds(10)).status();
  }

  const ActorRef server_;
  int& left_;
};

template <size_t kBytes>
class Echo final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    context.Tell(context.sender(), message.As<Ball<kBytes>>());
    return absl::OkStatus();
  }
};

class SteadyState : public InvokerTest {
 protected:
  void SetUp() override {
    if (!kCountsAllocations) GTEST_SKIP() << kWhyNoAllocationsAreCounted;
  }

  // Runs `starter` until `left_` messages were received. Returns the number of allocations.
  int64_t AllocationsIn(ActorRef starter, int messages) {
    left_ = messages;
    Tell(starter, Kick{});
    const int64_t before = AllocationCount();
    RunAll();
    const int64_t after = AllocationCount();
    EXPECT_EQ(left_, 0);
    return after - before;
  }

  template <size_t kBytes>
  void ExpectNoAllocationsInPingPong(const MailboxOptions* options = nullptr) {
    auto a = std::make_unique<Player<kBytes>>(left_);
    auto b = std::make_unique<Player<kBytes>>(left_);
    Player<kBytes>& first = *a;
    ActorRef ping = Spawn(std::move(a), options);
    first.other = Spawn(std::move(b), options);
    AllocationsIn(ping, kWarmUp);
    EXPECT_EQ(AllocationsIn(ping, kRounds), 0) << kBytes << " bytes";
  }

  template <size_t kBytes>
  void ExpectNoAllocationsInAsks() {
    ActorRef server = Spawn(std::make_unique<Echo<kBytes>>());
    ActorRef asker = Spawn(std::make_unique<Asker<kBytes>>(server, left_));
    AllocationsIn(asker, kWarmUp);
    EXPECT_EQ(AllocationsIn(asker, kRounds), 0) << kBytes << " bytes";
  }

  int left_ = 0;
};

TEST_F(SteadyState, IsWatchedByACounterThatCounts) {
  const int64_t before = AllocationCount();
  void* volatile memory = std::malloc(10);
  std::free(memory);
  int* volatile number = new int(1);
  delete number;
  EXPECT_EQ(AllocationCount() - before, 2);
}

TEST_F(SteadyState, AllocatesNothingForMessagesUpTo88Bytes) {
  ExpectNoAllocationsInPingPong<8>();
  ExpectNoAllocationsInPingPong<24>();
  ExpectNoAllocationsInPingPong<88>();
}

TEST_F(SteadyState, AllocatesForLargerMessages) {
  auto a = std::make_unique<Player<89>>(left_);
  Player<89>& first = *a;
  ActorRef ping = Spawn(std::move(a));
  first.other = Spawn(std::make_unique<Player<89>>(left_));
  AllocationsIn(ping, kWarmUp);
  EXPECT_EQ(AllocationsIn(ping, kRounds), kRounds);
}

TEST_F(SteadyState, AllocatesNothingForQuestionsAndAnswers) {
  ExpectNoAllocationsInAsks<8>();
  ExpectNoAllocationsInAsks<24>();
  ExpectNoAllocationsInAsks<88>();
}

TEST_F(SteadyState, AllocatesNothingForBoundedMailboxesThatHaveRoom) {
  for (const OverflowStrategy overflow :
       {OverflowStrategy::kReject, OverflowStrategy::kBlockProducer, OverflowStrategy::kDropOldest}) {
    const MailboxOptions options{.capacity = 8, .overflow = overflow};
    ExpectNoAllocationsInPingPong<24>(&options);
  }
}

TEST_F(SteadyState, AllocatesNothingForMailboxesWithAnOrder) {
  const MailboxOptions options{.order = MessageOrder::kPriority, .priority = [](const Envelope&) { return 1; }};
  ExpectNoAllocationsInPingPong<24>(&options);
}

}  // namespace
}  // namespace fraktor::actor_internal
