// EventStream: publishes the events of a system to its subscribers.
//
//   EventSubscription left = stream.Listen<NodeLeft>([](const NodeLeft& event) { Note(event.node); });
//   stream.Publish(NodeLeft{{.node = "n1"}});  // calls the listener, until `left` is destroyed
//
// A subscriber to a type also receives the events that declare the type as a base, each once. It
// may exclude some of them: Subscribe to NodeEvent and Unsubscribe from NodeLeft gives everything
// except NodeLeft. The stream calls subscribers in the order in which they subscribed, on the
// publishing thread, so they should hand the event over and return. They may publish, subscribe and
// unsubscribe meanwhile. An event is a view; a subscriber must copy the data that it keeps. If a
// subscriber throws, Publish throws, and the later subscribers do not receive the event. The
// runtime uses PublishToAll: all subscribers receive the event, and an exception is counted and
// becomes an error line in the log.
//
// Thread safety: any thread may call anything. A publication reaches the subscribers that were
// subscribed when it began. The stream holds no lock while subscribers run. Publishing without
// subscribers costs one load.
#ifndef FRAKTOR_ACTOR_EVENT_EVENT_STREAM_H_
#define FRAKTOR_ACTOR_EVENT_EVENT_STREAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/event/event_type.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

// A subscriber: a function and two words for it, such as an actor's reference. Owns nothing. All
// three members are its identity.
struct EventSubscriber {
  // Returns false if the subscriber has ended; then the stream removes it.
  bool (*deliver)(const EventSubscriber& self, const EventRef& event) = nullptr;
  uint64_t word0 = 0;
  uint64_t word1 = 0;

  friend bool operator==(const EventSubscriber&, const EventSubscriber&) = default;
  template <class H>
  friend H AbslHashValue(H h, const EventSubscriber& subscriber) {
    return H::combine(std::move(h), reinterpret_cast<uintptr_t>(subscriber.deliver), subscriber.word0,
                      subscriber.word1);
  }
};

struct EventStreamOptions {
  // The maximum number of pairs of subscriber and type. Further ones are refused with
  // ResourceExhausted.
  size_t max_subscriptions = 65'536;
  // The maximum nesting of publications by subscribers that publish. A deeper publication is
  // dropped and counted; 0 drops all.
  size_t max_nesting = 32;
  // Receives a line for each subscriber that throws in PublishToAll. If it throws, the line is
  // lost. None by default.
  std::function<void(std::string_view line)> on_throw = nullptr;
};

class EventStream;

namespace event_internal {
class Listener;
}

// Listens with a function until it is destroyed. When the destructor returns, the function runs on
// no other thread and will not run again. A destructor call from inside the function does not wait
// for the function. The stream must outlive it.
class EventSubscription {
 public:
  EventSubscription() = default;
  EventSubscription(EventSubscription&& other) noexcept;
  EventSubscription& operator=(EventSubscription&& other) noexcept;
  ~EventSubscription() { Reset(); }

  // Ends the subscription now. Later calls do nothing.
  void Reset();

  // Returns false if the subscription has ended, or was refused because of max_subscriptions.
  bool IsListening() const { return stream_ != nullptr; }

 private:
  friend class EventStream;
  EventSubscription(EventStream* stream, std::shared_ptr<event_internal::Listener> listener)
      : stream_(stream), listener_(std::move(listener)) {}

  EventStream* stream_ = nullptr;
  std::shared_ptr<event_internal::Listener> listener_;
};

class EventStream {
 public:
  explicit EventStream(EventStreamOptions options = {}) : options_(std::move(options)) {}
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  // Returns true if the subscriber receives more events than before.
  template <class Event>
  absl::StatusOr<bool> Subscribe(const EventSubscriber& subscriber) {
    return Subscribe(subscriber, EventTypeOf<Event>());
  }
  absl::StatusOr<bool> Subscribe(const EventSubscriber& subscriber, const EventType& type);

  // Excludes Event and the events that derive from it. Events of other types still arrive. Returns
  // true if that changes anything. A publication that has begun on another thread may still arrive.
  template <class Event>
  bool Unsubscribe(const EventSubscriber& subscriber) {
    return Unsubscribe(subscriber, EventTypeOf<Event>());
  }
  bool Unsubscribe(const EventSubscriber& subscriber, const EventType& type);

