#include "fraktor/cluster/memory/memory_membership.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/cluster/membership/topology_board.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/timer_id.h"

namespace fraktor::inline v0 {

struct MemoryMembership::Floor : std::enable_shared_from_this<Floor> {
  Floor(RuntimeToolbox& box, const MemberTableOptions& options) : toolbox(box), table(options) {
    MutexLock lock(mutex);
    told_epoch = table.topology()->epoch();
  }

  // Posts what has changed, and sees to it that terms end in time.
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (table.topology()->epoch() != told_epoch) {
      told_epoch = table.topology()->epoch();
      board.Post(table.topology());
    }
    const Instant next = table.NextExpiry();
    if (next == Instant::InfiniteFuture() || (has_timer && next >= timer_at)) return;
    if (has_timer) toolbox.CancelTimer(timer);
    // Without a timer the next call finds out.
    const absl::StatusOr<TimerId> armed = toolbox.ScheduleAt(next, [weak = weak_from_this()] {
      if (const auto floor = weak.lock()) floor->Expire();
    });
    has_timer = armed.ok();
    if (has_timer) timer = *armed;
    timer_at = next;
  }

  void Expire() {
    {
      MutexLock lock(mutex);
      has_timer = false;
      table.Expire(toolbox.Now());
      Changed();
    }
    board.Deliver();
  }

  RuntimeToolbox& toolbox;
  TopologyBoard board;
  Mutex mutex;
  MemberTable table ABSL_GUARDED_BY(mutex);
  uint64_t told_epoch ABSL_GUARDED_BY(mutex) = 0;
  bool has_timer ABSL_GUARDED_BY(mutex) = false;
  TimerId timer ABSL_GUARDED_BY(mutex);
  Instant timer_at ABSL_GUARDED_BY(mutex);
};

MemoryMembership::MemoryMembership(RuntimeToolbox& toolbox, const MemberTableOptions& options)
    : floor_(std::make_shared<Floor>(toolbox, options)) {}

MemoryMembership::~MemoryMembership() {
  MutexLock lock(floor_->mutex);
  if (floor_->has_timer) floor_->toolbox.CancelTimer(floor_->timer);
}

Future<MembershipTerm> MemoryMembership::Join(MemberCandidate candidate, Instant now) {
  absl::StatusOr<MembershipTerm> answer = MembershipTerm();
  {
    MutexLock lock(floor_->mutex);
    absl::StatusOr<Member> member = floor_->table.Join(candidate, floor_->toolbox.Now());
    if (member.ok()) {
      answer->member = *std::move(member);
      answer->valid_until = now + floor_->table.term();
    } else {
      answer = member.status();
    }
    floor_->Changed();
  }
  floor_->board.Deliver();
  return MakeReadyFuture<MembershipTerm>(std::move(answer));
}

Future<MembershipTerm> MemoryMembership::Renew(std::string member_id, Instant now) {
  absl::StatusOr<MembershipTerm> answer = MembershipTerm();
  {
    MutexLock lock(floor_->mutex);
    absl::StatusOr<Member> member = floor_->table.Renew(member_id, floor_->toolbox.Now());
    if (member.ok()) {
      answer->member = *std::move(member);
      answer->valid_until = now + floor_->table.term();
    } else {
      answer = member.status();
    }
    floor_->Changed();
  }
  floor_->board.Deliver();
  return MakeReadyFuture<MembershipTerm>(std::move(answer));
}

Future<void> MemoryMembership::BeginLeaving(std::string member_id) {
  absl::Status answer;
  {
    MutexLock lock(floor_->mutex);
    answer = floor_->table.BeginLeaving(member_id, floor_->toolbox.Now());
    floor_->Changed();
  }
  floor_->board.Deliver();
  return MakeReadyFuture<void>(std::move(answer));
}

Future<void> MemoryMembership::Leave(std::string member_id) {
  {
    MutexLock lock(floor_->mutex);
    floor_->table.Leave(member_id);
    floor_->Changed();
  }
  floor_->board.Deliver();
  return MakeReadyFuture();
}

MembershipListenerId MemoryMembership::Listen(Listener listener) {
  MembershipListenerId id;
  {
    MutexLock lock(floor_->mutex);
    id = floor_->board.Add(std::move(listener), floor_->table.topology());
  }
  floor_->board.Deliver();
  return id;
}

void MemoryMembership::StopListening(MembershipListenerId id) { floor_->board.Remove(id); }

ClusterTopologyPtr MemoryMembership::topology() const {
  MutexLock lock(floor_->mutex);
  return floor_->table.topology();
}

}  // namespace fraktor::inline v0
