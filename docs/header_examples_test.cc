// The examples that the public headers of actor/ begin with, so that they compile, and most of them
// run. header_examples in snippets_test holds the two together: each paragraph of an example stands
// here, line by line.
#include <pthread.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/mailbox/overflow/overflow_policy.h"
#include "fraktor/actor/observe/gauge_table.h"
#include "fraktor/actor/observe/metrics_snapshot.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/actor/pattern/actor_log.h"
#include "fraktor/actor/pattern/backoff_supervisor.h"
#include "fraktor/actor/pattern/behaviors.h"
#include "fraktor/actor/pattern/circuit_breaker.h"
#include "fraktor/actor/pattern/fsm.h"
#include "fraktor/actor/pattern/graceful_stop.h"
#include "fraktor/actor/pattern/pipe_to.h"
#include "fraktor/actor/pattern/receptionist.h"
#include "fraktor/actor/pattern/retry.h"
#include "fraktor/actor/pattern/start_task.h"
#include "fraktor/actor/pattern/stash.h"
#include "fraktor/actor/router/router.h"
#include "fraktor/actor/router/router_messages.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/system/coordinated_shutdown.h"
#include "fraktor/actor/system/termination_signal.h"
#include "fraktor/actor/testkit/log_filter.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/actor/timer/receive_timeout.h"
#include "fraktor/actor/timer/system_timers.h"
#include "fraktor/actor/timer/timers.h"
#include "fraktor/actor/typed/function_actor.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/with_timeout.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/table/indexed_set.h"
#include "fraktor/utils/toolbox/serial_executor.h"

// The examples stand as they do in the headers.
// clang-format off
// What an example does not use, its reader does.
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"

namespace fraktor {
namespace {

namespace typed_actor {

struct Greeted { std::string text; };
struct Greet { using Reply = Greeted; std::string name; };

class Greeter : public Actor<Greeter, Greet> {
 public:
  Greeted On(Context& context, const Greet& greet) { return {"Hello, " + greet.name}; }   // the answer
};

TEST(HeaderExamples, TypedActor) {
  TestKit kit;
  EXPECT_EQ(kit.AskAndWait(kit.Spawn<Greeter>(), Greet{"you"})->text, "Hello, you");
}

TEST(HeaderExamples, LogFilter) {
  TestKit kit;
  const LogFilter restarts{.level = LogLevel::kWarning, .contains = "restarts after", .path = "/user/greeter"};
  kit.ExpectLog(restarts, 0, [] {});
}

}  // namespace typed_actor

namespace reply_later {

struct Meal { std::string name; };
struct Order { using Reply = Meal; };
struct Cooked { std::string name; };
struct Sum { int cents; };
struct Bill { using Reply = Sum; };
class Till : public Actor<Till, Bill> {
 public:
  Sum On(Context&, const Bill&) { return {100}; }
};

class Kitchen : public Actor<Kitchen, Order, Cooked, Bill> {
 public:
  explicit Kitchen(RefOf<Till> till) : till_(till) {}

  Deferred<Meal> On(Context& context, const Order&) {           // replies later
    const ReplyTo<Meal> reply_to(context);
    waiting_.push_back(reply_to);
    return reply_to;
  }
  void On(Context&, const Cooked& cooked) {
    for (const ReplyTo<Meal>& reply_to : std::exchange(waiting_, {})) reply_to.Reply(Meal{cooked.name});
  }
  Forwarded<Sum> On(Context& context, const Bill& bill) { return context.Forward(till_, bill); }  // till_ replies

