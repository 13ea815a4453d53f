#include "fraktor/actor/send/internal/ready_keeper.h"

namespace fraktor::inline v0::actor_internal {
namespace {

thread_local ReadyKeeper* of_this_thread = nullptr;

}  // namespace

ReadyKeeper* ReadyKeeper::OfThisThread() { return of_this_thread; }

void ReadyKeeper::SetOfThisThread(ReadyKeeper* keeper) { of_this_thread = keeper; }

}  // namespace fraktor::inline v0::actor_internal
