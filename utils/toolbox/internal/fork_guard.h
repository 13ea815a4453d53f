// Fork guard: tells whether this process has lost the threads of its toolboxes by a fork(). Calls
// that would wait for such a thread check IsForkedFromThreads and return ForkedError.
//
// The child of a fork() has a copy of the memory and one thread: the one that called fork(). The
// threads of a StdToolbox stay in the parent. In the child no thread runs actors, fires timers or
// completes futures, and a mutex that one of those threads held stays locked forever. So a child
// may only call exec or _exit, and calls that would wait for such a thread fail at once. If no
// StdToolbox has a thread at the time of the fork(), everything works in the child.
//
// Cost: one load of a word that changes at most once. Only calls that may block, start threads or
// arm timers make it.
//
// Thread safety: any thread.
#ifndef FRAKTOR_UTILS_TOOLBOX_INTERNAL_FORK_GUARD_H_
#define FRAKTOR_UTILS_TOOLBOX_INTERNAL_FORK_GUARD_H_

#include <string_view>

#include "absl/status/status.h"

namespace fraktor::inline v0::toolbox_internal {

// True in the child of a fork() at which threads of a StdToolbox ran, and in its children.
bool IsForkedFromThreads();

// Returns FailedPrecondition with a text that names the call, `what`.
absl::Status ForkedError(std::string_view what);

// Called before a thread of a StdToolbox starts, and after it was joined. The first call registers
// a handler of fork().
void CountThreadStart();
void CountThreadEnd();

// In a child: keeps an object that must not be destroyed, since its destructor would wait for
// threads of the parent. Leak checkers find the object here.
void KeepForEver(void* object);

}  // namespace fraktor::inline v0::toolbox_internal

#endif  // FRAKTOR_UTILS_TOOLBOX_INTERNAL_FORK_GUARD_H_
