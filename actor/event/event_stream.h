// EventStream: what happens in a system, for whoever wants to know.
//
//   EventSubscription left = stream.Listen<NodeLeft>([](const NodeLeft& event) { ... });  // until `left` is destroyed
//   stream.Publish(NodeLeft{{.node = "n1"}});
//
// Who subscribes to a type also gets the events that declare it as a base, each once, and may leave out a part of them
// again: Subscribe to NodeEvent and Unsubscribe from NodeLeft gives everything but NodeLeft. Subscribers are called in
// the order in which they came, in the thread that publishes, so they hand the event over and return. They may publish,
// subscribe and unsubscribe meanwhile. An event is a view for them: what they keep they copy. What they throw reaches who
// calls Publish, and those behind them do not get the event. What the runtime publishes goes to all of them: what one
// throws is an error line in the log then, and counted.
//
// Thread safety: any thread may call anything. A publication that has begun goes to those who were subscribed when it
// began. No lock is held while subscribers run. Publishing where nobody listens costs one load.
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

// A subscriber: a function and two words for it, such as an actor's reference. Nothing is owned, and all of it is its
// identity.
struct EventSubscriber {
  // False says that the subscriber has ended; then it is removed.
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
  // So many pairs of subscriber and type; a further one is refused with ResourceExhausted.
  size_t max_subscriptions = 65'536;
  // Subscribers that publish make publications nest. A publication deeper than this is dropped and counted; with 0 that
  // is every one.
  size_t max_nesting = 32;
  // Gets a line for each subscriber that throws in PublishToAll. It must not throw. None by default.
  std::function<void(std::string_view line)> on_throw = nullptr;
};

class EventStream;

namespace event_internal {
class Listener;
}

// A function that listens until this is destroyed. When the destructor returns, the function runs in no other thread
// and will not run again; called from inside the function itself it does not wait for that. The stream must live
// longer.
class EventSubscription {
 public:
  EventSubscription() = default;
  EventSubscription(EventSubscription&& other) noexcept;
  EventSubscription& operator=(EventSubscription&& other) noexcept;
  ~EventSubscription() { Reset(); }

  // Ends it now; later calls do nothing.
  void Reset();

  // False if it has ended, or never began because the stream had its max_subscriptions.
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

  // True if that changes what the subscriber gets, false if it got all of it already.
  template <class Event>
  absl::StatusOr<bool> Subscribe(const EventSubscriber& subscriber) {
    return Subscribe(subscriber, EventTypeOf<Event>());
  }
  absl::StatusOr<bool> Subscribe(const EventSubscriber& subscriber, const EventType& type);

  // The subscriber gets no Event and nothing that is one from now on; what it gets by other types stays. True if that
  // changes anything. A publication that has begun in another thread may still arrive.
  template <class Event>
  bool Unsubscribe(const EventSubscriber& subscriber) {
    return Unsubscribe(subscriber, EventTypeOf<Event>());
  }
  bool Unsubscribe(const EventSubscriber& subscriber, const EventType& type);

  // Ends all that it is subscribed to. True if there was any.
  bool UnsubscribeAll(const EventSubscriber& subscriber);

  // Calls `listener` for each Event. Beyond max_subscriptions the answer is a subscription that hears nothing, and says
  // so: IsListening() is false.
  template <class Event>
  [[nodiscard]] EventSubscription Listen(std::function<void(const Event&)> listener) {
    return ListenTo(EventTypeOf<Event>(),
                    [listener = std::move(listener)](const EventRef& event) { listener(*event.As<Event>()); });
  }

  template <class Event>
  void Publish(const Event& event) {
    // Pairs with the store in Changed(): who has subscribed before, in this thread's past, is seen.
    if (subscriber_count_.load(std::memory_order_acquire) == 0) return;
    PublishRef(EventRef::To(event));
  }
  void PublishRef(const EventRef& event);

  // For a publisher that nobody could tell, such as the runtime: throws nothing that a subscriber throws, and those
  // behind it get the event too.
  template <class Event>
  void PublishToAll(const Event& event) {
    if (subscriber_count_.load(std::memory_order_acquire) == 0) return;
    PublishRefToAll(EventRef::To(event));
  }
  void PublishRefToAll(const EventRef& event);

  size_t subscriber_count() const { return subscriber_count_.load(std::memory_order_acquire); }

  // Whether somebody gets an Event. For those whose events cost something to make; takes a lock, so they keep the answer
  // until changes() is another one.
  template <class Event>
  bool HasSubscribers() {
    return !TargetsOf(EventTypeOf<Event>())->empty();
  }
  // Grows whenever somebody subscribes or unsubscribes. Costs one load.
  uint64_t changes() const { return changes_.load(std::memory_order_acquire); }

  // Publications that nested too deep.
  uint64_t dropped_count() const { return dropped_count_.load(std::memory_order_relaxed); }
  // Subscribers that threw in PublishToAll.
  uint64_t throw_count() const { return throw_count_.load(std::memory_order_relaxed); }

 private:
  friend class EventSubscription;

  // What a subscriber has said about a type; the nearest rule decides.
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
    std::shared_ptr<event_internal::Listener> listener;  // keeps what the subscriber points to
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
  // By the order of arrival, which is the order of delivery.
  std::map<uint64_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<EventSubscriber, uint64_t> numbers_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t rule_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // Who gets which type, made at the first publication after a change.
  absl::flat_hash_map<const EventType*, std::shared_ptr<const Targets>> targets_ ABSL_GUARDED_BY(mutex_);
  std::atomic<size_t> subscriber_count_{0};  // written under mutex_; Publish looks at it without
  std::atomic<uint64_t> changes_{0};         // likewise; who sees a number finds in TargetsOf what led to it
  // Statistics that pair with nothing.
  std::atomic<uint64_t> dropped_count_{0};
  std::atomic<uint64_t> throw_count_{0};
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_EVENT_EVENT_STREAM_H_
