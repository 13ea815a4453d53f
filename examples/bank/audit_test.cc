// What an audit finds: each kind of fault, put into a journal by hand.
#include "fraktor/examples/bank/audit.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/examples/bank/account.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/memory/memory_journal.h"

namespace bank {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class AuditTest : public testing::Test {
 protected:
  AuditTest() {
    Store("alice", Opened{100});
    Store("bob", Opened{100});
  }

  template <class E>
  void Store(const std::string& account, const E& event) {
    const std::string id = std::string(kAccountPrefix) + account;
    uint64_t& epoch = epochs_[id];
    if (epoch == 0) epoch = journal_->OpenWriter(id, {}).Wait().value().epoch;
    fraktor::PersistentRepr repr{.persistence_id = id, .sequence_nr = ++numbers_[id], .epoch = epoch};
    repr.manifest = fraktor::Codec<E>::kManifest;
    ASSERT_TRUE(codecs_->Encode(event, repr.payload).ok());
    std::vector<fraktor::AtomicWrite> writes = {fraktor::AtomicWrite::Make(repr).value()};
    ASSERT_TRUE(journal_->Write(std::move(writes)).Wait().value().empty());
  }
  void StorePaid(const std::string& transfer, int64_t cents) {
    Store("alice", Given{transfer, "bob", cents});
    Store("bob", Taken{transfer, "alice", cents});
    Store("alice", Settled{transfer, true});
  }

  AuditReport Look(std::vector<Acknowledged> acknowledged, size_t accounts = 2) {
    return Audit(*journal_, {.accounts = accounts, .opening_cents = 100, .acknowledged = std::move(acknowledged)})
        .value();
  }

  const std::shared_ptr<const fraktor::CodecRegistry> codecs_ = AccountCodecs().Build().value();
  const std::shared_ptr<fraktor::MemoryJournal> journal_ = fraktor::MemoryJournal::Open({}).value();
  std::map<std::string, uint64_t> epochs_;
  std::map<std::string, uint64_t> numbers_;
};

TEST_F(AuditTest, FindsNothingWrongWithAnHonestBank) {
  StorePaid("t1", 30);
  Store("bob", Given{"t2", "nobody", 10});
  Store("nobody", Refused{"t2", "bob", 10});
  Store("bob", Settled{"t2", false});
  Store("bob", Declined{"t3", "alice", 1000});
  const AuditReport report =
      Look({{"t1", "alice", "bob", 30, Outcome::kPaid}, {"t2", "bob", "nobody", 10, Outcome::kReturned}});
  EXPECT_TRUE(report.ok()) << testing::PrintToString(report.faults);
  EXPECT_EQ(report.accounts, 2u);
  EXPECT_EQ(report.events, 9u);
  EXPECT_EQ(report.money_in_cents, 200);
  EXPECT_EQ(report.money_out_cents, 200);
  EXPECT_EQ(report.paid, 1u);
  EXPECT_EQ(report.returned, 1u);
  EXPECT_EQ(report.declined, 1u);
  EXPECT_EQ(report.confirmed, 2u);
  EXPECT_EQ(report.unacknowledged, 1u);
}

TEST_F(AuditTest, FindsATransferThatIsStillOnItsWay) {
  Store("alice", Given{"t1", "bob", 30});
  EXPECT_THAT(Look({}).faults, ElementsAre(HasSubstr("transfer t1 from alice to bob was given 1, taken 0"),
                                           HasSubstr("money in is 200 cents, money out is 170")));
}

TEST_F(AuditTest, FindsMoneyThatWasTakenTwice) {
  StorePaid("t1", 30);
  Store("bob", Taken{"t1", "alice", 30});
  EXPECT_THAT(Look({}).faults, ElementsAre(HasSubstr("taken 2"), HasSubstr("money out is 230")));
}

TEST_F(AuditTest, FindsAnAcknowledgedTransferThatIsNotThere) {
  EXPECT_THAT(Look({{"t1", "alice", "bob", 30, Outcome::kPaid}}).faults,
              ElementsAre(HasSubstr("transfer t1 was acknowledged as paid, and is not in the journal")));
}

TEST_F(AuditTest, FindsACustomerWhoWasToldSomethingElse) {
  StorePaid("t1", 30);
  const AuditReport report = Look({{"t1", "alice", "bob", 30, Outcome::kReturned}});
  EXPECT_THAT(report.faults, ElementsAre(HasSubstr("acknowledged as 30 cents from alice to bob, returned")));
  EXPECT_EQ(report.confirmed, 0u);
  EXPECT_EQ(Look({{"t1", "alice", "bob", 31, Outcome::kPaid}}).fault_count, 1u);
  EXPECT_THAT(Look({{"t1", "alice", "bob", 30, Outcome::kPaid}, {"t1", "alice", "bob", 30, Outcome::kPaid}}).faults,
              ElementsAre(HasSubstr("acknowledged twice")));
}

TEST_F(AuditTest, FindsAnAmountThatChangesOnTheWay) {
  Store("alice", Given{"t1", "bob", 30});
  Store("bob", Taken{"t1", "alice", 31});
  Store("alice", Settled{"t1", true});
  EXPECT_THAT(Look({}).faults, ElementsAre(HasSubstr("30 cents from alice to bob in one event, and 31"),
                                           HasSubstr("money in is 200 cents, money out is 201")));
}

TEST_F(AuditTest, FindsAnAccountBelowZeroAndOneThatWasOpenedTwice) {
  StorePaid("t1", 130);
  Store("bob", Opened{100});
  EXPECT_THAT(Look({}).faults,
              ElementsAre(HasSubstr("alice has -30 cents after its event 2"),
                          HasSubstr("alice has -30 cents after its event 3"), HasSubstr("bob was opened 2 times")));
}

TEST_F(AuditTest, FindsAccountsThatAreMissing) {
  EXPECT_THAT(Look({}, 3).faults, ElementsAre(HasSubstr("2 accounts were opened, and not 3")));
}

}  // namespace
}  // namespace bank
