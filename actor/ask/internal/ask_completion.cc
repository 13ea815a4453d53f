#include "fraktor/actor/ask/internal/ask_completion.h"

#include "absl/status/status.h"

namespace fraktor::inline v0::actor_internal {
namespace {

// Written before main, and not changed afterwards.
constinit OnReplyFunctions on_reply{};

}  // namespace

void AskCompletion::Abandon() noexcept { Fail(absl::CancelledError("the actor that asked has ended")); }

void InstallOnReply(OnReplyFunctions functions) { on_reply = functions; }

const OnReplyFunctions& OnReply() { return on_reply; }

}  // namespace fraktor::inline v0::actor_internal
