// Fork guard: whether this process has lost the threads of its toolboxes by a fork(). Calls that
// would wait for such a thread check IsForkedFromThreads and return ForkedError.
//
// The child of a fork() has a copy of the memory and one thread: the one that called fork(). The
// threads of a StdToolbox stay in the parent. In the child nobody runs actors, fires timers or
// completes futures, and a mutex that one of those threads held is locked for ever. So a child may
// call exec or _exit, and calls that would wait for such a thread fail at once. A fork() while no
// StdToolbox has a thread that it has not joined leaves a child in which everything works.
//
// Cost: one load of a word that changes once. Only calls that may block, start threads or arm
// timers look.
//
// Thread safety: any thread.
#ifndef FRAKTOR_UTILS_TOOLBOX_FORK_GUARD_H_
#define FRAKTOR_UTILS_TOOLBOX_FORK_GUARD_H_

#include <string_view>

#include "absl/status/status.h"

namespace fraktor::inline v0 {

// True in the child of a fork() at which threads of a StdToolbox ran, and in its children.
bool IsForkedFromThreads();

// FailedPrecondition with a text that names what was called.
absl::Status ForkedError(std::string_view what);

namespace internal_toolbox {

// A thread of a StdToolbox is about to start, or has been joined. The first call tells the system
// to call us at a fork().
void CountThreadStart();
void CountThreadEnd();

// In a child: keeps an object that must not be destroyed, since that would wait for threads of the
// parent. Leak checkers find it here.
void KeepForEver(void* object);

}  // namespace internal_toolbox
}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TOOLBOX_FORK_GUARD_H_