  // Ends all subscriptions of the subscriber. Returns true if there were any.
  bool UnsubscribeAll(const EventSubscriber& subscriber);

  // Calls `listener` for each Event. Beyond max_subscriptions it returns a subscription without
  // events, whose IsListening() is false.
  template <class Event>
  [[nodiscard]] EventSubscription Listen(std::function<void(const Event&)> listener) {
    return ListenTo(EventTypeOf<Event>(),
                    [listener = std::move(listener)](const EventRef& event) { listener(*event.As<Event>()); });
  }

  template <class Event>
  void Publish(const Event& event) {
    // The acquire load pairs with the release store in Changed(): earlier subscriptions in this
    // thread's past are seen.
    if (subscriber_count_.load(std::memory_order_acquire) == 0) return;
    PublishRef(EventRef::To(event));
  }
  void PublishRef(const EventRef& event);

  // For publishers that cannot handle exceptions, such as the runtime: catches what a subscriber
  // throws and calls the later subscribers too.
  template <class Event>
  void PublishToAll(const Event& event) {
    if (subscriber_count_.load(std::memory_order_acquire) == 0) return;
    PublishRefToAll(EventRef::To(event));
  }
  void PublishRefToAll(const EventRef& event);

  size_t subscriber_count() const { return subscriber_count_.load(std::memory_order_acquire); }

  // Returns whether there is a subscriber to Event. For publishers whose events are expensive to
  // make. Takes a lock, so keep the result until changes() changes.
  template <class Event>
  bool HasSubscribers() {
    return !TargetsOf(EventTypeOf<Event>())->empty();
  }
  // Increases with each subscription and its end. Costs one load.
  uint64_t changes() const { return changes_.load(std::memory_order_acquire); }

  // Publications that were nested too deeply.
  uint64_t dropped_count() const { return dropped_count_.load(std::memory_order_relaxed); }
  // Exceptions of subscribers in PublishToAll.
  uint64_t throw_count() const { return throw_count_.load(std::memory_order_relaxed); }

 private:
  friend class EventSubscription;

  // The choice of a subscriber for a type; the nearest rule decides.
  struct Rule {
    const EventType* type;
    bool wanted;
  };
  struct Entry {
    EventSubscriber subscriber;
    std::vector<Rule> rules;
    std::shared_ptr<event_internal::Listener> listener;
  };
  struct Target {
    EventSubscriber subscriber;
    std::shared_ptr<event_internal::Listener> listener;  // keeps alive what the subscriber points to
  };
  using Targets = std::vector<Target>;

  EventSubscription ListenTo(const EventType& type, std::function<void(const EventRef&)> listener);
  template <class Call>
  void DeliverBy(const EventRef& event, Call call);
  void OnThrow(const EventType& type, std::string_view what);
  static bool Wants(const std::vector<Rule>& rules, const EventType& type);
  static bool SetRules(std::vector<Rule>& rules, const EventType& type, bool wanted);
  std::shared_ptr<const Targets> TargetsOf(const EventType& type);
  absl::StatusOr<bool> Add(const EventSubscriber& subscriber, const EventType& type,
                           std::shared_ptr<event_internal::Listener> listener);
  void Changed(size_t rules_before, size_t rules_after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const EventStreamOptions options_;
  Mutex mutex_;
  // By the order of subscription, which is the order of delivery.
  std::map<uint64_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<EventSubscriber, uint64_t> numbers_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t rule_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // The recipients of each type, computed at the first publication after a change.
  absl::flat_hash_map<const EventType*, std::shared_ptr<const Targets>> targets_ ABSL_GUARDED_BY(mutex_);
  // Both are written under mutex_ and read without it. A thread that reads changes_ finds the
  // subscriptions that led to it in TargetsOf.
  std::atomic<size_t> subscriber_count_{0};
  std::atomic<uint64_t> changes_{0};
  // Statistics; they pair with nothing.
  std::atomic<uint64_t> dropped_count_{0};
  std::atomic<uint64_t> throw_count_{0};
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_EVENT_EVENT_STREAM_H_
