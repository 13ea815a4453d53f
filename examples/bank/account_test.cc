// Accounts in one process and in virtual time: the post office is a test's, which loses letters and copies them.
#include "fraktor/examples/bank/account.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/examples/bank/audit.h"
#include "fraktor/persistence/actor/persistence_extension.h"
#include "fraktor/persistence/memory/memory_journal.h"
#include "fraktor/utils/future/future.h"

namespace bank {
namespace {

using AccountRef = fraktor::RefOf<Account>;

// How many copies of a letter arrive.
struct Weather {
  std::function<int(const Credit&)> of_credits = [](const Credit&) { return 1; };
  std::function<int(const Credited&)> of_answers = [](const Credited&) { return 1; };
  std::map<std::string, AccountRef> accounts = {};
};

class TestPost : public fraktor::Actor<TestPost, Credit, Credited> {
 public:
  explicit TestPost(std::shared_ptr<Weather> weather) : weather_(std::move(weather)) {}

  void On(Context& context, const Credit& letter) {
    for (int i = weather_->of_credits(letter); i > 0; --i) context.Tell(weather_->accounts.at(letter.to), letter);
  }
  void On(Context& context, const Credited& letter) {
    for (int i = weather_->of_answers(letter); i > 0; --i) context.Tell(weather_->accounts.at(letter.from), letter);
  }

 private:
  const std::shared_ptr<Weather> weather_;
};

class AccountTest : public testing::Test {
 protected:
  AccountTest() : kit_(Options()) {
    EXPECT_TRUE(
        kit_.system().Extension<fraktor::PersistenceExtension>().AddJournal("memory", {.storage = journal_}).ok());
    kit_.SpawnNamed<TestPost>(kPostOffice, weather_);
    for (const char* name : {"alice", "bob", "nobody"}) Start(name);
    EXPECT_EQ(Ask("alice", Open{100}).value().cents, 100);
    EXPECT_EQ(Ask("bob", Open{100}).value().cents, 100);
  }

  static fraktor::TestKitOptions Options() {
    fraktor::TestKitOptions options;
    options.system.codecs = AccountCodecs().Build().value();
    return options;
  }

  void Start(const std::string& name) {
    weather_->accounts[name] = kit_.Spawn<Account>(fraktor::GrainContext{.key = fraktor::GrainKey("account", name)});
  }
  // As when its node has died, and it was activated elsewhere.
  void Restart(const std::string& name) {
    kit_.system().Stop(weather_->accounts.at(name));
    kit_.Settle();
    Start(name);
  }

  template <class Q>
  absl::StatusOr<typename Q::Reply> Ask(const std::string& name, Q question) {
    return kit_.AskAndWait(weather_->accounts.at(name), std::move(question));
  }
  fraktor::Future<TransferResult> Begin(const std::string& from, const Transfer& transfer) {
    auto asking = kit_.system().Ask(weather_->accounts.at(from), transfer, absl::Minutes(1));
    kit_.Settle();
    return asking;
  }
  int64_t CentsOf(const std::string& name) { return Ask(name, GetBalance{}).value().cents; }

  AuditReport AuditOf(std::vector<Acknowledged> acknowledged) {
    return Audit(*journal_, {.accounts = 2, .opening_cents = 100, .acknowledged = std::move(acknowledged)}).value();
  }

  const std::shared_ptr<fraktor::MemoryJournal> journal_ = fraktor::MemoryJournal::Open({}).value();
  const std::shared_ptr<Weather> weather_ = std::make_shared<Weather>();
  fraktor::TestKit kit_;
};

TEST_F(AccountTest, PaysAndTellsTheCustomer) {
  const absl::StatusOr<TransferResult> result = Ask("alice", Transfer{"t1", "bob", 30});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outcome, Outcome::kPaid);
  EXPECT_EQ(CentsOf("alice"), 70);
  EXPECT_EQ(CentsOf("bob"), 130);
  EXPECT_TRUE(AuditOf({{"t1", "alice", "bob", 30, Outcome::kPaid}}).ok());
}

TEST_F(AccountTest, IsOpenedOnce) {
  ASSERT_TRUE(Ask("alice", Transfer{"t1", "bob", 30}).ok());
  EXPECT_EQ(Ask("alice", Open{100}).value().cents, 70);
  EXPECT_FALSE(Ask("nobody", GetBalance{}).value().is_open);
}

TEST_F(AccountTest, TellsAgainWhatBecameOfATransferInsteadOfMakingASecond) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Ask("alice", Transfer{"t1", "bob", 30}).value().outcome, Outcome::kPaid);
    Restart("alice");
  }
  EXPECT_EQ(CentsOf("bob"), 130);
  EXPECT_TRUE(absl::IsInvalidArgument(Ask("alice", Transfer{"t1", "bob", 31}).status()));
}