 private:
  const RefOf<Till> till_;
  std::vector<ReplyTo<Meal>> waiting_;
};

TEST(HeaderExamples, ReplyLater) {
  TestKit kit;
  auto kitchen = kit.Spawn<Kitchen>(kit.Spawn<Till>());
  auto meal = kit.system().Ask(kitchen, Order{}, absl::Seconds(1));
  kit.Settle();
  kitchen.Tell(Cooked{"soup"});
  kit.Settle();
  ASSERT_TRUE(meal.IsReady());
  EXPECT_EQ(meal.Take()->name, "soup");
  EXPECT_EQ(kit.AskAndWait(kitchen, Bill{})->cents, 100);
}

class Closed : public Actor<Closed, Order> {
 public:
  Deferred<Meal> On(Context& context, const Order&) { return Stash(context); }
};
class Broken : public Actor<Broken, Order> {
 public:
  Deferred<Meal> On(Context&, const Order&) { return absl::InternalError("the oven is broken"); }
};

TEST(HeaderExamples, ReplyLaterByAStatus) {
  TestKit kit;
  auto stashed = kit.system().Ask(kit.Spawn<Closed>(), Order{}, absl::Seconds(1));
  auto failed = kit.system().Ask(kit.Spawn<Broken>(), Order{}, absl::Seconds(1));
  kit.Settle();
  EXPECT_FALSE(stashed.IsReady());
  EXPECT_EQ(failed.Take().status().code(), absl::StatusCode::kInternal);
}

}  // namespace reply_later

namespace overflow_policy {

struct Upload { std::string bytes; };

// A full mailbox refuses large uploads. Small ones wait for room.
class RefuseLargeUploads : public OverflowPolicy {
 public:
  std::string_view name() const noexcept override { return "RefuseLargeUploads"; }
  OverflowNeeds needs() const noexcept override { return OverflowNeeds::kLine; }   // for Hold
  OverflowDecision Decide(const OverflowCase& full) const override {
    const Upload* upload = full.message.TryAs<Upload>();
    const bool is_large = upload != nullptr && upload->bytes.size() > 1000;
    return is_large ? OverflowDecision::Reject("over 1000 bytes") : OverflowDecision::Hold();
  }
};

class Store : public Actor<Store, Upload> {
 public:
  void On(Context&, const Upload&) {}
};

TEST(HeaderExamples, OverflowPolicy) {
  MailboxOptions uploads{.capacity = 100, .overflow_policy = std::make_shared<RefuseLargeUploads>()};
  EXPECT_TRUE(uploads.Validate().ok());
  uploads.capacity = 1;
  TestKit kit;
  auto store = kit.Spawn<Store>(SpawnOptions{.mailbox = uploads});
  EXPECT_TRUE(store.TryTell(Upload{"a"}).ok());
  const absl::Status refused = store.TryTell(Upload{std::string(1001, 'a')});
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("was not accepted: over 1000 bytes"), std::string::npos) << refused;
}

}  // namespace overflow_policy

namespace gauge_table {

TEST(HeaderExamples, GaugeTable) {
  TestKit kit;
  ActorSystem& system = kit.system();
  ObservabilityHub& hub = system.hub();
  absl::StatusOr<MetricCounter> orders = hub.AddCounter("shop.orders_total", {{"region", "eu"}});
  absl::StatusOr<GaugeRegistration> stock = hub.AddGauge("shop.stock", {}, [] { return 12.0; });
  orders->Add();
  const MetricsSnapshot snapshot = hub.Snapshot(system.toolbox().Now());
  EXPECT_EQ(snapshot.Find("shop.orders_total", {{"region", "eu"}})->value, 1);
  EXPECT_EQ(snapshot.Find("shop.stock")->value, 12);
}

}  // namespace gauge_table

namespace function_actor {

struct Pong { int number; };
struct Ping { using Reply = Pong; int number; };

Pong Echo(ActorContext& context, const Ping& ping) { return {ping.number}; }

TEST(HeaderExamples, FunctionActor) {
  TestKit kit;
  ActorSystem& system = kit.system();
  auto echo = system.Spawn<FunctionActor<&Echo>>("echo");      // TypedRef<Ping>
  EXPECT_EQ(kit.AskAndWait(echo, Ping{7})->number, 7);
}

}  // namespace function_actor

namespace typed_ref {

struct Add { int n; };
struct Sum { int n; };
struct Get { using Reply = Sum; };
class Counter : public Actor<Counter, Add, Get> {
 public:
  void On(Context&, const Add& add) { sum_ += add.n; }
  Sum On(Context&, const Get&) { return {sum_}; }

