#include "fraktor/actor/system/termination_signal.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/serial_executor.h"

namespace fraktor::inline v0 {
namespace {

// The descriptor of each listener plus one, or 0 for none. The signal handler writes to them.
// Release by the listener: pairs with the acquire in the signal handler. Lock-free, as a handler
// needs it.
constinit std::array<std::atomic<int>, TerminationSignal::kMaxListeners> listening = {};
static_assert(std::atomic<int>::is_always_lock_free);

struct Places {
  Mutex mutex;
  // Descriptors are never closed, but used again: the handler may write late.
  std::array<int, TerminationSignal::kMaxListeners> descriptors ABSL_GUARDED_BY(mutex) = {};
  size_t listeners ABSL_GUARDED_BY(mutex) = 0;
  struct sigaction before ABSL_GUARDED_BY(mutex) = {};
};

Places& AllPlaces() {
  static Places& places = *new Places;
  return places;
}

void Ring(int descriptor) {
  const uint64_t one = 1;
  // An error is ignored. A full counter is an event too.
  [[maybe_unused]] const ssize_t written = write(descriptor, &one, sizeof one);
}

// Async-signal-safe: it only loads and writes.
extern "C" void FraktorOnTermination(int /*signal*/) {
  const int error = errno;
  for (const std::atomic<int>& place : listening) {
    const int descriptor = place.load(std::memory_order_acquire) - 1;
    if (descriptor >= 0) Ring(descriptor);
  }
  errno = error;
}

// Returns true for an event, and false for an error, after which no event comes.
bool AwaitRing(int descriptor) {
  for (;;) {
    uint64_t count = 0;
    const ssize_t got = read(descriptor, &count, sizeof count);
    if (got == static_cast<ssize_t>(sizeof count)) return true;
    if (got < 0 && errno == EINTR) continue;
    return false;
  }
}

absl::StatusOr<size_t> Occupy() {
  Places& places = AllPlaces();
  MutexLock lock(places.mutex);
  size_t place = 0;
  while (place < TerminationSignal::kMaxListeners && listening[place].load(std::memory_order_relaxed) != 0) ++place;
  if (place == TerminationSignal::kMaxListeners) {
    return absl::ResourceExhaustedError(
        absl::StrCat("SIGTERM has ", TerminationSignal::kMaxListeners, " listeners already"));
  }
  // 0 means none: no process has an event counter as its standard input.
  int& descriptor = places.descriptors[place];
  if (descriptor <= 0) descriptor = eventfd(0, EFD_CLOEXEC);
  if (descriptor <= 0) {
    return absl::ResourceExhaustedError(absl::StrCat("no descriptor for SIGTERM: ", std::strerror(errno)));
  }
  // Drops events that came for the previous listener of the descriptor.
  for (pollfd left{.fd = descriptor, .events = POLLIN, .revents = 0}; poll(&left, 1, 0) > 0;) AwaitRing(descriptor);
  listening[place].store(descriptor + 1, std::memory_order_release);
  if (++places.listeners == 1) {
    struct sigaction action = {};
    action.sa_handler = &FraktorOnTermination;
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, &places.before);
  }
  return place;
}

void Vacate(size_t place) {
  Places& places = AllPlaces();
  MutexLock lock(places.mutex);
  listening[place].store(0, std::memory_order_release);
  if (--places.listeners != 0) return;
  // Unless another listener has taken it meanwhile, or SIGTERM has come.
  struct sigaction now = {};
  sigaction(SIGTERM, nullptr, &now);
  if (now.sa_handler == &FraktorOnTermination) sigaction(SIGTERM, &places.before, nullptr);
}

int DescriptorAt(size_t place) {
  Places& places = AllPlaces();
  MutexLock lock(places.mutex);
  return places.descriptors[place];
}

}  // namespace

absl::StatusOr<std::unique_ptr<TerminationSignal>> TerminationSignal::Listen(RuntimeToolbox& toolbox,
                                                                             std::function<void()> on_signal) {
  if (!toolbox.has_threads()) {
    return absl::FailedPreconditionError("listening to SIGTERM needs a thread, and this toolbox has none");
  }
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<SerialExecutor> executor,
                           SerialExecutor::Make(toolbox, {.name = "sigterm"}));
  FRAKTOR_ASSIGN_OR_RETURN(const size_t place, Occupy());
  std::unique_ptr<TerminationSignal> signal(new TerminationSignal(place));
  signal->executor_ = std::move(executor);
  signal->executor_->Post([self = signal.get(), descriptor = DescriptorAt(place), on_signal = std::move(on_signal)] {
    while (AwaitRing(descriptor) && !self->is_ending_.load(std::memory_order_acquire)) {
      const absl::Status told = future_internal::InvokeForResult(on_signal);
      if (!told.ok()) std::fprintf(stderr, "fraktor: the listener to SIGTERM threw: %s\n", told.ToString().c_str());
    }
  });
  return signal;
}

void TerminationSignal::EndProcess() {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, nullptr);
  sigset_t all;
  sigemptyset(&all);
  sigaddset(&all, SIGTERM);
  pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
  raise(SIGTERM);
  std::_Exit(128 + SIGTERM);
}

TerminationSignal::TerminationSignal(size_t place) : place_(place) {}

TerminationSignal::~TerminationSignal() {
  const int descriptor = DescriptorAt(place_);
  is_ending_.store(true, std::memory_order_release);
  Ring(descriptor);
  executor_.reset();
  Vacate(place_);
}

}  // namespace fraktor::inline v0
