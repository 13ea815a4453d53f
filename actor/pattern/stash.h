// Stash: an actor keeps messages back until it can handle them.
//
//   class Store : public Actor<Store, Connected, Query> {
//    public:
//     Deferred<Row> On(Context& context, const Query&) { return Stash(context); }      // Not yet.
//     void On(Context& context, const Connected&) {
//       UnstashAll(context);
//       context.Become<Open>();
//     }
//
//    private:
//     struct Open {
//       Row On(Context&, const Query& query) { return {query.id}; }
//       void On(Context&, const Connected&) {}
//     };
//   };
//
// Any user message can be stashed, with its sender, also a Terminated or the message of WatchWith.
// The actor receives it again later. Every kind of mailbox allows it.
// - A restart brings back the stashed messages, before the messages in the mailbox, after
//   PreRestart.
// - When the actor ends, the stashed messages become dead letters, after PostStop. So hooks
//   still find them.
// - A stashed message has left the mailbox, and makes room there. An unstashed one counts again: if
//   the mailbox is full by then and does not block its senders, the newest messages without room
//   become dead letters (mailbox_full), except messages that no limit refuses, as Terminated. A
//   mailbox with OverflowStrategy::kDropOldest takes all back and does not count them.
//
// Cost: only the messages themselves, which are linked.
//
// Thread safety: the turns of the actor.
#ifndef FRAKTOR_ACTOR_PATTERN_STASH_H_
#define FRAKTOR_ACTOR_PATTERN_STASH_H_

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

// The number of messages that an actor may stash, unless SetStashCapacity changes it.
inline constexpr size_t kDefaultStashCapacity = 10'000;

template <class R>
class Deferred;

// The result of Stash. A handler may return it as an absl::Status or as a Deferred<R>. A
// StatusOr<R> does not compile, because OK is no R.
class [[nodiscard]] Stashed {
 public:
  explicit Stashed(absl::Status status) : status_(std::move(status)) {}

  operator absl::Status() const { return status_; }  // NOLINT(google-explicit-constructor): `return Stash(context);`
  template <class R>
  operator Deferred<R>() const {  // NOLINT(google-explicit-constructor)
    return Deferred<R>(status_);
  }
  template <class R>
  operator absl::StatusOr<R>() const {  // NOLINT(google-explicit-constructor): a clear error.
    static_assert(std::is_constructible_v<R, absl::Status>,
                  "a handler that stashes its message replies later: let it return Deferred<Reply> or "
                  "Task<Deferred<Reply>>, and not StatusOr<Reply> or Task<Reply>");
    return R(status_);
  }

  const absl::Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  absl::StatusCode code() const { return status_.code(); }
  std::string_view message() const { return ToStd(status_.message()); }
  void IgnoreError() const {}

 private:
  absl::Status status_;
};

// Stashes the current message. The handler must not use it afterwards, and has no sender any more.
// If there is no room, the message becomes a dead letter (stash_full), and the result is
// ResourceExhausted with kStashOverflow; a handler that returns it makes the actor fail. Call
// StashIsFull first to avoid that. FailedPrecondition if no user message is being handled, or if it
// was stashed or forwarded before.
Stashed Stash(ActorContext& context);

// The actor receives all stashed messages next, in the order in which they were stashed.
void UnstashAll(ActorContext& context);
// The actor receives the oldest stashed message next. False if there is none.
bool UnstashOne(ActorContext& context);

size_t StashSize(ActorContext& context);
bool StashIsFull(ActorContext& context);

// For this actor, until it ends. Messages that are stashed already stay.
void SetStashCapacity(ActorContext& context, size_t capacity);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATTERN_STASH_H_
