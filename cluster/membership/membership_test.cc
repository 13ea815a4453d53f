#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/cluster/identity/placement_resolution.h"
#include "fraktor/cluster/membership/member_table.h"
#include "fraktor/cluster/membership/membership_provider.h"
#include "fraktor/cluster/membership/membership_session.h"
#include "fraktor/cluster/membership/static_membership.h"
#include "fraktor/cluster/memory/memory_membership.h"
#include "fraktor/cluster/memory/memory_placement_store.h"
#include "fraktor/cluster/placement/activation_executor.h"
#include "fraktor/cluster/placement/placement_coordinator_driver.h"
#include "fraktor/cluster/placement/placement_duties.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/serial_executor.h"

namespace fraktor {
namespace {

Instant At(int64_t seconds) { return Instant() + absl::Seconds(seconds); }

// G9: an id that has left never comes back, however it left.
TEST(MemberTable, GivesEachLifeAnIdOfItsOwn) {
  MemberTable table({.term = absl::Seconds(10)});
  const Member first = table.Join({.authority = "a:1", .system_uid = 7, .kinds = {"account"}}, At(0)).value();
  EXPECT_EQ(first.id(), "a:1#1");
  EXPECT_EQ(first.system_uid, 7u);
  const Member restarted = table.Join({.authority = "a:1"}, At(1)).value();
  EXPECT_EQ(restarted.id(), "a:1#2");
  EXPECT_EQ(table.topology()->members().size(), 1u) << "an authority is one node";
  EXPECT_EQ(ErrorKindOf<MembershipError>(table.Renew("a:1#1", At(1)).status()), MembershipError::kHasLeft);
  EXPECT_EQ(ErrorKindOf<MembershipError>(table.BeginLeaving("a:1#1", At(1))), MembershipError::kHasLeft);
  EXPECT_FALSE(table.Leave("a:1#1")) << "the former life cannot take the next one along";
  EXPECT_TRUE(table.Leave("a:1#2"));
  EXPECT_EQ(table.Join({.authority = "a:1"}, At(2)).value().id(), "a:1#4");
  EXPECT_TRUE(table.Expire(At(12)));
  EXPECT_FALSE(table.Expire(At(12)));
  EXPECT_EQ(table.Join({.authority = "a:1"}, At(13)).value().id(), "a:1#6");
  // Also after a restart of the table, if it goes on from where it was.
  MemberTable next({.first_epoch = table.topology()->epoch()});
  EXPECT_EQ(next.Join({.authority = "a:1"}, At(0)).value().id(), "a:1#7");
}

TEST(MemberTable, EndsTermsThatNobodyRenews) {
  MemberTable table({.term = absl::Seconds(10)});
  EXPECT_EQ(table.NextExpiry(), Instant::InfiniteFuture());
  ASSERT_TRUE(table.Join({.authority = "a:1"}, At(0)).ok());
  ASSERT_TRUE(table.Join({.authority = "b:1"}, At(4)).ok());
  EXPECT_EQ(table.NextExpiry(), At(10));
  ASSERT_TRUE(table.Renew("a:1#1", At(9)).ok());
  EXPECT_EQ(table.topology()->epoch(), 2u) << "a renewal changes nothing for others";
  EXPECT_EQ(table.NextExpiry(), At(14));
  EXPECT_TRUE(table.Expire(At(14)));
  EXPECT_EQ(table.topology()->members().size(), 1u);
  EXPECT_EQ(table.topology()->epoch(), 3u);
}

TEST(MemberTable, IsBoundedAndChecksWhoComes) {
  MemberTable table({.max_members = 1});
  EXPECT_FALSE(table.Join({.authority = ""}, At(0)).ok());
  EXPECT_FALSE(table.Join({.authority = "a:1", .kinds = {"a/b"}}, At(0)).ok());
  ASSERT_TRUE(table.Join({.authority = "a:1"}, At(0)).ok());
  EXPECT_EQ(ErrorKindOf<MembershipError>(table.Join({.authority = "b:1"}, At(0)).status()), MembershipError::kFull);
  EXPECT_TRUE(table.Join({.authority = "a:1"}, At(0)).ok()) << "who comes again takes its own place";
}

TEST(MemberTable, GivesNothingNewToWhoIsLeaving) {
  MemberTable table;
  const Member member = table.Join({.authority = "a:1", .kinds = {"account"}}, At(0)).value();
  EXPECT_EQ(table.topology()->HostsOf("account").size(), 1u);
  ASSERT_TRUE(table.BeginLeaving(member.id(), At(0)).ok());
  const uint64_t epoch = table.topology()->epoch();
  ASSERT_TRUE(table.BeginLeaving(member.id(), At(0)).ok());
  EXPECT_EQ(table.topology()->epoch(), epoch);
  EXPECT_TRUE(table.topology()->HostsOf("account").empty());
  EXPECT_NE(table.topology()->FindId(member.id()), nullptr) << "what it has is honoured";
}

TEST(StaticMembership, HasWhoIsOnTheList) {
  const auto membership =
      StaticMembership::Make({{.authority = "a:1", .kinds = {"account", "cart"}}, {.authority = "b:1"}}).value();
  const MembershipTerm term =
      membership->Join({.authority = "a:1", .kinds = {"cart", "account"}}, At(5)).Take().value();
  EXPECT_EQ(term.member.id(), "a:1#1");
  EXPECT_EQ(term.valid_until, Instant::InfiniteFuture());
  EXPECT_TRUE(membership->Renew("a:1#1", At(6)).Take().ok());
  EXPECT_EQ(ErrorKindOf<MembershipError>(membership->Join({.authority = "c:1"}, At(0)).Take().status()),
            MembershipError::kNotListed);
  EXPECT_EQ(ErrorKindOf<MembershipError>(membership->Renew("c:1#1", At(0)).Take().status()),
            MembershipError::kNotListed);
  EXPECT_TRUE(
      absl::IsFailedPrecondition(membership->Join({.authority = "a:1", .kinds = {"account"}}, At(0)).Take().status()))
      << "others would send it carts";
  EXPECT_FALSE(membership->BeginLeaving("a:1#1").Take().ok());
  EXPECT_FALSE(membership->Leave("a:1#1").Take().ok());
  ClusterTopologyPtr heard;
  const MembershipListenerId id = membership->Listen([&](ClusterTopologyPtr topology) { heard = std::move(topology); });
  ASSERT_NE(heard, nullptr);
  EXPECT_EQ(heard->members().size(), 2u);
  membership->StopListening(id);
  EXPECT_FALSE(StaticMembership::Make({{.authority = "a:1"}, {.authority = "a:1"}}).ok());
}

// Writes down what it is told.
class RecordedDuties final : public MemberDuties {
 public:
  explicit RecordedDuties(const LocalToolbox& toolbox) : toolbox_(toolbox) {}

