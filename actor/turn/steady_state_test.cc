// Counts what is allocated from the system while actors talk: by operator new and by malloc, whichever library asks.
#include <array>
#include <atomic>
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

#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/turn/actor_context.h"
#include "fraktor/actor/turn/actor_instance.h"
#include "fraktor/actor/turn/invoker_fixture.h"
#include "fraktor/actor/turn/mailing.h"

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

// A sanitizer takes over malloc itself.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FRAKTOR_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FRAKTOR_SANITIZED 1
#endif
#endif

#if defined(__GLIBC__) && !defined(FRAKTOR_SANITIZED)
constexpr bool kCounts = true;

// glibc's own, behind the names that are taken over below.
extern "C" void* __libc_malloc(size_t size);                      // NOLINT
extern "C" void* __libc_memalign(size_t alignment, size_t size);  // NOLINT
extern "C" void* __libc_calloc(size_t count, size_t size);        // NOLINT
extern "C" void* __libc_realloc(void* memory, size_t size);       // NOLINT

extern "C" void* malloc(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
extern "C" void* calloc(size_t count, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
extern "C" void* realloc(void* memory, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, size);
}
extern "C" void* aligned_alloc(size_t alignment, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
#else
constexpr bool kCounts = false;
#endif

namespace fraktor {
namespace {

template <size_t kBytes>
struct Ball {
  std::array<unsigned char, kBytes> bytes = {};
};
struct Kick {};

constexpr int kWarmUp = 2000;
constexpr int kRounds = 20000;

// Sends a ball back and forth, so many times as the test says.
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

// Asks again as soon as it has an answer.
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
    if (!kCounts) GTEST_SKIP() << "malloc cannot be taken over here: it belongs to a sanitizer, or is not glibc's";
  }

  // Has `starter` go on until `left_` messages were received; how much that allocated.
  int64_t AllocationsIn(ActorRef starter, int messages) {
    left_ = messages;
    Tell(starter, Kick{});
    const int64_t before = allocations.load();
    RunAll();
    const int64_t after = allocations.load();
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
  const int64_t before = allocations.load();
  void* volatile memory = std::malloc(10);
  std::free(memory);
  int* volatile number = new int(1);
  delete number;
  EXPECT_EQ(allocations.load() - before, 2);
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
}  // namespace fraktor
