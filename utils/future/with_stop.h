// WithStop: a future that completes with kCancelled as soon as a stop is requested.
//
//   std::stop_source stop;
//   Future<Page> page = WithStop(Fetch(url), stop.get_token());
//   absl::StatusOr<Page> fetched = co_await page;          // Cancelled after stop.request_stop()
//
// A result that arrives before the stop is kept. The stop cancels the inner future, which tells its
// promise side; so does dropping the whole before it is ready. Maps of the inner future run when
// the whole is taken. A token without a stop source never stops.
//
// Thread safety: as any future. Any thread may request the stop; that thread wakes the waiter.
#ifndef FRAKTOR_UTILS_FUTURE_WITH_STOP_H_
#define FRAKTOR_UTILS_FUTURE_WITH_STOP_H_

#include <optional>
#include <stop_token>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/internal/race_source.h"

namespace fraktor::inline v0 {

namespace with_stop_internal {

// The inner future races against the stop token.
template <class T>
class StopSource final : public future_internal::RaceSource<StopSource<T>, T, T> {
 public:
  explicit StopSource(Future<T> inner) : future_internal::RaceSource<StopSource, T, T>(std::move(inner)) {}

  // Called once, after the outer future has its owner.
  void Arm(std::stop_token token) {
    // Runs the callback here if the stop was already requested.
    if (this->Race()) on_stop_.emplace(std::move(token), OnStop{this});
  }

  const char* AwaitsThisThread() const override { return this->InnerAwaitsThisThread(); }

 private:
  friend class future_internal::RaceSource<StopSource, T, T>;

  struct OnStop {
    // The waiter may drop the future at once, on this thread.
    void operator()() const {
      StopSource* const waking = source;
      waking->AddReference();
      // The inner future belongs to this thread meanwhile: the outer future is not ready yet, and a
      // thread that drops it waits for this callback first.
      waking->WinAsRival([waking] { waking->inner().Cancel(); });
      waking->Release();
    }
    StopSource* source;
  };

  ~StopSource() override = default;

  // Waits for a callback that runs on another thread; the callback only wakes.
  void DropRival() { on_stop_.reset(); }
  FutureResult<T> TakeFrom(bool stop_won) {
    if (stop_won) return absl::CancelledError("a stop was requested");
    return this->inner().Take();
  }

  std::optional<std::stop_callback<OnStop>> on_stop_;
};

}  // namespace with_stop_internal

template <class T>
Future<T> WithStop(Future<T> future, std::stop_token token) {
  auto* const source = new with_stop_internal::StopSource<T>(std::move(future));
  Future<T> whole = Future<T>::FromSource(*source);
  source->Arm(std::move(token));
  return whole;
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_FUTURE_WITH_STOP_H_
