#include "fraktor/persistence/delivery/at_least_once_delivery.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/internal/node_pool.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/pattern/actor_log.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/serialization/codec_context.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/serialization/message_codec.h"
#include "fraktor/actor/serialization/system_codecs.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/timer/timers.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

using actor_internal::NodeCache;

namespace {

constexpr std::string_view kTimer = "fraktor.redelivery";
// How large a message in a snapshot may be is the store's to say.
constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

absl::Status CheckDestination(std::string_view path) {
  if (path.find_first_of("*?") != std::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("a delivery to ", QuotedForText(path),
                     ", which has wildcards: each delivery is confirmed once, so it goes to one actor; name it"));
  }
  // As the system resolves it, whatever it is called.
  const absl::StatusOr<ActorPath> parsed = path.starts_with('/')
                                               ? ActorPathParser::Parse(absl::StrCat("pekko://system", ToAbsl(path)))
                                               : ActorPathParser::Parse(path);
  // A guardian confirms nothing.
  if (parsed.ok() && parsed->segment_count() > 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a delivery to ", QuotedForText(path), ", which is no path of an actor: ",
                   parsed.ok() ? "it names the root or a guardian; name an actor below, as in \"/user/bob\""
                               : parsed.status().message()));
}

const DeliveryOptions& Checked(const DeliveryOptions& options) {
  const absl::Status status = options.Validate();
  if (!status.ok()) throw DeliveryError(status);
  return options;
}

}  // namespace

absl::Status DeliveryOptions::Validate() const {
  if (redeliver_interval <= absl::ZeroDuration() || redeliver_interval > absl::Hours(24 * 365)) {
    return absl::InvalidArgumentError(absl::StrCat("DeliveryOptions::redeliver_interval is ",
                                                   absl::FormatDuration(redeliver_interval),
                                                   "; it must be positive, and at most a year"));
  }
  if (redelivery_burst_limit < 1) {
    return absl::InvalidArgumentError("DeliveryOptions::redelivery_burst_limit is 0; it must be at least 1");
  }
  if (max_unconfirmed < 1) {
    return absl::InvalidArgumentError("DeliveryOptions::max_unconfirmed is 0; it must be at least 1");
  }
  if (warn_after_attempts < 0) {
    return absl::InvalidArgumentError("DeliveryOptions::warn_after_attempts is negative");
  }
  return absl::OkStatus();
}

AtLeastOnceDelivery::AtLeastOnceDelivery(const DeliveryOptions& options) : options_(Checked(options)) {}

absl::Status AtLeastOnceDelivery::CheckDelivery(std::string_view destination, size_t count) const {
  FRAKTOR_RETURN_IF_ERROR(CheckDestination(destination));
  const size_t max = options_.max_unconfirmed;
  if (count <= max && pending_.size() <= max - count) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      pending_.size(), " deliveries are unconfirmed, and with ", count, " more there would be more than the ", max,
      " that are allowed: wait for confirmations, or raise DeliveryOptions::max_unconfirmed"));
}

absl::StatusOr<uint64_t> AtLeastOnceDelivery::Add(std::string_view destination,
                                                  absl::FunctionRef<EnvelopePtr(uint64_t id)> make) {
  const uint64_t id = ++last_id_;
  if (context_ != nullptr) FRAKTOR_RETURN_IF_ERROR(CheckDelivery(destination));
  Pending& delivery =
      pending_.emplace(id, Pending{std::string(destination), make(id), Instant::InfinitePast()}).first->second;
  if (context_ != nullptr) {
    Send(delivery, context_->system().toolbox().Now());
    SetTimer();
  }
  return id;
}

bool AtLeastOnceDelivery::Confirm(uint64_t delivery_id) {
  const bool was_pending = pending_.erase(delivery_id) > 0;
  if (was_pending && context_ != nullptr) SetTimer();
  return was_pending;
}

void AtLeastOnceDelivery::OnRecoveryCompleted(ActorContext& context) {
  context_ = &context;
  RedeliverOverdue(context.system().toolbox().Now());
  SetTimer();
}

bool AtLeastOnceDelivery::Receive(ActorContext& context, const Envelope& command) {
  if (!command.Is<RedeliveryTick>()) return false;
  if (context_ != nullptr) RedeliverOverdue(context.system().toolbox().Now());
  return true;
}

