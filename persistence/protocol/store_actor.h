// StoreActor: the common part of JournalActor, SnapshotActor and StateActor: an actor that serves
// many clients with one store, and waits for none of its answers.
//
//   class StateActor final : public protocol_internal::StoreActor<StateStorage, StateActorOptions> {
//    public:
//     StateActor(std::shared_ptr<StateStorage> storage, const StateActorOptions& options)
//         : StoreActor("state", std::move(storage), options) {}
//     absl::Status Receive(ActorContext& context, Envelope& message) override {
//       if (Resume(message)) return absl::OkStatus();
//       const auto load = [this] { return storage().Load("cart-7"); };
//       Run(context, load, [this](absl::StatusOr<StoredState> loaded) { is_loaded_ = loaded.ok(); });
//       return absl::OkStatus();
//     }
//
// Every call goes through a circuit breaker. An exception of a store is the result of the call.
// When the actor stops or is restarted, every call that has no result yet fails with kClosed.
//
// Thread safety: an actor.
#ifndef FRAKTOR_PERSISTENCE_PROTOCOL_STORE_ACTOR_H_
#define FRAKTOR_PERSISTENCE_PROTOCOL_STORE_ACTOR_H_

#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/protocol/pending_operations.h"
#include "fraktor/persistence/protocol/store_breaker.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0::protocol_internal {

template <class Storage, class Options>
class StoreActor : public ActorInstance {
 public:
  absl::Status PreStart(ActorContext& context) final {
    FRAKTOR_RETURN_IF_ERROR(options_.Validate());
    return breaker_.Start(context.system().toolbox(), options_.breaker);
  }
  void PostStop(ActorContext& context) final {
    is_ending_ = true;
    operations_.FailAll(EndsStatus());
    OnEnd(context);
  }

 protected:
  // `what` has static storage: "journal".
  StoreActor(std::string_view what, std::shared_ptr<Storage> storage, const Options& options)
      : what_(what), storage_(std::move(storage)), options_(options) {}

  // The actor ends, and every call has failed.
  virtual void OnEnd(ActorContext& /*context*/) {}

  Storage& storage() { return *storage_; }
  const Options& options() const { return options_; }
  StoreBreaker& breaker() { return breaker_; }
  // No call is begun any more.
  bool is_ending() const { return is_ending_; }
  // The error of requests that are under way when the actor ends.
  absl::Status EndsStatus() const {
    return MakeError(absl::StatusCode::kUnavailable, JournalErrorKind::kClosed,
                     absl::StrCat("the ", ToAbsl(what_),
                                  " actor stops or is restarted: whether the request took effect is not known; ask "
                                  "again"));
  }

  // Whether the message is the result of a call; it is handled then.
  bool Resume(const Envelope& message) { return operations_.Resume(message); }
  // Calls the store through the breaker. `done` receives the result, now or in a later turn.
  template <class Call, class Done>
  void Run(ActorContext& context, Call&& call, Done&& done) {
    breaker_.Run(context, operations_, std::forward<Call>(call), std::forward<Done>(done));
  }
  // Past the breaker.
  template <class T, class Done>
  void Await(ActorContext& context, Future<T> future, Done done) {
    operations_.Await(context, std::move(future), std::move(done));
  }

 private:
  const std::string_view what_;
  const std::shared_ptr<Storage> storage_;
  const Options options_;
  StoreBreaker breaker_;
  PendingOperations operations_;
  bool is_ending_ = false;
};

}  // namespace fraktor::inline v0::protocol_internal

#endif  // FRAKTOR_PERSISTENCE_PROTOCOL_STORE_ACTOR_H_