 private:
  int sum_ = 0;
};

TEST(HeaderExamples, TypedRef) {
  TestKit kit;
  ActorSystem& system = kit.system();
  TypedRef<Add, Get> both = system.Spawn<Counter>("counter");
  TypedRef<Add> adder = both;                        // narrowed; the other way round does not compile
  adder.Tell(Add{1});                                // adder.Tell(Get{}): ThisReferenceDoesNotTake<Get, ...>
  EXPECT_EQ(kit.AskAndWait(both, Get{})->n, 1);
}

}  // namespace typed_ref

namespace typed_system {

struct Withdraw { int amount; };
class Account : public Actor<Account, Withdraw> {
 public:
  explicit Account(int balance) : balance_(balance) {}
  void On(Context&, const Withdraw& withdraw) { balance_ -= withdraw.amount; }

 private:
  int balance_;
};

TEST(HeaderExamples, TypedSystem) {
  ActorSystem system("bank");
  auto account = system.Spawn<Account>("alice", /*balance=*/100);       // throws SpawnError if there is an "alice"
  absl::StatusOr<RefOf<Account>> second = system.TrySpawn<Account>("alice", 100);      // AlreadyExists
  auto bounded = system.Spawn<Account>("bob", {.mailbox = {.capacity = 1000}}, /*balance=*/100);  // see SpawnOptions
  auto carol = system.Spawn("carol", [] { return Account(/*balance=*/100); });      // called again at each restart
  EXPECT_FALSE(carol.IsNoOne());
  EXPECT_FALSE(account.IsNoOne());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_FALSE(bounded.IsNoOne());
}

}  // namespace typed_system

namespace done {

struct Save { using Reply = Done; std::string text; };

class File : public Actor<File, Save> {
 public:
  absl::StatusOr<Done> On(Context&, const Save& save) {                  // or Task<Done>
    if (save.text.empty()) return absl::InvalidArgumentError("there is nothing to save");
    return Done{};
  }
};

TEST(HeaderExamples, DoneIsAnAnswer) {
  TestKit kit;
  ActorSystem& system = kit.system();
  auto file = kit.Spawn<File>();
  absl::Status saved = system.AskAndWait(file, Save{"text"}, absl::Seconds(1)).status();
  EXPECT_TRUE(saved.ok()) << saved;
}

}  // namespace done

namespace actor_log {

struct Sold { std::string item; };
class Cart : public Actor<Cart, Sold> {
 public:
  void On(Context& context, const Sold& sold) {
    const int n = 3;
    const std::string item = sold.item;
    Log(context, LogLevel::kInfo, "sold " + std::to_string(n) + " of " + item);
  }
};

TEST(HeaderExamples, ActorLog) {
  TestKit kit;
  auto cart = kit.Spawn<Cart>();
  kit.ExpectLog({.level = LogLevel::kInfo, .contains = "sold 3 of milk"}, 1, [&] { cart.Tell(Sold{"milk"}); });
}

}  // namespace actor_log

namespace behaviors {

struct Open {};

class Door final : public BehaviorActor {
 public:
  Door() { Become(&Door::Closed); }

