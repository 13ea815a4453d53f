#include "fraktor/actor/event/event_stream.h"

#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/event/event_type.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

namespace event_internal {

// A function with its own lifetime: it is not called after Close, and Close waits until it has
// returned on all other threads.
class Listener {
 public:
  explicit Listener(std::function<void(const EventRef&)> function) : function_(std::move(function)) {}

  void Call(const EventRef& event) {
    {
      MutexLock lock(mutex_);
      if (closed_) return;
      ++calls_;
    }
    const Frame frame(this);
    function_(event);
  }

  void Close() {
    const size_t own = Frame::CountOf(this);
    MutexLock lock(mutex_);
    closed_ = true;
    returned_.wait(lock, [&] {
      mutex_.AssertHeld();
      return calls_ <= own;
    });
  }

 private:
  // The calls that this thread is in, the innermost first. Its destructor ends the call, also after
  // an exception.
  class Frame {
   public:
    explicit Frame(Listener* listener) : listener_(listener), outer_(innermost) { innermost = this; }
    ~Frame() {
      innermost = outer_;
      MutexLock lock(listener_->mutex_);
      --listener_->calls_;
      if (listener_->closed_) listener_->returned_.notify_all();
    }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

    static size_t CountOf(const Listener* listener) {
      size_t count = 0;
      for (const Frame* frame = innermost; frame != nullptr; frame = frame->outer_)
        count += frame->listener_ == listener;
      return count;
    }

   private:
    static thread_local Frame* innermost;
    Listener* const listener_;
    Frame* const outer_;
  };

  Mutex mutex_;
  std::condition_variable_any returned_;
  size_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  const std::function<void(const EventRef&)> function_;
};

thread_local Listener::Frame* Listener::Frame::innermost = nullptr;

namespace {

bool DeliverToListener(const EventSubscriber& self, const EventRef& event) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the word is an address that the subscriber chose
  reinterpret_cast<Listener*>(static_cast<uintptr_t>(self.word0))->Call(event);
  return true;
}

EventSubscriber SubscriberFor(const Listener& listener) {
  return {.deliver = &DeliverToListener, .word0 = reinterpret_cast<uintptr_t>(&listener), .word1 = 0};
}

// The nesting of publications on this thread, over all streams.
thread_local size_t nesting = 0;

}  // namespace
}  // namespace event_internal

EventSubscription::EventSubscription(EventSubscription&& other) noexcept
    : stream_(std::exchange(other.stream_, nullptr)), listener_(std::move(other.listener_)) {}

EventSubscription& EventSubscription::operator=(EventSubscription&& other) noexcept {
  if (this != &other) {
    Reset();
    stream_ = std::exchange(other.stream_, nullptr);
    listener_ = std::move(other.listener_);
  }
  return *this;
}

void EventSubscription::Reset() {
  EventStream* const stream = std::exchange(stream_, nullptr);
  if (stream == nullptr) return;
  const std::shared_ptr<event_internal::Listener> listener = std::move(listener_);
  stream->UnsubscribeAll(event_internal::SubscriberFor(*listener));
  listener->Close();
}

namespace {

// Forgets the recipients of the type and of types that derive from it; they are computed again. The
// recipients of other types stay, so that publications of those do not notice subscribers that come
// and go.
template <class Targets>
void Forget(Targets& targets, const EventType& type) {
  absl::erase_if(targets, [&](const auto& entry) { return entry.first->Is(type); });
}

}  // namespace

// A rule for the type itself decides. Without one, the type is wanted if one of its bases is.
bool EventStream::Wants(const std::vector<Rule>& rules, const EventType& type) {  // NOLINT(misc-no-recursion)
  for (const Rule& rule : rules) {
    if (rule.type == &type) return rule.wanted;
  }
  for (const EventBase& base : type.bases()) {
    if (Wants(rules, *base.type)) return true;
  }
  return false;
}

// Makes the type and all types that derive from it wanted or not. Returns true if that changes
// anything.
bool EventStream::SetRules(std::vector<Rule>& rules, const EventType& type, bool wanted) {
  // Rules for the type and derived types either agree with the new choice or are removed.
  const auto kept = std::remove_if(rules.begin(), rules.end(),
                                   [&](const Rule& rule) { return rule.wanted != wanted && rule.type->Is(type); });
  bool changed = kept != rules.end();
  rules.erase(kept, rules.end());
  if (Wants(rules, type) != wanted) {
    rules.push_back({&type, wanted});
    changed = true;
  }
  return changed;
}

absl::StatusOr<bool> EventStream::Subscribe(const EventSubscriber& subscriber, const EventType& type) {
  return Add(subscriber, type, nullptr);
}

