// What a node does now and then: asks again, sends again, looks who is silent, closes what is not used.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/remote/association/remoting_core.h"
#include "fraktor/remote/watch/phi_accrual_detector.h"

namespace fraktor::inline v0 {

void RemotingCore::Tick(Section& section) {
  const Instant now = node_->Now();
  authorities_->Tick(now);
  DrainRegistry(section);
  for (const auto& [authority, peer] : peers_) TickPeer(section, *peer, now);
  if (is_flushing_) CheckFlush(section, now);
}

void RemotingCore::TickPeer(Section& section, Peer& peer, Instant now) {
  const RemoteOptions& options = node_->options;
  if (IsQuarantined(peer)) {
    const std::optional<AuthorityInfo> info = authorities_->Find(peer.authority);
    if (!info.has_value() || info->state != AuthorityState::kQuarantine) {
      // Its time is over: whoever answers now is welcome.
      peer.quarantined_uid = 0;
      peer.uid = 0;
      peer.inbox = SystemInbox();
      peer.received = {};
    } else {
      // Notices, and questions to another life of it, go out all the same.
      Pump(section, peer, Lane::kControl);
      for (const Lane lane : {Lane::kControl, Lane::kOrdinary, Lane::kLarge}) {
        const Instant used = std::max(peer.quarantined_at, peer.lane(lane).last_use);
        if (now >= used + options.quarantine_stop) CloseLane(peer, lane);
      }
      return;
    }
  }
  DeliverHeld(section, peer, false);
  if (!peer.is_associated) {
    const std::optional<AuthorityInfo> info = authorities_->Find(peer.authority);
    const bool is_wanted = !peer.watches.empty() || peer.outbox.pending() != 0 || !peer.identifies.empty() ||
                           (info.has_value() && info->deferred != 0) || peer.lane(Lane::kControl).has_work();
    if (peer.is_shaking && now >= peer.shaking_since + options.handshake_timeout) {
      GiveUpHandshake(section, peer);
    } else if (is_wanted && !is_ending_ && now >= peer.lane(Lane::kControl).retry_at) {
      WantPeer(section, peer);
      if (peer.lane(Lane::kControl).is_open && now >= peer.next_request) {
        peer.next_request = now + options.handshake_retry;
        PushFrame(section, peer, Lane::kControl, RequestFrame(peer, Lane::kControl), 0);
      }
    }
    if (peer.uid != 0 && now >= peer.unanswered_since + options.unanswered_limit) {
      Quarantine(section, peer,
                 absl::StrCat("it has not answered a handshake for ", absl::FormatDuration(options.unanswered_limit)),
                 true);
      return;
    }
  } else {
    if (!peer.is_verified && now >= peer.next_request) {
      peer.next_request = now + options.handshake_retry;
      PushFrame(section, peer, Lane::kControl, RequestFrame(peer, Lane::kControl), 0);
    }
    SendSystemDue(section, peer);
    if (peer.outbox.HasGivenUp(now)) {
      Quarantine(section, peer,
                 absl::StrCat("a system message was not acknowledged for ",
                              absl::FormatDuration(options.system.give_up_after)),
                 true);
      return;
    }
  }
  for (const Lane lane : {Lane::kControl, Lane::kOrdinary, Lane::kLarge}) {
    if (peer.is_associated) Pump(section, peer, lane);
  }
  if (!peer.watches.empty()) TickWatch(section, peer, now);
  TickIdle(section, peer, now);
}

void RemotingCore::TickWatch(Section& section, Peer& peer, Instant now) {
  const RemoteOptions& options = node_->options;
  if (peer.detector == nullptr) {
    peer.detector = std::make_unique<PhiAccrualDetector>(options.detector);
    peer.first_heartbeat = now;
    peer.next_heartbeat = now;
  }
  if (!peer.detector->IsMonitoring() && now >= peer.first_heartbeat + options.first_answer_within) {
    peer.detector->Heartbeat(now);  // As if it had answered once: its silence counts from now on.
  }
  if (!peer.detector->IsAvailable(now)) {
    const std::string reason = "its heartbeats have stopped";
    if (peer.uid != 0) {
      Quarantine(section, peer, reason, true);
    } else {
      peer.detector = nullptr;
      peer.first_heartbeat = Instant::InfiniteFuture();
      // Nobody was ever there.
      EndWatches(section, peer, 0, true);
      while (!peer.watches.empty()) {
        EndWatches(section, peer, NodeLink::Of(peer.watches.begin()->first).life(), false);
      }
      TerminatedLater(section, peer, 0, reason);
    }
    return;
  }
  if (now < peer.next_heartbeat) return;
  peer.next_heartbeat = now + options.heartbeat_interval;
  if (!peer.is_associated) {
    WantPeer(section, peer);
    return;
  }
  wire::ControlMessage message;
  message.mutable_heartbeat()->set_number(++peer.heartbeats);
  SendControl(section, peer, message);
}

void RemotingCore::TickIdle(Section& /*section*/, Peer& peer, Instant now) {
  for (const Lane which : {Lane::kControl, Lane::kOrdinary, Lane::kLarge}) {
    const OutboundLane& lane = peer.lane(which);
    if (lane.stream == nullptr || !lane.is_open || lane.has_work() || lane.is_writing) continue;
    if (now < lane.last_use + node_->options.idle_stop) continue;
    if (which == Lane::kControl && (!peer.watches.empty() || peer.outbox.pending() != 0)) continue;
    CloseLane(peer, which);
  }
}

}  // namespace fraktor::inline v0
