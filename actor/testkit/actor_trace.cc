#include "fraktor/actor/testkit/actor_trace.h"

#include <utility>

#include "fraktor/actor/message/type_name.h"

namespace fraktor::inline v0 {
namespace {

constexpr std::string_view kSpawned = "actor.spawned";
constexpr std::string_view kEnded = "actor.ended";
constexpr std::string_view kReceived = "message.received";
constexpr std::string_view kFailed = "message.failed";
constexpr std::string_view kSystem = "message.system";
constexpr std::string_view kDead = "message.dead";

constexpr uint64_t kFirstPromise = uint64_t{1} << 63;

}  // namespace

ActorTrace::ActorTrace(SimTrace& trace) : trace_(trace) {
  for (const std::string_view kind : {kSpawned, kEnded, kReceived, kFailed, kSystem, kDead}) trace_.NameKind(kind);
}

void ActorTrace::HashPayload(const MessageType* type, PayloadHash hash) {
  payloads_.insert_or_assign(type, std::move(hash));
}

uint64_t ActorTrace::OrdinalOf(ActorRef actor) {
  if (actor.IsNoOne()) return 0;
  // Whatever the flags of its references, it is the same.
  const auto [found, is_new] = ordinals_.try_emplace(ActorRef(actor.slot(), actor.generation()), 0);
  if (is_new) found->second = kFirstPromise + promises_++;
  return found->second;
}

uint64_t ActorTrace::HashOf(const Envelope& message) const {
  const uint64_t name = message.type()->name_hash();
  const auto payload = payloads_.find(message.type());
  return payload == payloads_.end() ? name : MixBits(name + MixBits(payload->second(message) + 1));
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
  ordinals_.insert_or_assign(ActorRef(actor.slot(), actor.generation()), ordinal);
  trace_.Record(TraceKind(kSpawned), ordinal, OrdinalOf(parent), HashOfTypeName(type));
}

void ActorTrace::OnEnded(ActorRef actor) { trace_.Record(TraceKind(kEnded), OrdinalOf(actor)); }

void ActorTrace::OnDeadLetter(ActorRef recipient, const Envelope& message, DeadLetterReason reason) {
  const uint64_t to = OrdinalOf(recipient);
  trace_.Record(TraceKind(kDead), to, OrdinalOf(message.sender()), HashOf(message) + static_cast<uint64_t>(reason));
}

}  // namespace fraktor::inline v0