absl::StatusOr<bool> EventStream::Add(const EventSubscriber& subscriber, const EventType& type,
                                      std::shared_ptr<event_internal::Listener> listener) {
  if (subscriber.deliver == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("subscription to ", ToAbsl(type.name()), ": the subscriber has no function"));
  }
  MutexLock lock(mutex_);
  if (rule_count_ >= options_.max_subscriptions) {
    return absl::ResourceExhaustedError(absl::StrCat("subscription to ", ToAbsl(type.name()), ": the stream has its ",
                                                     options_.max_subscriptions,
                                                     " subscriptions; end some, or raise max_subscriptions"));
  }
  const auto [number, is_new] = numbers_.try_emplace(subscriber, next_number_);
  if (is_new) entries_.try_emplace(next_number_++, Entry{subscriber, {}, std::move(listener)});
  std::vector<Rule>& rules = entries_.at(number->second).rules;
  const size_t before = rules.size();
  if (!SetRules(rules, type, true)) return false;
  Forget(targets_, type);
  Changed(before, rules.size());
  return true;
}

bool EventStream::Unsubscribe(const EventSubscriber& subscriber, const EventType& type) {
  MutexLock lock(mutex_);
  const auto number = numbers_.find(subscriber);
  if (number == numbers_.end()) return false;
  const auto entry = entries_.find(number->second);
  std::vector<Rule>& rules = entry->second.rules;
  const size_t before = rules.size();
  if (!SetRules(rules, type, false)) return false;
  Forget(targets_, type);
  size_t after = rules.size();
  if (std::none_of(rules.begin(), rules.end(), [](const Rule& rule) { return rule.wanted; })) {
    after = 0;
    entries_.erase(entry);
    numbers_.erase(number);
  }
  Changed(before, after);
  return true;
}

bool EventStream::UnsubscribeAll(const EventSubscriber& subscriber) {
  // Destroyed after the lock is released: a listener's function may own anything.
  Entry gone;
  MutexLock lock(mutex_);
  const auto number = numbers_.find(subscriber);
  if (number == numbers_.end()) return false;
  const auto entry = entries_.find(number->second);
  gone = std::move(entry->second);
  entries_.erase(entry);
  numbers_.erase(number);
  for (const Rule& rule : gone.rules) Forget(targets_, *rule.type);
  Changed(gone.rules.size(), 0);
  return true;
}

void EventStream::Changed(size_t rules_before, size_t rules_after) {
  rule_count_ += rules_after - rules_before;
  // Pairs with the acquire load in Publish.
  subscriber_count_.store(entries_.size(), std::memory_order_release);
  // Pairs with the acquire load in changes().
  changes_.fetch_add(1, std::memory_order_release);
}

EventSubscription EventStream::ListenTo(const EventType& type, std::function<void(const EventRef&)> listener) {
  auto shared = std::make_shared<event_internal::Listener>(std::move(listener));
  if (!Add(event_internal::SubscriberFor(*shared), type, shared).ok()) return EventSubscription();
  return EventSubscription(this, std::move(shared));
}

std::shared_ptr<const EventStream::Targets> EventStream::TargetsOf(const EventType& type) {
  MutexLock lock(mutex_);
  std::shared_ptr<const Targets>& targets = targets_[&type];
  if (targets == nullptr) {
    Targets made;
    for (const auto& [number, entry] : entries_) {
      if (Wants(entry.rules, type)) made.push_back({entry.subscriber, entry.listener});
    }
    targets = std::make_shared<const Targets>(std::move(made));
  }
  return targets;
}

template <class Call>
void EventStream::DeliverBy(const EventRef& event, Call call) {
  struct Nesting {
    Nesting() { ++event_internal::nesting; }
    ~Nesting() { --event_internal::nesting; }
  };
  const Nesting nesting;
  if (event_internal::nesting > options_.max_nesting) {
    dropped_count_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const std::shared_ptr<const Targets> targets = TargetsOf(event.type());
  for (const Target& target : *targets) {
    if (!call(target.subscriber)) UnsubscribeAll(target.subscriber);
  }
}

void EventStream::PublishRef(const EventRef& event) {
  DeliverBy(event, [&](const EventSubscriber& to) { return to.deliver(to, event); });
}

void EventStream::PublishRefToAll(const EventRef& event) {
  DeliverBy(event, [&](const EventSubscriber& to) {
    try {
      return to.deliver(to, event);
    } catch (abi::__forced_unwind&) {
      throw;  // the thread is being cancelled; that must go on
    } catch (const std::exception& e) {
      OnThrow(event.type(), e.what());
    } catch (...) {
      OnThrow(event.type(), "something that is no std::exception");
    }
    return true;
  });
}

void EventStream::OnThrow(const EventType& type, std::string_view what) {
  throw_count_.fetch_add(1, std::memory_order_relaxed);
  if (options_.on_throw == nullptr) return;
  try {
    options_.on_throw(
        absl::StrCat("a listener of ", ToAbsl(type.name()), " threw: ", ToAbsl(what), "; listeners must catch it"));
  } catch (abi::__forced_unwind&) {
    throw;  // the thread is being cancelled; that must go on
  } catch (...) {
    // The line is lost. The publisher must not get the exception.
  }
}

}  // namespace fraktor::inline v0
