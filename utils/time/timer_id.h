// TimerId: names one armed timer of one timing wheel or toolbox, for cancelling it.
//
//   TimerId alarm = toolbox.ScheduleAfter(absl::Seconds(1), [&] { rung = true; }).value();
//   toolbox.CancelTimer(alarm);                           // rung stays false
//
// A value of eight bytes. After the timer has fired or was cancelled, its id never names a timer
// again, even if the entry is reused: the id contains the generation of the entry. A default id
// names no timer.
#ifndef FRAKTOR_UTILS_TIME_TIMER_ID_H_
#define FRAKTOR_UTILS_TIME_TIMER_ID_H_

#include <cstdint>

namespace fraktor::inline v0 {

struct TimerId {
  uint64_t value = 0;

  friend constexpr bool operator==(TimerId, TimerId) = default;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TIME_TIMER_ID_H_