  absl::Status CanBegin() override { return obstacle; }
  void Begin(const MembershipTerm& term) override { log.push_back(absl::StrCat("begin ", term.member.id())); }
  void Renew(Instant valid_until) override {
    ++renewals;
    last_valid_until = valid_until;
    renewed_at = toolbox_.Now();
  }
  Future<void> HandOver() override {
    log.push_back("hand over");
    if (!hands_over) return Never();
    return MakeReadyFuture();
  }
  Future<void> End() override {
    log.push_back("end");
    ended_at = toolbox_.Now();
    if (!ends) return Never();
    return MakeReadyFuture();
  }

  std::vector<std::string> log;
  int renewals = 0;
  Instant last_valid_until;
  Instant renewed_at;
  Instant ended_at;
  bool hands_over = true;
  bool ends = true;
  absl::Status obstacle;

 private:
  Future<void> Never() {
    auto [promise, future] = MakePromise<void>();
    kept_.push_back(std::make_unique<Promise<void>>(std::move(promise)));
    return std::move(future);
  }

  const LocalToolbox& toolbox_;
  std::vector<std::unique_ptr<Promise<void>>> kept_;
};

// A provider that can be out of reach.
class ReachableOrNot final : public MembershipProvider {
 public:
  explicit ReachableOrNot(RuntimeToolbox& toolbox) : inner(toolbox, {.term = absl::Seconds(9)}) {}

