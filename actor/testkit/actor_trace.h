// ActorTrace: writes the events of actors into the trace of a simulation: each spawn, each message
// with its sender and recipient, each end, and each lost message.
//
//   auto trace = std::make_shared<ActorTrace>(toolbox->trace());
//   ActorSystemOptions options{.config = {.system_name = "shop"}, .toolbox = toolbox.get()};
//   options.tree_observer = trace.get();
//   options.scheduler.dispatchers.default_pool.middleware = {trace};
//
// Actors are named by the number of their spawning, and the promises of asks by the number of their
// first appearance. So they have the same names in every run of a seed, at any address.
//
// Thread safety: the thread of the simulation.
#ifndef FRAKTOR_ACTOR_TESTKIT_ACTOR_TRACE_H_
#define FRAKTOR_ACTOR_TESTKIT_ACTOR_TRACE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

#include "fraktor/actor/dispatch/invoker_middleware.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/tree/tree_observer.h"
#include "fraktor/utils/toolbox/sim_trace.h"

namespace fraktor::inline v0 {

class ActorTrace final : public InvokerMiddleware, public TreeObserver {
 public:
  using PayloadHash = std::function<uint64_t(const Envelope&)>;

  explicit ActorTrace(SimTrace& trace);

  // Writes messages of this type with their contents.
  void HashPayload(const MessageType* type, PayloadHash hash);

  // 0 for no one; actors from 1 on, promises from 2^63 on.
  uint64_t OrdinalOf(ActorRef actor);
  uint64_t spawned() const { return spawned_; }

  MiddlewareFlow BeforeReceive(const Interception& at) override;
  void AfterReceive(const Interception& at, const absl::Status& status) override;
  void OnSystemMessage(const Interception& at) override;
  void OnSpawned(ActorRef actor, ActorRef parent, std::string_view type) override;
  void OnEnded(ActorRef actor) override;
  void OnDeadLetter(ActorRef recipient, const Envelope& message, DeadLetterReason reason) override;

 private:
  uint64_t HashOf(const Envelope& message);
  // For the text of the trace: "actor 5 (shop::Cart)", and the type of a message.
  std::string ActorText(uint64_t ordinal) const;
  std::string MessageText(uint64_t hash) const;

  SimTrace& trace_;
  uint64_t spawned_ = 0;
  uint64_t promises_ = 0;
  // For texts: the types of actors by ordinal, and the names of messages by hash.
  std::vector<std::string_view> actor_types_;
  absl::flat_hash_map<uint64_t, std::string_view> message_names_;
  // Only looked up, never iterated: their order depends on addresses.
  absl::flat_hash_map<ActorRef, uint64_t> ordinals_;
  absl::flat_hash_map<const MessageType*, PayloadHash> payloads_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TESTKIT_ACTOR_TRACE_H_
