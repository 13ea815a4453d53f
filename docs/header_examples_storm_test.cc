// The examples of the headers of actor/testkit/storm, so that they compile and run.
// //tools/tidy:tidy_test checks that each paragraph of an example stands here, line by line.
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/testkit/storm/ledger.h"
#include "fraktor/actor/testkit/storm/messages.h"
#include "fraktor/actor/testkit/storm/storm.h"
#include "fraktor/actor/testkit/test_kit.h"

namespace fraktor::storm {
namespace {

TEST(HeaderExamples, Storm) {
  StormReport report = RunStorm({.seed = 7});
  EXPECT_TRUE(report.violations.empty());
}

class Reader final : public Actor<Reader, Letter> {
 public:
  void On(Context&, const Letter& letter) {
    letter.token.Handle();  // By the recipient; the listener of dead letters calls Die().
  }
};

TEST(HeaderExamples, StormLedger) {
  TestKit kit;
  ActorRef actor = kit.Spawn<Reader>().untyped();
  Ledger ledger;
  Tell(actor, Letter{Token(ledger, Token::Duty::kOwed), {}});
  EXPECT_EQ(ledger.in_flight(), 1);
  kit.Settle();
  EXPECT_EQ(ledger.in_flight(), 0);
  EXPECT_EQ(ledger.handled.load(), 1);
}

}  // namespace
}  // namespace fraktor::storm
