// What a node does now and then: asks again, sends again, looks who is silent, closes what is not used.
#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/remote/association/remoting_core.h"
#include "fraktor/remote/watch/deadline_detector.h"
#include "fraktor/remote/watch/phi_accrual_detector.h"

namespace fraktor::inline v0 {

using actor_internal::AuthorityInfo;

void RemotingCore::Tick(Section& section) {
  const Instant now = node_->Now();
  authorities_->Tick(now);
  DrainRegistry(section);
  for (const auto& [authority, peer] : peers_) TickPeer(section, *peer, now);
  // Streams whose peers have not said who they are.
  for (auto one = streams_.begin(); one != streams_.end();) {
    const bool is_late = one->second.peer == nullptr && now >= one->second.since + node_->options.handshake_timeout;
    if (is_late) transport_->Cut(one->first);
    one = is_late ? streams_.erase(one) : std::next(one);
  }
  if (is_flushing_) CheckFlush(section, now);
}

void RemotingCore::TickPeer(Section& section, Peer& peer, Instant now) {
  const RemoteOptions& options = node_->options;
  if (IsQuarantined(peer)) {
    const std::optional<AuthorityInfo> info = authorities_->Find(peer.authority);
    if (!info.has_value() || info->state != AuthorityState::kQuarantine) {
      // Its time is over: whoever answers now is welcome. Numbers go on if it is the same life: what it has sent before
      // may still come.
      peer.quarantined_uid = 0;
      peer.is_harmless = false;
      peer.uid = 0;
      peer.is_verified = false;
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
  if (peer.pending.any() && now >= peer.pending_since + options.handshake_timeout) peer.pending = {};
  if (peer.is_associated && !peer.is_verified && now >= peer.unverified_since + options.handshake_timeout) {
    // It asks, and does not answer: it cannot be reached, or is not there.
    EndLife(section, peer, "it does not answer at the address that it says is its own", false);
    authorities_->Disconnect(peer.authority, now).IgnoreError();
    DrainRegistry(section);
  }
  if (!peer.is_associated) {
    const bool is_wanted = IsWanted(peer) || peer.pending.any();
    if (peer.is_shaking && now >= peer.shaking_since + options.handshake_timeout) {
      GiveUpHandshake(section, peer);
    } else if (is_wanted && !is_ending_ && now >= peer.lane(Lane::kControl).retry_at) {
      WantPeer(section, peer);
      if (peer.lane(Lane::kControl).is_open && now >= peer.next_request) {
        OnSilence(section, peer);
        peer.next_request = now + options.handshake_retry;
        peer.pending.request = true;
        WantPending(section, peer);
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
      peer.pending.request = true;
      WantPending(section, peer);
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
    if (options.detector_kind == RemoteOptions::Detector::kDeadline) {
      peer.detector = std::make_unique<DeadlineDetector>(options.deadline_detector);
    } else {
      peer.detector = std::make_unique<PhiAccrualDetector>(options.detector);
    }
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
      ForgetDetector(peer);
      // Nobody was ever there.
      EndWatches(section, peer, 0, ByPath::kAll);
      while (!peer.watches.empty()) {
        EndWatches(section, peer, NodeLink::Of(peer.watches.begin()->first).life(), ByPath::kNone);
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
