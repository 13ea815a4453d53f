#include "fraktor/actor/pattern/receptionist.h"

#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/testkit/test_kit.h"

namespace fraktor {
namespace {

struct Print {
  using Reply = Done;
};
struct Scan {
  using Reply = Done;
};

class Printer : public Actor<Printer, Print, Scan> {
 public:
  Done On(Context&, const Print&) { return {}; }
  Done On(Context&, const Scan&) { return {}; }
};

using Printers = std::vector<TypedRef<Print>>;

class ReceptionistTest : public testing::Test {
 protected:
  Receptionist& receptionist() { return Receptionist::Of(kit_.system()); }
  Printers Find(const ServiceKey<Print>& key) {
    auto finding = receptionist().Find(key, absl::Seconds(1));
    kit_.AwaitThat("a listing", [&] { return finding.IsReady(); });
    const absl::StatusOr<Listing<Print>> found = finding.Take();
    EXPECT_TRUE(found.ok()) << found.status();
    if (!found.ok()) return {};
    EXPECT_EQ(found->key, key);
    return found->services;
  }
  // The next listing that the subscriber gets.
  template <class Probe>
  Printers Expect(Probe& probe) {
    return probe.template Expect<Listing<Print>>().services;
  }

  TestKit kit_;
  const ServiceKey<Print> key_{"printers"};
};

TEST_F(ReceptionistTest, FindsWhoIsRegisteredInOrder) {
  EXPECT_EQ(Find(key_), Printers());
  const RefOf<Printer> a = kit_.SpawnNamed<Printer>("a");
  const RefOf<Printer> b = kit_.SpawnNamed<Printer>("b");
  ASSERT_TRUE(receptionist().Register(key_, b).ok());
  ASSERT_TRUE(receptionist().Register(key_, a).ok());
  ASSERT_TRUE(receptionist().Register(key_, b).ok());
  EXPECT_EQ(Find(key_), Printers({b, a}));
  receptionist().Deregister(key_, b);
  receptionist().Deregister(key_, b);
  EXPECT_EQ(Find(key_), Printers({a}));
  ASSERT_TRUE(receptionist().Register(key_, b).ok());
  EXPECT_EQ(Find(key_), Printers({a, b}));
}

TEST_F(ReceptionistTest, TellsKeysOfOtherNamesAndMessagesApart) {
  const RefOf<Printer> a = kit_.Spawn<Printer>();
  ASSERT_TRUE(receptionist().Register(ServiceKey<Scan>("printers"), a).ok());
  ASSERT_TRUE(receptionist().Register(ServiceKey<Print>("others"), a).ok());
  EXPECT_EQ(Find(key_), Printers());
  EXPECT_EQ(Find(ServiceKey<Print>("others")), Printers({a}));
}

TEST_F(ReceptionistTest, RemovesAnActorThatEnds) {
  const RefOf<Printer> a = kit_.Spawn<Printer>();
  const RefOf<Printer> b = kit_.Spawn<Printer>();
  const ServiceKey<Print> other("others");
  for (const auto& printer : {a, b}) ASSERT_TRUE(receptionist().Register(key_, printer).ok());
  ASSERT_TRUE(receptionist().Register(other, a).ok());
  kit_.Settle();
  kit_.system().Stop(a);
  kit_.Settle();
  EXPECT_EQ(Find(key_), Printers({b}));
  EXPECT_EQ(Find(other), Printers());
  EXPECT_EQ(Find(key_), Printers({b}));
}

TEST_F(ReceptionistTest, NeverListsAnActorThatHasEndedBefore) {
  auto probe = kit_.Probe<Listing<Print>>();
  ASSERT_TRUE(receptionist().Subscribe(key_, probe.ref()).ok());
  EXPECT_EQ(Expect(probe), Printers());
  const RefOf<Printer> ended = kit_.Spawn<Printer>();
  const RefOf<Printer> living = kit_.Spawn<Printer>();
  kit_.system().Stop(ended);
  kit_.Settle();
  ASSERT_TRUE(receptionist().Register(key_, ended).ok());
  probe.ExpectNoMessage();
  ASSERT_TRUE(receptionist().Register(key_, living).ok());
  EXPECT_EQ(Expect(probe), Printers({living}));
  EXPECT_EQ(Find(key_), Printers({living}));
}

TEST_F(ReceptionistTest, RefusesAReferenceToNoOne) {
  const absl::Status registered = receptionist().Register(key_, TypedRef<Print>());
  EXPECT_EQ(registered.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(registered.message(),
            "Register(\"printers\") got a reference to no one, such as a default TypedRef; pass the reference of an "
            "actor");
  const absl::Status subscribed = receptionist().Subscribe(key_, TypedRef<Listing<Print>>());
  EXPECT_EQ(subscribed.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(subscribed.message().find("Subscribe(\"printers\")"), absl::string_view::npos) << subscribed;
  EXPECT_EQ(Find(key_), Printers());
}

TEST_F(ReceptionistTest, TellsSubscribersOfEachChange) {
  auto probe = kit_.Probe<Listing<Print>>();
  const RefOf<Printer> a = kit_.Spawn<Printer>();
  const RefOf<Printer> b = kit_.Spawn<Printer>();
  ASSERT_TRUE(receptionist().Subscribe(key_, probe.ref()).ok());
  EXPECT_EQ(Expect(probe), Printers());
  ASSERT_TRUE(receptionist().Subscribe(key_, probe.ref()).ok());
  probe.ExpectNoMessage();
  ASSERT_TRUE(receptionist().Register(key_, a).ok());
  ASSERT_TRUE(receptionist().Register(key_, b).ok());
  EXPECT_EQ(Expect(probe), Printers({a, b})) << "changes that come together are one listing";
  ASSERT_TRUE(receptionist().Register(key_, b).ok());
  probe.ExpectNoMessage();
  kit_.system().Stop(a);
  EXPECT_EQ(Expect(probe), Printers({b}));
  receptionist().Unsubscribe(key_, probe.ref());
  receptionist().Unsubscribe(key_, probe.ref());
  receptionist().Deregister(key_, b);
  probe.ExpectNoMessage();
}

// Registers itself, and counts the services of its listings.
class Peer : public Actor<Peer, Print, Listing<Print>> {
 public:
  explicit Peer(const ServiceKey<Print>& key, size_t* heard) : key_(key), heard_(*heard) {}
  void PreStart(Context& context) {
    Receptionist& receptionist = Receptionist::Of(context.system());
    ASSERT_TRUE(receptionist.Register(key_, context.self()).ok());
    ASSERT_TRUE(receptionist.Subscribe(key_, context.self()).ok());
  }
  Done On(Context&, const Print&) { return {}; }
  void On(Context&, const Listing<Print>& listing) { heard_ = listing.services.size(); }

 private:
  const ServiceKey<Print> key_;
  size_t& heard_;
};

TEST_F(ReceptionistTest, LetsAServiceSubscribeToItsOwnKey) {
  size_t heard = 0;
  size_t other_heard = 0;
  auto peer = kit_.Spawn<Peer>(key_, &heard);
  kit_.Spawn<Peer>(key_, &other_heard);
  kit_.Settle();
  EXPECT_EQ(heard, 2u);
  EXPECT_EQ(other_heard, 2u);
  // It is still watched: it is subscribed.
  receptionist().Deregister(key_, peer);
  kit_.Settle();
  EXPECT_EQ(heard, 1u);
  kit_.system().Stop(peer);
  kit_.ExpectDeadLetters<Listing<Print>>(0, [&] {
    kit_.Settle();
    ASSERT_TRUE(receptionist().Register(key_, kit_.Spawn<Printer>()).ok());
  });
  EXPECT_EQ(heard, 1u) << "one that has ended is no subscriber";
  EXPECT_EQ(other_heard, 2u);
}

// Without subscribers, which would get a listing of all services, no registration or end visits the
// others.
TEST_F(ReceptionistTest, KeepsManyServices) {
  constexpr int kServices = 20'000;
  std::vector<RefOf<Printer>> printers;
  for (int i = 0; i < kServices; ++i) {
    printers.push_back(kit_.Spawn<Printer>());
    ASSERT_TRUE(receptionist().Register(key_, printers.back()).ok());
  }
  kit_.Settle();
  EXPECT_EQ(Find(key_).size(), static_cast<size_t>(kServices));
  for (const RefOf<Printer>& printer : printers) kit_.system().Stop(printer);
  kit_.Settle();
  EXPECT_EQ(Find(key_), Printers());
}

// Several threads call Of for the first time at once.
TEST(ReceptionistOnThreads, IsStartedOnce) {
  for (int round = 0; round < 30; ++round) {
    ActorSystemOptions options;
    options.workers = 1;
    options.log_level = LogLevel::kOff;
    auto system = ActorSystem::Create(options).value();
    const ServiceKey<Print> key("printers");
    constexpr int kThreads = 4;
    std::vector<RefOf<Printer>> printers;
    for (int t = 0; t < kThreads; ++t) printers.push_back(system->Spawn<Printer>());
    std::latch all(kThreads);
    std::vector<std::thread> threads;
    for (const RefOf<Printer>& printer : printers) {
      threads.emplace_back([&] {
        all.arrive_and_wait();
        Receptionist& receptionist = Receptionist::Of(*system);
        EXPECT_TRUE(receptionist.Register(key, printer).ok());
        const absl::StatusOr<Listing<Print>> found = receptionist.Find(key, absl::InfiniteDuration()).Wait();
        EXPECT_TRUE(found.ok()) << found.status();
      });
    }
    for (std::thread& thread : threads) thread.join();
    // All have registered with the same receptionist.
    const absl::StatusOr<Listing<Print>> found = Receptionist::Of(*system).Find(key, absl::InfiniteDuration()).Wait();
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->services.size(), size_t{kThreads});
    EXPECT_TRUE(system->Shutdown(absl::InfiniteDuration()).ok());
  }
}

}  // namespace
}  // namespace fraktor
