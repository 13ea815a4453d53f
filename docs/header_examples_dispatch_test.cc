// The examples of headers of actor/dispatch and actor/mailbox, compiled. The header_examples check
// of tools/tidy finds each paragraph of an example here, line by line.
#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/dispatch/blocking_pool.h"
#include "fraktor/actor/dispatch/invoker_middleware.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/utils/future/task.h"

// The examples stand as they do in the headers.
// clang-format off
// Readers use the variables that an example leaves unused.
#pragma GCC diagnostic ignored "-Wunused-variable"

namespace fraktor {
namespace {

namespace blocking_pool {

struct Read {
  using Reply = std::string;
  std::string path;
};

std::string ReadWholeFile(const std::string& path) { return "the text of " + path; }

// An extension is made at its first use and ends after all actors of the system.
struct Files {
  explicit Files(ActorSystem& system) : pool(BlockingPool::Start({.name = "files"}, system.toolbox()).value()) {}
  std::unique_ptr<BlockingPool> pool;
};

struct Reader : Actor<Reader, Read> {
  Task<std::string> On(Context& context, Read read) {  // takes no other message meanwhile
    auto reading = RunBlocking(*context.system().Extension<Files>().pool,
                               [path = read.path] { return ReadWholeFile(path); });
    absl::StatusOr<std::string> text = co_await reading;
    co_return text.ok() ? *text : std::string(text.status().message());
  }
};

TEST(HeaderExamples, BlockingPool) {
  ActorSystem system("shop");
  const auto reader = system.Spawn<Reader>("reader");
  const absl::StatusOr<std::string> text = system.AskAndWait(reader, Read{"a.txt"}, absl::Seconds(60));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "the text of a.txt");
}

}  // namespace blocking_pool

namespace invoker_middleware {

struct Count {
  using Reply = int;
};
class Counter : public Actor<Counter, Count> {
 public:
  int On(Context&, const Count&) { return ++count_; }

 private:
  int count_ = 0;
};

// At most `limit` handlers at a time, also while they wait; an actor beyond that waits a
// millisecond.
class LimitHandlers : public InvokerMiddleware {
 public:
  explicit LimitHandlers(int limit) : free_(limit) {}
  MiddlewareFlow BeforeReceive(const Interception&) override {
    if (free_.fetch_sub(1) > 0) return MiddlewareFlow::Continue();
    free_.fetch_add(1);
    return MiddlewareFlow::Break(SuspendReason::kRateLimit, ResumeCondition::After(absl::Milliseconds(1)));
  }
  void AfterReceive(const Interception&, const absl::Status&) override { free_.fetch_add(1); }

 private:
  std::atomic<int> free_;
};

TEST(HeaderExamples, InvokerMiddleware) {
  ActorSystemOptions options{.config = {.system_name = "shop"}};
  options.scheduler.dispatchers.default_pool.middleware = {std::make_shared<LimitHandlers>(100)};
  ActorSystem system(options);
  const auto counter = system.Spawn<Counter>("counter");
  EXPECT_EQ(system.AskAndWait(counter, Count{}, absl::Seconds(60)).value(), 1);
  EXPECT_EQ(system.AskAndWait(counter, Count{}, absl::Seconds(60)).value(), 2);
}

}  // namespace invoker_middleware

namespace mailbox_options {

struct Order {};
struct Alarm {};
struct Orders : Actor<Orders, Order> {
  void On(Context&, const Order&) {}
};
struct Alarms : Actor<Alarms, Order, Alarm> {
  explicit Alarms(std::string* text) : handled(*text) {}
  void On(Context&, const Order&) { handled += "order "; }
  void On(Context&, const Alarm&) { handled += "alarm "; }
  std::string& handled;
};

TEST(HeaderExamples, MailboxOptions) {
  std::string handled;
  TestKit kit;
  ActorSystem& system = kit.system();
  MailboxOptions bounded{.capacity = 1000, .overflow = OverflowStrategy::kReject};
  MailboxOptions urgent_first{.order = MessageOrder::kPriority, .priority = [](const Envelope& envelope) {
                                return envelope.Is<Alarm>() ? 0 : 1;
                              }};
  auto orders = system.Spawn<Orders>("orders", {.mailbox = bounded});
  auto alarms = system.Spawn<Alarms>("alarms", {.mailbox = urgent_first}, &handled);
  orders.Tell(Order{});
  alarms.Tell(Order{});
  alarms.Tell(Alarm{});
  kit.Settle();
  EXPECT_EQ(handled, "alarm order ");
}

}  // namespace mailbox_options

}  // namespace
}  // namespace fraktor
