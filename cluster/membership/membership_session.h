// MembershipSession: makes a node a member and keeps it one: joins, renews in time, leaves in order, and begins anew
// when the membership was lost.
//
//   auto session = MembershipSession::Make({toolbox, executor, provider, duties},
//                                          {.authority = "10.0.0.7:2552", .kinds = {"account"}}, {}).value();
//   FRAKTOR_RETURN_IF_ERROR(session->Join());
//   Future<void> left = session->Leave();        // some day; hands over first
//
// A term is renewed three times within its length. If it is over here all the same, or the provider says that this
// member has left, duties end, and when they have ended the node joins again: as another member. Duties that do not end
// within hand_over_timeout are not waited for any longer, whether the node leaves or joins again: what they leave behind is
// that of a member that is none, and its fencing tokens keep it from writing.
//
// A join that fails is tried again, and said (Parts::on_join_failed). One whose term would be over before it is of use
// (min_term) has failed, and so has one that duties are not ready for (MemberDuties::CanBegin). Who wants to know why the
// node is no member asks WhyNoMember.
//
// Thread safety: any thread may call anything. Duties are called on the executor, one at a time. The toolbox and the
// executor must outlive it.
#ifndef FRAKTOR_CLUSTER_MEMBERSHIP_MEMBERSHIP_SESSION_H_
#define FRAKTOR_CLUSTER_MEMBERSHIP_MEMBERSHIP_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/cluster/membership/membership_provider.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/toolbox/executor.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

// What only a member may do. Extension point: PlacementCoordinatorDriver does most of it.
class MemberDuties {
 public:
  virtual ~MemberDuties() = default;

  // Why it cannot begin yet, if something of its last life is in the way. Asked before each attempt to join: others give
  // grains to a member at once. OK stays OK until Begin.
  virtual absl::Status CanBegin() { return absl::OkStatus(); }
  // The node is this member now.
  virtual void Begin(const MembershipTerm& term) = 0;
  // It stays one until then.
  virtual void Renew(Instant valid_until) = 0;
  // Gives others what it has; ready when that is done. It is still a member, which is leaving.
  virtual Future<void> HandOver() = 0;
  // It is none any more: ends everything; ready when that is done. Whatever has not ended in time goes on ending while the
  // node leaves, or begins anew.
  virtual Future<void> End() = 0;
  // It has left, and the provider knows it; ready when the others do, and send nothing here any more.
  virtual Future<void> SayFarewell() { return MakeReadyFuture(); }
  // It is none, and wants to be: for callers who ask why nothing runs. When it begins to join, and again whenever there
  // is another reason.
  virtual void Await(const absl::Status& /*why*/) {}
};

struct MembershipSessionOptions {
  // The pause between two attempts to join.
  absl::Duration join_pause = absl::Seconds(1);
  // How often it is looked whether something is due.
  absl::Duration tick_period = absl::Milliseconds(200);
  // A question to the provider that is not answered for so long is asked again; when leaving, it goes on without.
  absl::Duration answer_timeout = absl::Seconds(2);
  // Handing over may take so long, and ending with it; then the member leaves all the same. Ending alone, after a term that
  // was lost, may take so long too; then the node joins again all the same.
  absl::Duration hand_over_timeout = absl::Seconds(60);
  // How long a node that has left waits until the others know it. What they send here meanwhile is sent on; what comes later
  // finds nobody, and who has asked hears by his timeout.
  absl::Duration farewell_timeout = absl::Seconds(1);
  // A term must be longer than this. A Cluster sets it to PlacementOptions::membership_margin.
  absl::Duration min_term = absl::ZeroDuration();

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

class MembershipSession final : public std::enable_shared_from_this<MembershipSession> {
 public:
  enum class State { kIdle, kJoining, kMember, kHandingOver, kEnding, kLeft };

