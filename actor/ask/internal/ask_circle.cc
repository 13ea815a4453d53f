#include "fraktor/actor/ask/internal/ask_circle.h"

#include <optional>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/ask/internal/promise_reading.h"
#include "fraktor/actor/ask/open_promise.h"
#include "fraktor/actor/slot/internal/actor_lifecycle.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0::actor_internal {
namespace {

constexpr int kMaxChain = 64;

ActorRef PromiseAt(PackedPromise packed) {
  if (packed.IsNoOne()) return {};
  PromiseSlot* const slot = ProcessPromises().At(packed.slot);
  return slot == nullptr ? ActorRef() : ActorRef(slot, packed.generation | ActorRef::kPromise);
}

bool IsSame(ActorRef a, ActorRef b) { return a.Plain() == b.Plain(); }

}  // namespace

absl::Status FindAskCircle(const ActorWorker& worker, ActorRef target) {
  const TurnState& state = worker.turn_state;
  absl::InlinedVector<ActorRef, 8> chain = {state.self()};
  bool is_circle = IsSame(target, state.self()) && state.takes_no_other;
  for (ActorRef promise = PromiseToReplyTo(state); !promise.IsNoOne() && !is_circle && chain.size() < kMaxChain;) {
    const std::optional<PackedPromise> answering =
        ReadOpenPromise(promise, [](const PromiseSlot& slot) { return slot.answering(); });
    const ActorRef asker = AskerOf(promise);
    // An asker whose turn was free can handle other messages while it waits.
    if (asker.IsNoOne() || !answering.has_value() || answering->slot == PromiseSlot::kFree) break;
    chain.push_back(asker);
    is_circle = IsSame(asker, target);
    promise = PromiseAt(*answering);
  }
  if (!is_circle) return absl::OkStatus();
  std::string names = worker.lifecycle.PathOf(target);
  for (const ActorRef actor : chain) {
    names = absl::StrCat(worker.lifecycle.PathOf(actor), " asks ", names);
    if (IsSame(actor, target)) break;
  }
  return MakeError(absl::StatusCode::kFailedPrecondition, ActorErrorKind::kAskCircle,
                   absl::StrCat("a circle of asks, in which each actor waits for the next: ", names,
                                "; let a handler interleave, or tell instead of asking"));
}

}  // namespace fraktor::inline v0::actor_internal