  Future<MembershipTerm> Join(MemberCandidate candidate, Instant now) override {
    ++joins;
    return is_cut ? Nothing<MembershipTerm>() : inner.Join(std::move(candidate), now);
  }
  Future<MembershipTerm> Renew(std::string member_id, Instant now) override {
    return is_cut ? Nothing<MembershipTerm>() : inner.Renew(std::move(member_id), now);
  }
  Future<void> BeginLeaving(std::string member_id) override {
    return is_cut ? Nothing<void>() : inner.BeginLeaving(std::move(member_id));
  }
  Future<void> Leave(std::string member_id) override {
    return is_cut ? Nothing<void>() : inner.Leave(std::move(member_id));
  }
  MembershipListenerId Listen(Listener listener) override { return inner.Listen(std::move(listener)); }
  void StopListening(MembershipListenerId id) override { inner.StopListening(id); }

  MemoryMembership inner;
  bool is_cut = false;
  int joins = 0;

 private:
  template <class T>
  Future<T> Nothing() {
    auto [promise, future] = MakePromise<T>();
    kept_.push_back(std::make_shared<Promise<T>>(std::move(promise)));
    return std::move(future);
  }

  std::vector<std::shared_ptr<void>> kept_;
};

class MembershipSessionTest : public testing::Test {
 protected:
  void SetUp() override {
    session_ = MembershipSession::Make(
                   {.toolbox = *toolbox_, .executor = *executor_, .provider = provider_, .duties = duties_},
                   {.authority = "a:1"}, {})
                   .value();
  }
  void RunFor(absl::Duration duration) { ASSERT_TRUE(toolbox_->RunFor(duration).ok()); }