void AtLeastOnceDelivery::Send(Pending& delivery, Instant now) {
  delivery.sent_at = now;
  ++delivery.attempts;
  const absl::StatusOr<ActorRef> to = context_->system().Resolve(delivery.destination);
  // It may be there at the next attempt.
  if (!to.ok()) return;
  EnvelopePtr copy = CopyEnvelope(NodeCache::OfThisThread(), *delivery.message);
  copy->set_sender(context_->self());
  ActorContext::worker().Send(*to, copy.release());
}

void AtLeastOnceDelivery::RedeliverOverdue(Instant now) {
  UnconfirmedWarning warning;
  size_t sent = 0;
  auto next = pending_.lower_bound(std::exchange(next_round_, 0));
  for (size_t left = pending_.size(); left > 0; --left, ++next) {
    if (next == pending_.end()) next = pending_.begin();
    auto& [id, delivery] = *next;
    if (now - delivery.sent_at < options_.redeliver_interval) continue;
    if (sent == options_.redelivery_burst_limit) {
      // Each has its turn, also behind many that nobody confirms.
      next_round_ = id;
      break;
    }
    ++sent;
    if (delivery.attempts == options_.warn_after_attempts && delivery.attempts > 0) {
      warning.deliveries.push_back({id, delivery.destination, std::string(delivery.message->type()->name())});
    }
    Send(delivery, now);
  }
  if (!warning.deliveries.empty()) context_->Tell(context_->self(), std::move(warning));
}

void AtLeastOnceDelivery::SetTimer() {
  if (pending_.empty() == !has_timer_) return;
  has_timer_ = !pending_.empty();
  if (!has_timer_) {
    Timers(*context_).Cancel(kTimer);
    return;
  }
  const absl::Status started = Timers(*context_).StartFixedDelay(
      kTimer, RedeliveryTick{}, {.period = std::max(options_.redeliver_interval / 2, absl::Nanoseconds(1))});
  if (!started.ok()) {
    has_timer_ = false;
    Log(*context_, LogLevel::kError,
        absl::StrCat("unconfirmed deliveries are not sent again, since there is no timer: ", started.message()));
  }
}

absl::StatusOr<DeliverySnapshot> AtLeastOnceDelivery::GetSnapshot(const ActorSystem& system) const {
  DeliverySnapshot snapshot;
  snapshot.last_delivery_id = last_id_;
  PathRefs refs(system);
  for (const auto& [id, delivery] : pending_) {
    DeliverySnapshot::Pending& pending = snapshot.pending.emplace_back();
    FRAKTOR_ASSIGN_OR_RETURN(
        const MessageCodec* const codec,
        CodecsOf(system).Encode(*delivery.message, pending.message, {.refs = &refs, .max_bytes = kNoLimit}));
    pending.delivery_id = id;
    pending.destination = delivery.destination;
    pending.manifest = std::string(codec->manifest());
    pending.version = codec->version();
  }
  return snapshot;
}

absl::Status AtLeastOnceDelivery::SetSnapshot(const ActorSystem& system, const DeliverySnapshot& snapshot) {
  PathRefs refs(system);
  std::map<uint64_t, Pending> restored;
  for (const DeliverySnapshot::Pending& pending : snapshot.pending) {
    FRAKTOR_ASSIGN_OR_RETURN(
        EnvelopePtr message,
        CodecsOf(system).Decode({.manifest = pending.manifest, .version = pending.version, .bytes = pending.message},
                                {}, {.refs = &refs, .max_bytes = kNoLimit}));
    if (!message->type()->is_copyable()) {
      return absl::FailedPreconditionError(absl::StrCat("delivery ", pending.delivery_id, " is a ",
                                                        ToAbsl(message->type()->name()),
                                                        ", which cannot be copied: give it a copy constructor"));
    }
    restored.emplace(pending.delivery_id, Pending{pending.destination, std::move(message), Instant::InfinitePast()});
  }
  last_id_ = snapshot.last_delivery_id;
  pending_ = std::move(restored);
  if (context_ != nullptr) SetTimer();
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0