 private:
  absl::Status Closed(ActorContext& context, Envelope& message) {
    if (!message.Is<Open>()) return context.Unhandled(message);
    Become(&Door::Opened);                         // from the next message on
    return absl::OkStatus();
  }
  absl::Status Opened(ActorContext& context, Envelope& message) { return context.Unhandled(message); }
};

TEST(HeaderExamples, Behaviors) {
  TestKit kit;
  const ActorRef door = kit.Spawn(PropsOf<Door>());
  kit.ExpectUnhandled<Open>(1, [&] {
    Tell(door, Open{});
    Tell(door, Open{});
  });
}

}  // namespace behaviors

namespace circuit_breaker {

struct Quote { int cents; };
struct GetQuote { using Reply = Quote; };
int ReadSensor() { return 1; }

[[maybe_unused]] Task<void> Use(ActorContext& context, RuntimeToolbox& toolbox, ActorRef exchange) {
  std::unique_ptr<CircuitBreaker> breaker = CircuitBreaker::Make(toolbox, {.max_failures = 5}).value();
  auto calling = breaker->Call([&] { return context.Ask<Quote>(exchange, GetQuote{}, absl::Seconds(1)); });
  absl::StatusOr<Quote> quote = co_await calling;                  // Unavailable, at once, while it is open
  absl::StatusOr<int> n = breaker->CallNow([&] { return ReadSensor(); });
}

}  // namespace circuit_breaker

namespace fsm {

struct Opened {};
struct Push {};

TEST(HeaderExamples, Fsm) {
  TestKit kit;
  ActorSystem& system = kit.system();
  enum class DoorState { kClosed, kOpen };
  struct DoorData { int opened = 0; };

  class Door final : public Fsm<DoorState, DoorData> {
   public:
    Door() {
      StartWith(DoorState::kClosed, {});
      When(DoorState::kClosed, [this](ActorContext&, Envelope& message) {
        if (!message.Is<Push>()) return Unhandled();
        return GoTo(DoorState::kOpen).Using({data().opened + 1}).Replying(Opened{});
      });
      When(DoorState::kOpen, [this](ActorContext&, Envelope& message) {
        return message.Is<FsmStateTimeout>() ? GoTo(DoorState::kClosed) : Stay();
      }, /*timeout=*/absl::Seconds(5));
    }
  };

  ActorRef door = system.TrySpawn(PropsOf<Door>(), "door").value();
  absl::StatusOr<Opened> opened = system.AskAndWait<Opened>(door, Push{}, absl::Seconds(1));
  EXPECT_TRUE(opened.ok()) << opened.status();
}

}  // namespace fsm

namespace graceful_stop {

struct Drain {};
class Till : public Actor<Till, Drain> {
 public:
  void On(Context& context, const Drain&) { context.Stop(); }
};

[[maybe_unused]] Task<void> Use(ActorSystem& system, ActorRef cart, RefOf<Till> till) {
  Future<void> stopping = GracefulStop(system, cart, absl::Seconds(5));
  absl::Status stopped = co_await stopping;                              // OK, or DeadlineExceeded
  Future<void> draining = GracefulStop(system, till, absl::Seconds(5), Drain{});   // instead of PoisonPill
}

}  // namespace graceful_stop

namespace pipe_to {

struct Loaded {};
struct Page {};
struct Store {
  Future<Loaded> Load(int) { return MakeReadyFuture<Loaded>(Loaded{}); }
};

[[maybe_unused]] void Use(TypedContext<Loaded>& context, ActorSystem& system, Store& store, int id, Future<Page> page,
                          ActorRef printer) {
  PipeTo(context, store.Load(id), context.self());       // a Loaded, or an ErrorReply, from this actor to itself
  PipeTo(system, std::move(page), printer, /*sender=*/{});
}

}  // namespace pipe_to

namespace receive_timeout {

struct Use {};

class Session : public Actor<Session, Use> {
 public:
  absl::Status PreStart(Context& context) { return SetReceiveTimeout(context, absl::Minutes(2)); }
  void On(Context&, const Use&) { ++used_; }
  void On(Context& context, const ReceiveTimeout&) { context.Stop(); }

