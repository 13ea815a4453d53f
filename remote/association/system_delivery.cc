#include "fraktor/remote/association/system_delivery.h"

#include <algorithm>
#include <utility>

namespace fraktor::inline v0 {

bool SystemOutbox::Add(wire::SystemMessage message, Instant now) {
  if (pending_.size() >= options_.max_pending) return false;
  message.set_number(next_number_++);
  pending_.push_back({std::move(message), now});
  return true;
}

bool SystemOutbox::TakeDue(Instant now, size_t most, wire::SystemMessages& due) {
  if (sent_ == pending_.size() && sent_ != 0 && now >= last_round_ + options_.resend_interval) sent_ = 0;
  if (sent_ == pending_.size()) return false;
  due.Clear();
  due.set_first_kept(pending_.front().message.number());
  while (sent_ < pending_.size() && static_cast<size_t>(due.messages_size()) < most) {
    *due.add_messages() = pending_[sent_++].message;
  }
  last_round_ = now;
  return true;
}

void SystemOutbox::Acknowledge(uint64_t number, Instant now) {
  bool is_news = false;
  while (!pending_.empty() && pending_.front().message.number() <= number) {
    pending_.pop_front();
    if (sent_ > 0) --sent_;
    is_news = true;
  }
  // The others are on their way.
  if (is_news) last_round_ = now;
}

bool SystemOutbox::HasGivenUp(Instant now) const {
  return !pending_.empty() && now >= pending_.front().since + options_.give_up_after;
}

void SystemOutbox::Clear() {
  pending_.clear();
  sent_ = 0;
}

void SystemOutbox::Reset() {
  Clear();
  next_number_ = 1;
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
