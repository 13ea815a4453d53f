#include "fraktor/remote/association/system_delivery.h"

#include <algorithm>
#include <utility>

namespace fraktor::inline v0 {
namespace {

// What a message takes in a frame besides its own bytes.
constexpr size_t kEntryBytes = 6;

}  // namespace

bool SystemOutbox::Add(wire::SystemMessage message, Instant now) {
  message.set_number(next_number_);
  const size_t bytes = message.ByteSizeLong();
  if (pending_.size() >= options_.max_pending || bytes_ + bytes > options_.max_pending_bytes) return false;
  ++next_number_;
  bytes_ += bytes;
  pending_.push_back({std::move(message), bytes, now});
  return true;
}

bool SystemOutbox::TakeDue(Instant now, const SystemFrameLimits& limits, wire::SystemMessages& due) {
  if (sent_ == pending_.size() && sent_ != 0 && now >= round_since_ + options_.resend_interval) sent_ = 0;
  if (sent_ == pending_.size()) return false;
  if (sent_ == 0) round_since_ = now;
  due.Clear();
  due.set_first_kept(pending_.front().message.number());
  size_t bytes = 0;
  while (sent_ < pending_.size() && static_cast<size_t>(due.messages_size()) < limits.messages) {
    const Pending& next = pending_[sent_];
    bytes += next.bytes + kEntryBytes;
    if (due.messages_size() > 0 && bytes > limits.bytes) break;
    *due.add_messages() = next.message;
    ++sent_;
  }
  return true;
}

void SystemOutbox::Acknowledge(uint64_t number, Instant now) {
  bool is_news = false;
  while (!pending_.empty() && pending_.front().message.number() <= number) {
    bytes_ -= pending_.front().bytes;
    pending_.pop_front();
    if (sent_ > 0) --sent_;
    is_news = true;
  }
  // The others are on their way.
  if (is_news) round_since_ = now;
}

bool SystemOutbox::HasGivenUp(Instant now) const {
  return !pending_.empty() && now >= pending_.front().since + options_.give_up_after;
}

void SystemOutbox::Clear() {
  pending_.clear();
  bytes_ = sent_ = 0;
}

void SystemOutbox::Restart() {
  next_number_ = 1;
  for (Pending& one : pending_) one.message.set_number(next_number_++);
  sent_ = 0;
}

std::vector<const wire::SystemMessage*> SystemInbox::Take(const wire::SystemMessages& received) {
  std::vector<const wire::SystemMessage*> fresh;
  // What the sender has given up will not come.
  next_ = std::max<uint64_t>(next_, received.first_kept());
  for (const wire::SystemMessage& message : received.messages()) {
    if (message.number() != next_) {
      if (message.number() > next_) break;  // Something is missing: it will be sent again.
      continue;
    }
    fresh.push_back(&message);
    ++next_;
  }
  return fresh;
}

}  // namespace fraktor::inline v0
