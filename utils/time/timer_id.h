// TimerId: names one armed timer of one timing wheel or toolbox, for cancelling it.
//
// A value of eight bytes. An id that has fired or was cancelled names nothing ever after, also when its place has been
// used again: the place carries a generation. A default id names nothing.
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