TEST_F(AccountTest, SendsTheMoneyUntilItArrivesAndTakesItOnce) {
  int letters = 0;
  weather_->of_credits = [&](const Credit&) { return ++letters < 4 ? 0 : 3; };
  fraktor::Future<TransferResult> paying = Begin("alice", {"t1", "bob", 30});
  EXPECT_EQ(CentsOf("alice"), 70) << "it is on its way";
  EXPECT_EQ(Ask("alice", GetBalance{}).value().on_the_way, 1u);
  kit_.Advance(absl::Seconds(10));
  ASSERT_TRUE(paying.IsReady());
  EXPECT_EQ(paying.Take().value().outcome, Outcome::kPaid);
  EXPECT_GE(letters, 4);
  EXPECT_EQ(CentsOf("bob"), 130);
  EXPECT_EQ(Ask("alice", GetBalance{}).value().on_the_way, 0u);
}

TEST_F(AccountTest, AsksAgainWhenTheAnswerIsLost) {
  int answers = 0;
  weather_->of_answers = [&](const Credited&) { return ++answers < 3 ? 0 : 2; };
  fraktor::Future<TransferResult> paying = Begin("alice", {"t1", "bob", 30});
  kit_.Advance(absl::Seconds(10));
  ASSERT_TRUE(paying.IsReady());
  EXPECT_EQ(paying.Take().value().outcome, Outcome::kPaid);
  EXPECT_EQ(CentsOf("bob"), 130);
  EXPECT_TRUE(AuditOf({{"t1", "alice", "bob", 30, Outcome::kPaid}}).ok());
}

TEST_F(AccountTest, GoesOnAfterBothHaveDiedInTheMiddle) {
  bool is_cut = true;
  weather_->of_credits = [&](const Credit&) { return is_cut ? 0 : 1; };
  fraktor::Future<TransferResult> paying = Begin("alice", {"t1", "bob", 30});
  Restart("alice");
  Restart("bob");
  EXPECT_EQ(CentsOf("alice"), 70);
  is_cut = false;
  // The customer's first question died with alice's first life.
  const absl::StatusOr<TransferResult> again =
      kit_.system().AskAndWait(weather_->accounts.at("alice"), Transfer{"t1", "bob", 30}, absl::Seconds(30));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->outcome, Outcome::kPaid);
  EXPECT_EQ(CentsOf("alice"), 70);
  EXPECT_EQ(CentsOf("bob"), 130);
  EXPECT_TRUE(AuditOf({{"t1", "alice", "bob", 30, Outcome::kPaid}}).ok());
}

TEST_F(AccountTest, GetsItBackWhereNobodyTakesIt) {
  EXPECT_EQ(Ask("alice", Transfer{"t1", "nobody", 30}).value().outcome, Outcome::kReturned);
  EXPECT_EQ(CentsOf("alice"), 100);
  EXPECT_TRUE(AuditOf({{"t1", "alice", "nobody", 30, Outcome::kReturned}}).ok());
}

TEST_F(AccountTest, StaysRefusedWhenTheAccountIsOpenedMeanwhile) {
  weather_->of_answers = [](const Credited&) { return 0; };
  fraktor::Future<TransferResult> paying = Begin("alice", {"t1", "nobody", 30});
  ASSERT_TRUE(Ask("nobody", Open{0}).ok());
  weather_->of_answers = [](const Credited&) { return 1; };
  kit_.Advance(absl::Seconds(10));
  ASSERT_TRUE(paying.IsReady());
  EXPECT_EQ(paying.Take().value().outcome, Outcome::kReturned);
  EXPECT_EQ(CentsOf("nobody"), 0);
  EXPECT_EQ(CentsOf("alice"), 100);
}

TEST_F(AccountTest, DeclinesWhatItDoesNotHaveAndSticksToIt) {
  EXPECT_EQ(Ask("alice", Transfer{"t1", "bob", 101}).value().outcome, Outcome::kDeclined);
  ASSERT_TRUE(Ask("bob", Transfer{"t2", "alice", 50}).ok());
  EXPECT_EQ(Ask("alice", Transfer{"t1", "bob", 101}).value().outcome, Outcome::kDeclined);
  EXPECT_TRUE(absl::IsInvalidArgument(Ask("alice", Transfer{"t3", "bob", 0}).status()));
  EXPECT_TRUE(
      AuditOf({{"t1", "alice", "bob", 101, Outcome::kDeclined}, {"t2", "bob", "alice", 50, Outcome::kPaid}}).ok());
}

}  // namespace
}  // namespace bank
