// InterleavingTask<R>: what a coroutine handler returns if other messages may be handled while it
// waits.
//
//   InterleavingTask<Quote> On(Context& context, const GetQuote& get) {
//     Future<Price> asking = context.Ask(exchange_, GetPrice{get.symbol}, absl::Seconds(1));
//     co_return Quote{(co_await asking)->cents};                   // meanwhile, other messages are handled
//   }
//
// See typed_actor.h for what handlers may return.
#ifndef FRAKTOR_ACTOR_TYPED_INTERLEAVING_TASK_H_
#define FRAKTOR_ACTOR_TYPED_INTERLEAVING_TASK_H_

#include <utility>

#include "fraktor/utils/future/task.h"

namespace fraktor::inline v0 {

template <class T = void>
class InterleavingTask : public Task<T> {
 public:
  using promise_type = typename Task<T>::promise_type;
  InterleavingTask(Task<T>&& task)
      : Task<T>(std::move(task)) {}  // NOLINT(google-explicit-constructor): the compiler converts
                                     // the result of the promise.
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TYPED_INTERLEAVING_TASK_H_