 private:
  int used_ = 0;
};

TEST(HeaderExamples, ReceiveTimeout) {
  TestKit kit;
  auto session = kit.Spawn<Session>();
  kit.Advance(absl::Minutes(1));
  session.Tell(Use{});
  kit.Advance(absl::Minutes(1));
  EXPECT_TRUE(kit.IsAlive(session));
  kit.Advance(absl::Minutes(1));
  EXPECT_FALSE(kit.IsAlive(session));
}

}  // namespace receive_timeout

namespace futures {

struct Page {};
struct Receipt {};
struct Store {};
struct Order {};
Future<Page> Fetch(const std::string&) { return MakeReadyFuture<Page>(Page{}); }
Task<Receipt> Buy(Store&, Order) { co_return Receipt{}; }

[[maybe_unused]] Task<void> UseRetry(RuntimeToolbox& toolbox, ActorSystem& system, std::string url) {
  auto fetching = Retry(toolbox, {.max_retries = 3, .delay = absl::Milliseconds(100)}, [&] { return Fetch(url); });
  absl::StatusOr<Page> page = co_await fetching;                             // in a handler
  Future<Page> later = StartTask(system, Retry(toolbox, {}, [url] { return Fetch(url); }));   // from elsewhere
}

[[maybe_unused]] Task<void> UseTimeouts(RuntimeToolbox& toolbox, std::string url) {
  Future<Page> page = WithTimeout(toolbox, Fetch(url), absl::Seconds(2));   // or DeadlineExceeded, kNotInTime
  Future<void> pause = SleepFor(toolbox, absl::Milliseconds(100));
  absl::Status over = co_await pause;
  Future<TimedResult<Page>> timed = TimedResultOf(toolbox, Fetch(url), absl::Seconds(2));
}

TEST(HeaderExamples, StartTask) {
  TestKit kit;
  ActorSystem& system = kit.system();
  Store store;
  Order order;
  Future<Receipt> buying = StartTask(system, Buy(store, order));
  kit.Settle();
  EXPECT_TRUE(buying.IsReady());
}

}  // namespace futures

namespace indexed_set {

struct Ended {};

TEST(HeaderExamples, IndexedSet) {
  TestKit kit;
  TestProbe probe = kit.Probe();
  const ActorRef watcher = probe.ref();
  IndexedSet<ActorRef, 2> watchers;
  watchers.Insert(watcher);                                   // false if it is there already
  for (const ActorRef each : watchers) Tell(each, Ended{});
  watchers.Erase(watcher);                                    // false if it is not there
  probe.Expect<Ended>();
  EXPECT_TRUE(watchers.empty());
}

}  // namespace indexed_set

namespace system_timers {

struct Greet { std::string name; };
class Greeter : public Actor<Greeter, Greet> {
 public:
  void On(Context&, const Greet&) {}
};
struct Gauge {
  void Update() { ++updates; }
  int updates = 0;
};

TEST(HeaderExamples, SystemTimers) {
  Gauge gauge;
  TestKit kit;
  ActorSystem& system = kit.system();
  auto greeter = kit.Spawn<Greeter>();
  SystemTimers& timers = SystemTimers::Of(system);
  Cancellable reminder = timers.StartSingle(absl::Seconds(5), greeter, Greet{"again"}).value();
  timers.StartFixedRate({.period = absl::Seconds(1)}, [&gauge] { gauge.Update(); }).value();
  const bool is_off = reminder.Cancel();              // true once, and only if it has not happened yet
  kit.Advance(absl::Seconds(3));
  EXPECT_TRUE(is_off);
  EXPECT_EQ(gauge.updates, 3);
}

}  // namespace system_timers

namespace receptionist {

struct Print { using Reply = Done; };

const ServiceKey<Print> kPrinters("printers");

class Printer : public Actor<Printer, Print> {
 public:
  absl::Status PreStart(Context& context) {
    return Receptionist::Of(context.system()).Register(kPrinters, context.self());
  }
  Done On(Context&, const Print&) { return {}; }
};

// Gets a Listing at once, and another one after each change.
class Office : public Actor<Office, Listing<Print>> {
 public:
  absl::Status PreStart(Context& context) {
    return Receptionist::Of(context.system()).Subscribe(kPrinters, context.self());
  }
  void On(Context&, const Listing<Print>& listing) { printers_ = listing.services; }

 private:
  std::vector<TypedRef<Print>> printers_;
};

TEST(HeaderExamples, Receptionist) {
  TestKit kit;
  ActorSystem& system = kit.system();
  kit.Spawn<Office>();
  kit.Spawn<Printer>();
  kit.Settle();
  Future<Listing<Print>> finding = Receptionist::Of(system).Find(kPrinters, absl::Seconds(1));
  kit.Settle();
  ASSERT_TRUE(finding.IsReady());
  EXPECT_EQ(finding.Take()->services.size(), 1u);
}

}  // namespace receptionist

namespace stash {

struct Connected {};
struct Row { int id; };
struct Query { using Reply = Row; int id; };

class Store : public Actor<Store, Connected, Query> {
 public:
  Deferred<Row> On(Context& context, const Query&) { return Stash(context); }      // Not yet.
  void On(Context& context, const Connected&) {
    UnstashAll(context);
    context.Become<Open>();
  }

