// Pid: identifies an actor of this process in 8 bytes.
//
//   Pid pid{.slot = 7, .generation = 3};
//   bool names_an_actor = pid.IsValid();  // a default Pid names none
//
// Later actors reuse a slot with a higher generation. Generations begin at 1, so that a default Pid
// never names an actor. A Pid is a trivially copyable value and owns nothing.
#ifndef FRAKTOR_ACTOR_PATH_PID_H_
#define FRAKTOR_ACTOR_PATH_PID_H_

#include <compare>
#include <cstdint>
#include <utility>

namespace fraktor::inline v0 {

struct Pid {
  uint32_t slot = 0;
  uint32_t generation = 0;

  constexpr bool IsValid() const { return generation != 0; }
  constexpr uint64_t ToBits() const { return uint64_t{generation} << 32 | slot; }
  static constexpr Pid FromBits(uint64_t bits) {
    return Pid{.slot = static_cast<uint32_t>(bits), .generation = static_cast<uint32_t>(bits >> 32)};
  }

  friend constexpr auto operator<=>(const Pid&, const Pid&) = default;

  template <class H>
  friend H AbslHashValue(H h, const Pid& pid) {
    return H::combine(std::move(h), pid.slot, pid.generation);
  }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATH_PID_H_