  struct Parts {
    RuntimeToolbox& toolbox;
    Executor& executor;  // one that runs one task at a time, such as a SerialExecutor
    std::shared_ptr<MembershipProvider> provider;
    std::shared_ptr<MemberDuties> duties;
    // Called on the executor when a join has failed for the first, second, fourth, eighth... time in a row. Null: nobody
    // is told.
    std::function<void(int failures, const absl::Status& why)> on_join_failed = nullptr;
    // Called on the executor when the node is no member any more without having wanted to leave. Null: nobody is told.
    std::function<void(const absl::Status& why)> on_lost = nullptr;
  };

  // InvalidArgument for times that are not positive; what the toolbox says if it has no timer left.
  static absl::StatusOr<std::shared_ptr<MembershipSession>> Make(Parts parts, MemberCandidate candidate,
                                                                 const MembershipSessionOptions& options);
  ~MembershipSession();
  MembershipSession(const MembershipSession&) = delete;
  MembershipSession& operator=(const MembershipSession&) = delete;

  // Begins; once. FailedPrecondition otherwise.
  absl::Status Join();

  // Ready when the node is a member, at once if it is one: its duties have begun. Cancelled if it leaves, or has left.
  Future<void> Joined();

  // Hands over, ends duties and leaves; ready when that is done, and the session is over. OK as well if it never
  // joined.
  Future<void> Leave();

  // The node has ended without having left: nothing is asked or renewed any more, and duties are not called. So the others
  // find out when the term is over. Who waits for Joined or Leave gets Cancelled.
  void Abandon();

  State state() const;
  // Which member it is; empty if it is none.
  std::string member_id() const;
  // OK while it is a member. Otherwise Unavailable, with the reason of the last attempt to join.
  absl::Status WhyNoMember() const;

 private:
  MembershipSession(Parts parts, MemberCandidate candidate, const MembershipSessionOptions& options);

  // These run on the executor.
  void Tick();
  // Asks, unless its duties cannot begin yet.
  void BeginJoin(Instant now);
  void Ask(Instant now);
  void OnJoined(absl::StatusOr<MembershipTerm> term);
  void OnJoinFailed(const absl::Status& why);
  // Of a node that joins, or joins again.
  void SetAbsence(const std::string& why);
  void OnRenewed(absl::StatusOr<MembershipTerm> term);
  void Announce(Instant now);
  void BeginHandOver();
  // OK: the node has wanted it.
  void EndDuties(const absl::Status& why);
  // Or has not in time.
  void OnEnded();
  void SayFarewell();
  void OnLeft();

  void PostTick();
  // Not from kLeft, which is the end: false then.
  bool SetState(State state);
  // Keeps `step` until `future` is ready, then runs it on the executor, unless another one has taken its place.
  template <class T, class Step>
  Future<void> After(Future<T> future, Step step);

  const MembershipSessionOptions options_;
  RuntimeToolbox& toolbox_;
  Executor& executor_;
  const std::shared_ptr<MembershipProvider> provider_;
  const std::shared_ptr<MemberDuties> duties_;
  const std::function<void(int failures, const absl::Status& why)> on_join_failed_;
  const std::function<void(const absl::Status& why)> on_lost_;
  const MemberCandidate candidate_;
  TimerId timer_;

  // Used on the executor only.
  int join_failures_ = 0;
  absl::Status renewed_;  // the last answer
  Instant asked_at_;
  Instant ask_again_at_;
  Instant hand_over_until_ = Instant::InfiniteFuture();
  Instant end_until_ = Instant::InfiniteFuture();
  // An answer that is waited for until then: to BeginLeaving, to Leave, or to a farewell.
  Instant answer_until_ = Instant::InfiniteFuture();
  Future<void> asking_;
  Future<void> changing_;  // handing over, ending, leaving: one after the other

  mutable Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kIdle;
  bool has_begun_ ABSL_GUARDED_BY(mutex_) = false;  // its duties, which have not ended
  bool wants_to_leave_ ABSL_GUARDED_BY(mutex_) = false;
  MembershipTerm term_ ABSL_GUARDED_BY(mutex_);
  absl::Status absence_ ABSL_GUARDED_BY(mutex_);
  std::vector<Promise<void>> until_joined_ ABSL_GUARDED_BY(mutex_);
  std::vector<Promise<void>> until_left_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_MEMBERSHIP_MEMBERSHIP_SESSION_H_