 private:
  struct Open {
    Row On(Context&, const Query& query) { return {query.id}; }
    void On(Context&, const Connected&) {}
  };
};

TEST(HeaderExamples, Stash) {
  TestKit kit;
  auto store = kit.Spawn<Store>();
  auto asking = kit.system().Ask(store, Query{3}, absl::Seconds(1));
  kit.Settle();
  store.Tell(Connected{});
  kit.Settle();
  ASSERT_TRUE(asking.IsReady());
  EXPECT_EQ(asking.Take()->id, 3);
}

}  // namespace stash

namespace timers {

struct Tick {};
struct Poll {};

class Clock : public Actor<Clock, Tick> {
 public:
  absl::Status PreStart(Context& context) {
    return Timers(context).StartFixedRate("tick", Tick{}, {.period = absl::Seconds(1)});
  }
  void On(Context& context, const Tick&) {
    if (++ticks_ == 10) Timers(context).Cancel("tick");
  }

 private:
  int ticks_ = 0;
};

[[maybe_unused]] void Use(TypedContext<Tick, Poll>& context) {
  Timers timers(context);
  timers.StartFixedRate("tick", Tick{}, {.period = absl::Seconds(1)}).IgnoreError();              // 1, 2, 3 s
  timers.StartFixedDelay("poll", Poll{}, {.period = absl::Seconds(1), .initial_delay = absl::ZeroDuration()})
      .IgnoreError();
}

TEST(HeaderExamples, Timers) {
  TestKit kit;
  kit.Spawn<Clock>();
  kit.Advance(absl::Seconds(20));
}

}  // namespace timers

namespace router {

struct Job { int number; };
struct Reload {};
class Worker : public Actor<Worker, Job, Reload> {
 public:
  void On(Context&, const Job&) {}
  void On(Context&, const Reload&) {}
};
struct Deposit { int amount; };
struct Get { std::string name; };

TEST(HeaderExamples, Router) {
  TestKit kit;
  ActorSystem& system = kit.system();
  auto workers = SpawnPool<Worker>(system, {.size = 5}, "workers");       // TypedRef, as of one Worker
  workers.Tell(Job{1});                                                   // one of the five gets it
  TellAllRoutees(workers, Reload{});                                      // all of them do
  TellKeyed(workers, "alice", Job{2});                                    // the one that is responsible for "alice"
  kit.Settle();
}

[[maybe_unused]] void Use(ActorContext& context, ActorRef a, ActorRef b, ActorRef c) {
  const PoolOptions options{.strategy = RouterStrategy::SmallestMailbox(), .size = 5};
  PropsPtr pool = MakePool(options, TypedPropsOf<Worker>()).value();
  ActorRef router = context.TrySpawn(*pool, "workers").value();              // the same without types
  PropsPtr group = MakeGroup({.routees = {a, b, c}}).value();             // actors that are there already
}

[[maybe_unused]] void Manage(ActorSystem& system, ActorRef router) {
  Tell(router, Broadcast(Reload{}));                       // to all of its routees, whatever its strategy
  Tell(router, Keyed("alice", Deposit{10}));               // to the routee that is responsible for "alice"
  Tell(router, AdjustPoolSize{.change = 2});
  absl::StatusOr<Routees> now = system.AskAndWait<Routees>(router, GetRoutees{}, absl::Seconds(1));
}

TEST(HeaderExamples, RouterOptions) {
  PoolOptions in_turn{.strategy = RouterStrategy::RoundRobin(), .size = 5};
  PoolOptions by_name{.strategy = RouterStrategy::ConsistentHashing({.mapping = RoutingKeyOf<Get, &Get::name>})};
  PoolOptions first{.strategy = RouterStrategy::TailChopping({.interval = absl::Milliseconds(20)}), .size = 3};

  PoolOptions pressed{.size = 2, .resizer = PressureResizerOptions{.lower_bound = 2, .upper_bound = 15}};
  PoolOptions exploring{.exploring_resizer = ExploringResizerOptions{.upper_bound = 64}};
  for (const PoolOptions& options : {in_turn, by_name, first, pressed, exploring}) {
    EXPECT_TRUE(options.Validate().ok()) << options.Validate();
  }
}

}  // namespace router

namespace supervision {

struct Job {};

class Decides : public Actor<Decides, Job> {
 public:
  void On(Context&, const Job&) {}
  SupervisionDirective OnChildFailure(const Failure& failure) {
    return failure.IsTransient() ? Restart() : Escalate();
  }
};

class HasAStrategy : public Actor<HasAStrategy, Job> {
 public:
  void On(Context&, const Job&) {}
  static const SupervisorStrategy& Supervision() {
    static const SupervisorStrategy strategy({.scope = SupervisionScope::kAllForOne,
                                              .max_restarts = 3,
                                              .window = absl::Minutes(1),
                                              .decider = [](const Failure& failure) {
                                                return failure.IsTransient() ? Restart() : Stop();
                                              }});
    return strategy;
  }
};

class Connection : public Actor<Connection, Job> {
 public:
  explicit Connection(std::string address) : address_(std::move(address)) {}
  void On(Context&, const Job&) {}

