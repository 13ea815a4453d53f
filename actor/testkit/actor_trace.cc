#include "fraktor/actor/testkit/actor_trace.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "fraktor/actor/message/type_name.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

constexpr std::string_view kSpawned = "actor.spawned";
constexpr std::string_view kEnded = "actor.ended";
constexpr std::string_view kReceived = "message.received";
constexpr std::string_view kFailed = "message.failed";
constexpr std::string_view kSystem = "message.system";
constexpr std::string_view kDead = "message.dead";

constexpr uint64_t kFirstPromise = uint64_t{1} << 63;
constexpr size_t kMaxNames = 100'000;

}  // namespace

ActorTrace::ActorTrace(SimTrace& trace) : trace_(trace) {
  const auto message = [this](uint64_t receiver, uint64_t sender, uint64_t hash) {
    return absl::StrCat(MessageText(hash), " to ", ActorText(receiver), " from ", ActorText(sender));
  };
  trace_.DescribeKind(kReceived, message);
  trace_.DescribeKind(kSystem, message);
  trace_.DescribeKind(kDead, [this](uint64_t recipient, uint64_t sender, uint64_t hash) {
    std::string text = absl::StrCat("to ", ActorText(recipient), " from ", ActorText(sender));
    // The hash includes the reason.
    for (size_t i = 0; i < kDeadLetterReasonCount; ++i) {
      const auto found = message_names_.find(hash - i);
      if (found == message_names_.end()) continue;
      return absl::StrCat(ToAbsl(found->second), " ", text, ": ", ToAbsl(NameOf(static_cast<DeadLetterReason>(i))));
    }
    return text;
  });
  trace_.DescribeKind(kSpawned, [this](uint64_t actor, uint64_t parent, uint64_t) {
    return absl::StrCat(ActorText(actor), " by ", ActorText(parent));
  });
  trace_.DescribeKind(kEnded, [this](uint64_t actor, uint64_t, uint64_t) { return ActorText(actor); });
  trace_.DescribeKind(kFailed, [this](uint64_t actor, uint64_t code, uint64_t) {
    return absl::StrCat(ActorText(actor), " with ", absl::StatusCodeToString(static_cast<absl::StatusCode>(code)));
  });
}

std::string ActorTrace::ActorText(uint64_t ordinal) const {
  if (ordinal == 0) return "no one";
  if (ordinal >= kFirstPromise) return absl::StrCat("ask ", ordinal - kFirstPromise + 1);
  const std::string_view type = ordinal <= actor_types_.size() ? actor_types_[ordinal - 1] : std::string_view();
  return absl::StrCat("actor ", ordinal, type.empty() ? "" : absl::StrCat(" (", ToAbsl(type), ")"));
}

std::string ActorTrace::MessageText(uint64_t hash) const {
  const auto found = message_names_.find(hash);
  return found == message_names_.end() ? absl::StrFormat("message %016x", hash) : std::string(found->second);
}

void ActorTrace::HashPayload(const MessageType* type, PayloadHash hash) {
  payloads_.insert_or_assign(type, std::move(hash));
}

uint64_t ActorTrace::OrdinalOf(ActorRef actor) {
  if (actor.IsNoOne()) return 0;
  // The flags of a reference do not matter: the actor is the same.
  const auto [found, is_new] = ordinals_.try_emplace(actor.Plain(), 0);
  if (is_new) found->second = kFirstPromise + promises_++;
  return found->second;
}

uint64_t ActorTrace::HashOf(const Envelope& message) {
  const uint64_t name = message.type()->name_hash();
  const auto payload = payloads_.find(message.type());
  const uint64_t hash = payload == payloads_.end() ? name : MixBits(name + MixBits(payload->second(message) + 1));
  // One for each type or traced payload, up to a limit.
  if (message_names_.size() < kMaxNames) message_names_.try_emplace(hash, message.type()->name());
  return hash;
}

MiddlewareFlow ActorTrace::BeforeReceive(const Interception& at) {
  const uint64_t receiver = OrdinalOf(at.actor);
  trace_.Record(TraceKind(kReceived), receiver, OrdinalOf(at.message.sender()), HashOf(at.message));
  return MiddlewareFlow::Continue();
}

void ActorTrace::AfterReceive(const Interception& at, const absl::Status& status) {
  if (!status.ok()) trace_.Record(TraceKind(kFailed), OrdinalOf(at.actor), static_cast<uint64_t>(status.raw_code()));
}

void ActorTrace::OnSystemMessage(const Interception& at) {
  const uint64_t receiver = OrdinalOf(at.actor);
  trace_.Record(TraceKind(kSystem), receiver, OrdinalOf(at.message.sender()), HashOf(at.message));
}

void ActorTrace::OnSpawned(ActorRef actor, ActorRef parent, std::string_view type) {
  const uint64_t ordinal = ++spawned_;
  actor_types_.push_back(type);
  ordinals_.insert_or_assign(actor.Plain(), ordinal);
  trace_.Record(TraceKind(kSpawned), ordinal, OrdinalOf(parent), HashOfTypeName(type));
}

void ActorTrace::OnEnded(ActorRef actor) { trace_.Record(TraceKind(kEnded), OrdinalOf(actor)); }

void ActorTrace::OnDeadLetter(ActorRef recipient, const Envelope& message, DeadLetterReason reason) {
  const uint64_t to = OrdinalOf(recipient);
  trace_.Record(TraceKind(kDead), to, OrdinalOf(message.sender()), HashOf(message) + static_cast<uint64_t>(reason));
}

}  // namespace fraktor::inline v0