  const std::unique_ptr<LocalToolbox> toolbox_ = LocalToolbox::Make({}).value();
  const std::unique_ptr<SerialExecutor> executor_ = SerialExecutor::Make(*toolbox_, {}).value();
  const std::shared_ptr<ReachableOrNot> provider_ = std::make_shared<ReachableOrNot>(*toolbox_);
  const std::shared_ptr<RecordedDuties> duties_ = std::make_shared<RecordedDuties>(*toolbox_);
  std::shared_ptr<MembershipSession> session_;
};

// It is said that a join has failed, less and less often, and who waits for it hears when there will be none any more.
TEST_F(MembershipSessionTest, SaysThatItCannotJoin) {
  std::vector<std::string> said;
  MembershipSession::Parts parts{
      .toolbox = *toolbox_, .executor = *executor_, .provider = provider_, .duties = duties_};
  parts.on_join_failed = [&](int failures, const absl::Status& why) {
    said.push_back(absl::StrCat(failures, " ", why.message()));
  };
  session_ = MembershipSession::Make(parts, {.authority = "a:1"}, {.min_term = absl::Seconds(9)}).value();
  provider_->is_cut = true;
  ASSERT_TRUE(session_->Join().ok());
  Future<void> joined = session_->Joined();
  RunFor(absl::Seconds(11));
  EXPECT_EQ(said,
            (std::vector<std::string>{"1 no answer within 2s", "2 no answer within 2s", "4 no answer within 2s"}));
  provider_->is_cut = false;
  RunFor(absl::Seconds(5));
  ASSERT_EQ(said.size(), 4u);
  EXPECT_NE(said[3].find("8 members are members for 9s, which is not longer than"), std::string::npos) << said[3];
  EXPECT_TRUE(duties_->log.empty());
  session_->Abandon();
  ASSERT_TRUE(joined.IsReady());
  EXPECT_TRUE(absl::IsCancelled(joined.Take()));
  EXPECT_TRUE(absl::IsCancelled(session_->Joined().Take()));
}

// CLU-5: a node that has ended renews nothing, so that others find out.
TEST_F(MembershipSessionTest, IsNoMemberForLongerThanItsTermWhenItIsAbandoned) {
  ASSERT_TRUE(session_->Join().ok());
  RunFor(absl::Seconds(20));
  ASSERT_EQ(provider_->inner.topology()->members().size(), 1u);
  session_->Abandon();
  const int renewals = duties_->renewals;
  RunFor(absl::Seconds(10));
  EXPECT_TRUE(provider_->inner.topology()->members().empty());
  EXPECT_EQ(duties_->renewals, renewals);
  EXPECT_EQ(duties_->log, (std::vector<std::string>{"begin a:1#1"})) << "there is nobody any more who has duties";
  EXPECT_TRUE(session_->Leave().IsReady());
}

// A term that is none is refused, by the name of the option.
TEST(MemberTable, RefusesATermThatIsNone) {
  MemberTable table({.term = -absl::Seconds(1)});
  const absl::Status refused = table.Join({.authority = "a:1"}, At(0)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_EQ(refused.message(), "MemberTableOptions::term is -1s; it must be positive");
}

TEST_F(MembershipSessionTest, StaysAMemberByRenewingInTime) {
  EXPECT_EQ(session_->member_id(), "");
  ASSERT_TRUE(session_->Join().ok());
  EXPECT_FALSE(session_->Join().ok());
  RunFor(absl::Milliseconds(1));
  EXPECT_EQ(session_->member_id(), "a:1#1");
  RunFor(absl::Seconds(90));
  EXPECT_EQ(duties_->log, (std::vector<std::string>{"begin a:1#1"}));
  EXPECT_GE(duties_->renewals, 27) << "three times in each term of 9 seconds";
  EXPECT_LE(duties_->renewals, 30);
  EXPECT_EQ(duties_->last_valid_until - duties_->renewed_at, absl::Seconds(9));
  EXPECT_EQ(provider_->inner.topology()->epoch(), 1u);
}

// Whoever waits for it is told when the duties have begun, again after each life, and that it will never be when it won't.
TEST_F(MembershipSessionTest, TellsWhenItIsAMember) {
  Future<void> joined = session_->Joined();
  provider_->is_cut = true;
  ASSERT_TRUE(session_->Join().ok());
  RunFor(absl::Seconds(5));
  EXPECT_FALSE(joined.IsReady());
  provider_->is_cut = false;
  toolbox_->RunUntil([&] { return joined.IsReady(); }, absl::Seconds(5)).IgnoreError();
  ASSERT_TRUE(joined.IsReady());
  EXPECT_TRUE(joined.Take().ok());
  EXPECT_EQ(duties_->log, (std::vector<std::string>{"begin a:1#1"}));
  EXPECT_TRUE(session_->Joined().Take().ok()) << "at once";

  ASSERT_TRUE(provider_->inner.Leave("a:1#1").Take().ok());
  toolbox_->RunUntil([&] { return duties_->log.back() == "end"; }, absl::Seconds(10)).IgnoreError();
  Future<void> back = session_->Joined();
  EXPECT_FALSE(back.IsReady()) << "it was one, and has to join again";
  RunFor(absl::Seconds(5));
  ASSERT_TRUE(back.IsReady());
  EXPECT_TRUE(back.Take().ok());

  provider_->is_cut = true;
  RunFor(absl::Seconds(10));
  Future<void> never = session_->Joined();
  Future<void> left = session_->Leave();
  RunFor(absl::Seconds(5));
  ASSERT_TRUE(left.IsReady());
  ASSERT_TRUE(never.IsReady());
  EXPECT_TRUE(absl::IsCancelled(never.Take()));
  EXPECT_TRUE(absl::IsCancelled(session_->Joined().Take()));
}

// CLU-5: the term is counted here, whether or not somebody answers.
TEST_F(MembershipSessionTest, EndsItsDutiesWhenItCannotRenewAndComesBackAsAnother) {
  ASSERT_TRUE(session_->Join().ok());
  RunFor(absl::Milliseconds(1));
  provider_->is_cut = true;
  RunFor(absl::Seconds(20));
  EXPECT_EQ(duties_->log, (std::vector<std::string>{"begin a:1#1", "end"}));
  EXPECT_LE(duties_->ended_at, At(9) + absl::Milliseconds(200));
  EXPECT_EQ(session_->state(), MembershipSession::State::kJoining);
  EXPECT_GT(provider_->joins, 2) << "it asks again and again";
  provider_->is_cut = false;
  RunFor(absl::Seconds(3));
  ASSERT_EQ(duties_->log.size(), 3u);
  EXPECT_EQ(duties_->log[2], "begin a:1#3") << "it left by epoch 2, and that id never comes back";
}

// Somebody else says so: a second node has the same address.
TEST_F(MembershipSessionTest, EndsItsDutiesWhenItHearsThatItHasLeft) {
  ASSERT_TRUE(session_->Join().ok());
  RunFor(absl::Milliseconds(1));
  ASSERT_TRUE(provider_->inner.Leave("a:1#1").Take().ok());
  RunFor(absl::Seconds(4));
  EXPECT_EQ(duties_->log, (std::vector<std::string>{"begin a:1#1", "end", "begin a:1#3"}));
}

TEST_F(MembershipSessionTest, LeavesAfterHandingOver) {
  ASSERT_TRUE(session_->Join().ok());
  RunFor(absl::Milliseconds(1));
  std::vector<std::string> heard;
  provider_->Listen([&](ClusterTopologyPtr topology) {
    heard.push_back(topology->empty() ? "nobody" : std::string(MemberStatusName(topology->members()[0].status)));
  });
  Future<void> left = session_->Leave();
  RunFor(absl::Seconds(1));
  ASSERT_TRUE(left.IsReady());
  EXPECT_TRUE(left.Take().ok());
  EXPECT_EQ(duties_->log, (std::vector<std::string>{"begin a:1#1", "hand over", "end"}));
  EXPECT_EQ(heard, (std::vector<std::string>{"up", "leaving", "nobody"}));
  EXPECT_EQ(session_->state(), MembershipSession::State::kLeft);
  Future<void> again = session_->Leave();
  EXPECT_TRUE(again.IsReady());
}

// Handing over takes long: it stays a member meanwhile, but not forever.
TEST_F(MembershipSessionTest, GivesHandingOverALimit) {
  ASSERT_TRUE(session_->Join().ok());
  RunFor(absl::Milliseconds(1));
  duties_->hands_over = false;
  Future<void> left = session_->Leave();
  RunFor(absl::Seconds(59));
  EXPECT_EQ(session_->state(), MembershipSession::State::kHandingOver);
  EXPECT_EQ(session_->member_id(), "a:1#1") << "renewed all the time";
  RunFor(absl::Seconds(2));
  ASSERT_TRUE(left.IsReady());
  EXPECT_EQ(duties_->log.back(), "end");
  EXPECT_TRUE(provider_->inner.topology()->empty());
}

// Nor does ending: the provider hears that it has left, whatever is still there.
TEST_F(MembershipSessionTest, GivesEndingALimitWhenItLeaves) {
  ASSERT_TRUE(session_->Join().ok());
  RunFor(absl::Milliseconds(1));
  duties_->hands_over = duties_->ends = false;
  Future<void> left = session_->Leave();
  RunFor(absl::Seconds(61));
  EXPECT_EQ(session_->state(), MembershipSession::State::kEnding);
  EXPECT_EQ(duties_->log.back(), "end");
  RunFor(absl::Seconds(2));
  ASSERT_TRUE(left.IsReady());
  EXPECT_TRUE(left.Take().ok());
  EXPECT_TRUE(provider_->inner.topology()->empty()) << "told, and not found out when the term was over";
}

// What is left of the time to hand over is for the end.
TEST_F(MembershipSessionTest, EndsWithinTheTimeToHandOver) {
  ASSERT_TRUE(session_->Join().ok());
  RunFor(absl::Milliseconds(1));
  duties_->ends = false;
  Future<void> left = session_->Leave();
  RunFor(absl::Seconds(59));
  EXPECT_FALSE(left.IsReady());
  RunFor(absl::Seconds(2));
  EXPECT_TRUE(left.IsReady());
}

TEST_F(MembershipSessionTest, GivesEndingALimitWhenItsTermIsLost) {
  ASSERT_TRUE(session_->Join().ok());
  RunFor(absl::Milliseconds(1));
  duties_->ends = false;
  ASSERT_TRUE(provider_->inner.Leave("a:1#1").Take().ok());
  RunFor(absl::Seconds(59));
  EXPECT_EQ(session_->state(), MembershipSession::State::kEnding);
  RunFor(absl::Seconds(10));
  EXPECT_EQ(duties_->log, (std::vector<std::string>{"begin a:1#1", "end", "begin a:1#3"}));
  EXPECT_EQ(session_->state(), MembershipSession::State::kMember);
}

// Nobody is made a member who cannot begin: others would give it grains.
TEST_F(MembershipSessionTest, JoinsWhenItsDutiesCanBegin) {
  std::vector<std::string> said;
  MembershipSession::Parts parts{
      .toolbox = *toolbox_, .executor = *executor_, .provider = provider_, .duties = duties_};
  parts.on_join_failed = [&](int failures, const absl::Status& why) {
    said.push_back(absl::StrCat(failures, " ", why.message()));
  };
  session_ = MembershipSession::Make(parts, {.authority = "a:1"}, {}).value();
  duties_->obstacle = absl::FailedPreconditionError("7 grains have not been told");
  ASSERT_TRUE(session_->Join().ok());
  RunFor(absl::Milliseconds(2'500));
  EXPECT_EQ(provider_->joins, 0);
  EXPECT_EQ(said, (std::vector<std::string>{"1 7 grains have not been told", "2 7 grains have not been told"}));
  EXPECT_EQ(
      session_->WhyNoMember().message(),
      "this node, \"a:1\", is no member of the cluster yet, after 3 attempts to join: 7 grains have not been told");
  duties_->obstacle = absl::OkStatus();
  RunFor(absl::Seconds(1));
  EXPECT_EQ(session_->member_id(), "a:1#1");
}

// Nobody answers: it leaves all the same, in order.
TEST_F(MembershipSessionTest, LeavesWithoutTheProvider) {
  ASSERT_TRUE(session_->Join().ok());
  RunFor(absl::Milliseconds(1));
  provider_->is_cut = true;
  Future<void> left = session_->Leave();
  RunFor(absl::Seconds(5));
  ASSERT_TRUE(left.IsReady());
  EXPECT_EQ(duties_->log, (std::vector<std::string>{"begin a:1#1", "hand over", "end"}));
}

TEST_F(MembershipSessionTest, CanLeaveWhatItNeverJoined) {
  Future<void> left = session_->Leave();
  ASSERT_TRUE(left.IsReady());
  EXPECT_TRUE(left.Take().ok());
  EXPECT_FALSE(session_->Join().ok());

  provider_->is_cut = true;
  const auto other =
      MembershipSession::Make({.toolbox = *toolbox_, .executor = *executor_, .provider = provider_, .duties = duties_},
                              {.authority = "b:1"}, {})
          .value();
  ASSERT_TRUE(other->Join().ok());
  RunFor(absl::Milliseconds(1));
  Future<void> given_up = other->Leave();
  RunFor(absl::Seconds(5));
  EXPECT_TRUE(given_up.IsReady());
  EXPECT_TRUE(duties_->log.empty());
}

TEST_F(MembershipSessionTest, RefusesOptionsThatMakeNoSense) {
  const auto make = [&](const MembershipSessionOptions& options) {
    return MembershipSession::Make(
               {.toolbox = *toolbox_, .executor = *executor_, .provider = provider_, .duties = duties_},
               {.authority = "b:1"}, options)
        .status();
  };
  EXPECT_TRUE(absl::IsInvalidArgument(make({.join_pause = absl::ZeroDuration()})));
  EXPECT_TRUE(absl::IsInvalidArgument(make({.tick_period = absl::ZeroDuration()})));
  EXPECT_TRUE(absl::IsInvalidArgument(make({.answer_timeout = absl::ZeroDuration()})));
  EXPECT_TRUE(absl::IsInvalidArgument(make({.hand_over_timeout = absl::ZeroDuration()})));
}

// Grains whose handlers wait, so that they do not end.
class StuckGrains final : public ActivationExecutor {
 public:
  Future<ActivationRecord> EnsureActivation(GrainKey key, std::string owner, uint64_t token) override {
    return MakeReadyFuture<ActivationRecord>(
        ActivationRecord{.pid = absl::StrCat(owner, "/", key.ToString(), "/", token)});
  }
  Future<void> StopActivation(GrainKey, uint64_t) override {
    if (!is_stuck) return MakeReadyFuture();
    auto [promise, future] = MakePromise<void>();
    kept_.push_back(std::make_unique<Promise<void>>(std::move(promise)));
    return std::move(future);
  }

  bool is_stuck = true;

 private:
  std::vector<std::unique_ptr<Promise<void>>> kept_;
};

// A session whose duties are those of a real node, with grains that do not end.
class PlacementDutiesTest : public testing::Test {
 protected:
  void SetUp() override {
    driver_ =
        PlacementCoordinatorDriver::Make(
            {.toolbox = *toolbox_, .executor = *executor_, .lock = store_, .storage = store_, .activations = grains_},
            {.placement = {.max_stops = 2}})
            .value();
    session_ =
        MembershipSession::Make({.toolbox = *toolbox_,
                                 .executor = *executor_,
                                 .provider = provider_,
                                 .duties = std::make_shared<PlacementDuties>(driver_)},
                                {.authority = "a:1", .kinds = {"account"}}, {.hand_over_timeout = absl::Seconds(6)})
            .value();
    provider_->Listen([driver = driver_](ClusterTopologyPtr topology) { driver->UpdateTopology(std::move(topology)); });
    ASSERT_TRUE(session_->Join().ok());
    RunFor(absl::Milliseconds(1));
    ASSERT_EQ(session_->member_id(), "a:1#1");
    for (const char* const name : {"alice", "bob", "carol", "dave", "eve"}) {
      ASSERT_TRUE(driver_->Resolve(GrainKey("account", name)).Take().ok());
    }
  }
  void RunFor(absl::Duration duration) { ASSERT_TRUE(toolbox_->RunFor(duration).ok()); }

  const std::unique_ptr<LocalToolbox> toolbox_ = LocalToolbox::Make({}).value();
  const std::unique_ptr<SerialExecutor> executor_ = SerialExecutor::Make(*toolbox_, {}).value();
  const std::shared_ptr<MemoryMembership> provider_ =
      std::make_shared<MemoryMembership>(*toolbox_, MemberTableOptions{.term = absl::Seconds(9)});
  const std::shared_ptr<MemoryPlacementStore> store_ = std::make_shared<MemoryPlacementStore>(*toolbox_);
  const std::shared_ptr<StuckGrains> grains_ = std::make_shared<StuckGrains>();
  std::shared_ptr<PlacementCoordinatorDriver> driver_;
  std::shared_ptr<MembershipSession> session_;
};

TEST_F(PlacementDutiesTest, LeavesAlthoughAGrainDoesNotEnd) {
  Future<void> left = session_->Leave();
  RunFor(absl::Seconds(10));
  ASSERT_TRUE(left.IsReady());
  EXPECT_TRUE(provider_->topology()->empty());
  EXPECT_EQ(driver_->Snapshot().state, PlacementCoordinatorState::kNotReady)
      << "a client, of a cluster without members";
}

TEST_F(PlacementDutiesTest, BeginsAnewAlthoughAGrainDoesNotEnd) {
  ASSERT_TRUE(provider_->Leave("a:1#1").Take().ok());
  RunFor(absl::Milliseconds(9'500));
  EXPECT_EQ(session_->state(), MembershipSession::State::kJoining);
  EXPECT_NE(std::string(session_->WhyNoMember().message())
                .find("after 1 attempt to join: 1 grains of \"a:1#1\" have not been told to stop yet"),
            std::string::npos)
      << session_->WhyNoMember();
  EXPECT_EQ(provider_->topology()->epoch(), 2u) << "it has not been a member meanwhile";
  RunFor(absl::Seconds(5));
  ASSERT_EQ(session_->member_id(), "a:1#3");
  EXPECT_EQ(driver_->Snapshot().state, PlacementCoordinatorState::kMember);
  EXPECT_EQ(driver_->Snapshot().self, "a:1#3");

  Future<PlacementResolutionPtr> stuck = driver_->Resolve(GrainKey("account", "alice"));
  Future<PlacementResolutionPtr> other = driver_->Resolve(GrainKey("account", "frank"));
  ASSERT_TRUE(other.IsReady());
  EXPECT_TRUE(other.Take().ok());
  RunFor(absl::Seconds(5));
  EXPECT_FALSE(stuck.IsReady()) << "never two of one grain";
  grains_->is_stuck = false;
  RunFor(absl::Seconds(6));
  ASSERT_TRUE(stuck.IsReady());
  EXPECT_EQ(stuck.Take().value()->decision.owner, "a:1#3");
}

}  // namespace
}  // namespace fraktor