 private:
  std::string address_;
};

TEST(HeaderExamples, Supervision) {
  TestKit kit;
  ActorSystem& system = kit.system();
  const std::string address = "10.0.0.7";
  kit.Spawn<Decides>();
  kit.Spawn<HasAStrategy>();
  BackoffSupervisorOptions options;
  options.child = MakeTypedProps<Connection>({}, address);
  options.child_name = "connection";
  options.min_backoff = absl::Milliseconds(100);
  options.max_backoff = absl::Seconds(30);
  PropsPtr props = MakeBackoffProps(std::move(options)).value();
  ActorRef connection = system.TrySpawn(*props, "connection-supervisor").value();
  kit.Settle();
  EXPECT_TRUE(kit.IsAlive(connection));
}

}  // namespace supervision

namespace system_examples {

struct Total { int items; };
struct GetTotal { using Reply = Total; };
struct Add { std::string item; };
class Cart : public Actor<Cart, Add, GetTotal> {
 public:
  void On(Context&, const Add&) { ++items_; }
  Total On(Context&, const GetTotal&) { return {items_}; }

 private:
  int items_ = 0;
};

TEST(HeaderExamples, ActorSystem) {
  ActorSystem system("shop");
  auto cart = system.Spawn<Cart>("cart");                                // pekko://shop/user/cart
  cart.Tell(Add{"milk"});
  absl::StatusOr<Total> total = system.AskAndWait(cart, GetTotal{}, absl::Seconds(10));
  ShutdownReport report = system.Shutdown(absl::Seconds(10));
  EXPECT_TRUE(total.ok()) << total.status();
  EXPECT_TRUE(report.ok());
}

absl::Status Create() {
  ActorSystemOptions options{.config = {.system_name = "shop"}, .workers = 4};
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<ActorSystem> system, ActorSystem::Create(options));
  return absl::OkStatus();
}

absl::Status Configure() {
  ActorSystemConfig config{
      .system_name = "shop",
      .remoting = RemotingConfig{.canonical_hostname = "10.0.0.7", .canonical_port = 2552},
  };
  FRAKTOR_RETURN_IF_ERROR(config.Validate());
  RemotingConfig remoting{.canonical_hostname = "10.0.0.7", .canonical_port = 2552};
  remoting.quarantine_duration = absl::Hours(1);
  return absl::OkStatus();
}

struct Server {
  Future<void> Close() { return MakeReadyFuture(); }
};

TEST(HeaderExamples, SystemOptions) {
  EXPECT_TRUE(Create().ok());
  EXPECT_TRUE(Configure().ok());
}

struct Where { using Reply = std::string; };
class Orders : public Actor<Orders, Where> {
 public:
  std::string On(Context&, const Where&) {
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof(name));
    return name;
  }
};
using Audit = Orders;
using Printer = Orders;

TEST(HeaderExamples, Dispatchers) {
  ActorSystemOptions options{.config = {.system_name = "shop"}};
  options.dispatchers = {{.name = "db", .workers = 4, .may_block = true},
                         {.name = "reports", .budget = 16, .nice = 19}};
  ActorSystem system(options);
  auto orders = system.Spawn<Orders>("orders", {.dispatcher = "db"});
  auto audit = system.Spawn<Audit>("audit", {.dispatcher = "reports"});
  auto printer = system.Spawn<Printer>("printer", {.dispatcher = DispatcherChoice::kPinned});
  EXPECT_EQ(system.AskAndWait(orders, Where{}, absl::Seconds(60))->substr(0, 3), "db-");
  EXPECT_EQ(system.AskAndWait(audit, Where{}, absl::Seconds(60)).value(), "reports-0");
  EXPECT_EQ(system.AskAndWait(printer, Where{}, absl::Seconds(60)).value(), "pinned-0-0");
}

