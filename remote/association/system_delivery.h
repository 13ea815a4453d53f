// SystemOutbox and SystemInbox: messages between two nodes that arrive exactly once and in order, however bad the way.
//
//   SystemOutbox outbox({.max_pending = 20'000});
//   if (!outbox.Add(std::move(watch))) Quarantine();                     // it numbers them from 1 on
//   wire::SystemMessages due;
//   while (outbox.TakeDue(now, {}, due)) Send(due);                      // new ones at once, all others now and then
//   outbox.Acknowledge(ack.number());
//
//   SystemInbox inbox;
//   for (const wire::SystemMessage& message : inbox.Take(received)) Handle(message);
//   Send(Ack(inbox.delivered()));
//
// Thread safety: thread-compatible. Time comes in as an argument.
#ifndef FRAKTOR_REMOTE_ASSOCIATION_SYSTEM_DELIVERY_H_
#define FRAKTOR_REMOTE_ASSOCIATION_SYSTEM_DELIVERY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/time/time.h"

#include "fraktor/remote/wire/control.pb.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

struct SystemOutboxOptions {
  // So many wait for an acknowledgement, and so many bytes of them; one more is refused.
  size_t max_pending = 20'000;
  size_t max_pending_bytes = size_t{16} << 20;
  absl::Duration resend_interval = absl::Seconds(1);
  // The oldest waits for so long at most.
  absl::Duration give_up_after = absl::Hours(6);
};

// How many go into one frame, and how large it may get. One always does.
struct SystemFrameLimits {
  size_t messages = 64;
  size_t bytes = size_t{48} << 10;
};

class SystemOutbox {
 public:
  explicit SystemOutbox(const SystemOutboxOptions& options) : options_(options) {}

  // Gives it its number. False if there are too many.
  bool Add(wire::SystemMessage message, Instant now);
  // Some that are to be sent now; false if there are none. Call it until there are none.
  bool TakeDue(Instant now, const SystemFrameLimits& limits, wire::SystemMessages& due);
  // All up to this number have arrived.
  void Acknowledge(uint64_t number, Instant now);
  // The oldest has waited for too long.
  bool HasGivenUp(Instant now) const;
  // None of those that wait will arrive any more. Numbers go on.
  void Clear();
  // Another start of the peer: numbers begin again, with those that wait.
  void Restart();

  size_t pending() const { return pending_.size(); }
  size_t pending_bytes() const { return bytes_; }

 private:
  struct Pending {
    wire::SystemMessage message;
    size_t bytes;
    Instant since;
  };

  const SystemOutboxOptions options_;
  std::deque<Pending> pending_;
  size_t bytes_ = 0;
  size_t sent_ = 0;  // So many of them have been sent, in this round.
  uint64_t next_number_ = 1;
  // When the first of them was sent last, or when the peer has last moved on. What is new does not count: otherwise a
  // message that was lost would not be sent again as long as others come.
  Instant round_since_;
};

class SystemInbox {
 public:
  // Those that are new, in order. They are views of `received`.
  std::vector<const wire::SystemMessage*> Take(const wire::SystemMessages& received);
  // The number of the last one.
  uint64_t delivered() const { return next_ - 1; }
  void Reset() { next_ = 1; }

 private:
  uint64_t next_ = 1;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_ASSOCIATION_SYSTEM_DELIVERY_H_