TEST(HeaderExamples, CoordinatedShutdown) {
  TestKit kit;
  ActorSystem& system = kit.system();
  Server server;
  CoordinatedShutdown& shutdown = system.coordinated_shutdown();
  shutdown.AddTask(shutdown_phase::kServiceUnbind, "close the port", [&] { return server.Close(); }).value();
  Future<void> down = shutdown.Run(ShutdownReason::Unknown());
  kit.Settle();
  EXPECT_TRUE(down.IsReady());
}

[[maybe_unused]] void Listen(RuntimeToolbox& toolbox, ActorSystem& system) {
  auto signal = TerminationSignal::Listen(toolbox, [&] { system.Terminate(); }).value();
}

}  // namespace system_examples

namespace testkit {

struct Expired {};
struct Login { std::string name; };
struct Welcome {};
struct Thanks {};
struct Order {};
struct Fail {};

class Session : public Actor<Session, Login, Thanks, Fail> {
 public:
  explicit Session(ActorRef owner) : owner_(owner) {}
  absl::Status PreStart(Context& context) { return SetReceiveTimeout(context, absl::Hours(1)); }
  Welcome On(Context&, const Login&) { return {}; }
  void On(Context&, const Thanks&) {}
  absl::Status On(Context& context, const Fail&) {
    Log(context, LogLevel::kWarning, "restarts");
    return absl::OkStatus();
  }
  void On(Context& context, const ReceiveTimeout&) { context.Tell(owner_, Expired{}); }

 private:
  const ActorRef owner_;
};

TEST(Session, ExpiresAfterAnHour) {
  TestKit kit;                                          // one thread, a clock that moves when the test says so
  auto probe = kit.Probe();
  auto session = kit.Spawn<Session>(probe.ref());
  kit.Advance(absl::Hours(1));                          // takes microseconds
  probe.Expect<Expired>();
}

class Taker : public Actor<Taker, Order> {
 public:
  void On(Context&, const Order&) {}
};

TEST(HeaderExamples, TestKit) {
  TestKit kit;
  auto worker = kit.Spawn<Session>(ActorRef());
  auto ended = kit.Spawn<Taker>();
  kit.system().Stop(ended);
  kit.Settle();
  // Exactly two, while the block runs and after it.
  kit.ExpectDeadLetters<Order>(2, [&] { for (int i = 0; i < 2; ++i) ended.Tell(Order{}); });
  kit.ExpectLog({.level = LogLevel::kWarning, .contains = "restarts"}, 1, [&] { worker.Tell(Fail{}); });
}

TEST(HeaderExamples, TestProbe) {
  TestKit kit;
  auto probe = kit.Probe();
  auto session = kit.Spawn<Session>(probe.ref());
  probe.Watch(session);
  probe.Send(session, Login{"ann"});              // the probe is the sender
  Welcome welcome = probe.Expect<Welcome>();      // the next message, which must be one; waits for it
  probe.Reply(Thanks{});                          // to who sent it
  probe.ExpectNoMessage(absl::Minutes(1));
  kit.system().Stop(session);
  probe.ExpectTerminated(session);
}

}  // namespace testkit

namespace simulation {

struct Total { int64_t total; };
struct GetTotal { using Reply = Total; };
struct Transfer { int64_t amount; };
class Bank : public Actor<Bank, Transfer, GetTotal> {
 public:
  void On(Context&, const Transfer& transfer) {
    from_ -= transfer.amount;
    to_ += transfer.amount;
  }
  Total On(Context&, const GetTotal&) { return {from_ + to_}; }

 private:
  int64_t from_ = 1000;
  int64_t to_ = 0;
};

TEST(Transfer, NeverLosesMoney) {
  Simulate({.seeds = 100}, [](Simulation& sim) {
    auto bank = sim.Spawn<Bank>();
    Random random = sim.MakeRandom("transfers");
    for (int i = 0; i < 100; ++i) bank.Tell(Transfer{random.UniformIn(1, 10)});
    sim.Advance(absl::Minutes(1));
    EXPECT_EQ(sim.AskAndWait(bank, GetTotal{}).value().total, 1000);
  });
}

}  // namespace simulation

}  // namespace
}  // namespace fraktor
