// TestProbe: an actor whose messages a test inspects.
//
//   TestKit kit;
//   auto probe = kit.Probe();
//   auto session = kit.Spawn<Session>(probe.ref());
//   probe.Watch(session);
//   probe.Send(session, Login{"ann"});              // the probe is the sender
//   Welcome welcome = probe.Expect<Welcome>();      // the next message, which must be one; waits for it
//   probe.Reply(Thanks{});                          // to who sent it
//   probe.ExpectNoMessage(absl::Minutes(1));
//   kit.system().Stop(session);
//   probe.ExpectTerminated(session);
//
// Expectations follow the order of arrival: each takes the next message, and fails the test if that
// is not the expected one. The test ends then, with a text that names the probe, the expectation
// and the actual message. Waiting means virtual time, which moves as far as necessary; in a kit
// with threads it is the real clock.
//
// A probe lives under /system, so it sees the actors under /user end.
//
// Thread safety: the thread of the test. Messages come from any thread.
#ifndef FRAKTOR_ACTOR_TESTKIT_TEST_PROBE_H_
#define FRAKTOR_ACTOR_TESTKIT_TEST_PROBE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "gtest/gtest-printers.h"

#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/testkit/test_failure.h"
#include "fraktor/actor/typed/typed_ref.h"

namespace fraktor::inline v0 {

class TestKit;

namespace testkit_internal {

class ProbeInbox;

template <class Ref>
ActorRef Untyped(const Ref& ref) {
  if constexpr (std::is_same_v<Ref, ActorRef>) {
    return ref;
  } else {
    return ref.untyped();
  }
}

}  // namespace testkit_internal

class TestProbe {
 public:
  // Means the patience of the kit.
  static constexpr absl::Duration kPatience = -absl::InfiniteDuration();

  TestProbe(TestProbe&&) noexcept = default;
  TestProbe& operator=(TestProbe&&) noexcept = default;

  ActorRef ref() const { return ref_; }
  std::string Path() const;

  // Takes the next message, which must be an M.
  template <class M>
  M Expect(absl::Duration within = kPatience, TestLocation at = TestLocation::Here()) {
    Envelope& message = TakeNext(MessageTypeOf<M>()->name(), within, at);
    if (!message.Is<M>()) EndOnOther(MessageTypeOf<M>()->name(), message, at);
    return Read<M>(message);
  }

  // The same, and the message must equal `expected`.
  template <class M>
  M ExpectMessage(const M& expected, absl::Duration within = kPatience, TestLocation at = TestLocation::Here()) {
    M message = Expect<M>(within, at);
    if (!(message == expected)) EndOnUnequal(testing::PrintToString(expected), testing::PrintToString(message), at);
    return message;
  }

  // Takes the next message, which must have one of several types.
  template <class... Ms>
  std::variant<Ms...> ExpectOneOf(absl::Duration within = kPatience, TestLocation at = TestLocation::Here()) {
    const std::string expected = OneOf({MessageTypeOf<Ms>()->name()...});
    Envelope& message = TakeNext(expected, within, at);
    std::unique_ptr<std::variant<Ms...>> found;
    static_cast<void>(
        ((message.Is<Ms>() && (found = std::make_unique<std::variant<Ms...>>(Read<Ms>(message)))) || ...));
    if (found == nullptr) EndOnOther(expected, message, at);
    return std::move(*found);
  }

  // Takes the next M for which `wanted` returns true, and drops the messages before it.
  template <class M>
  M FishFor(absl::FunctionRef<bool(const M&)> wanted, absl::Duration within = kPatience,
            TestLocation at = TestLocation::Here()) {
    return Read<M>(Fish(
        MessageTypeOf<M>()->name(),
        [wanted](const Envelope& message) { return message.Is<M>() && wanted(message.As<M>()); }, within, at));
  }
  template <class M>
  M FishFor(absl::Duration within = kPatience, TestLocation at = TestLocation::Here()) {
    return FishFor<M>([](const M&) { return true; }, within, at);
  }

  // Takes the next message of any type; null if none comes in time.
  EnvelopePtr Receive(absl::Duration within = kPatience);

  // Expects that no message comes for this time. Without a time, none from everything that can run
  // now.
  void ExpectNoMessage(absl::Duration duration = absl::ZeroDuration(), TestLocation at = TestLocation::Here());

  // Expects the Terminated of an actor as the next message. Watches the actor if it is not watched
  // yet.
  template <class Ref>
  void ExpectTerminated(const Ref& actor, absl::Duration within = kPatience, TestLocation at = TestLocation::Here()) {
    ExpectTerminatedOf(testkit_internal::Untyped(actor), within, at);
  }

  // Watches an actor from now on, or no longer.
  template <class Ref>
  void Watch(const Ref& actor) {
    WatchActor(testkit_internal::Untyped(actor));
  }
  template <class Ref>
  void Unwatch(const Ref& actor) {
    UnwatchActor(testkit_internal::Untyped(actor));
  }

  // Sends a message with the probe as its sender.
  template <class M>
  void Send(ActorRef to, M&& message) {
    using Message = std::decay_t<M>;
    SendForeign(to, MakeEnvelope<Message>(ref_, std::forward<M>(message)),
                kIsInterceptedMessage<Message> ? kIntercepted : 0)
        .IgnoreError();
  }
  template <class... Ms, class M>
  void Send(TypedRef<Ms...> to, M&& message) {
    TypedRef<Ms...>::template Check<M>();
    Send(to.untyped(), std::forward<M>(message));
  }

  // The sender of the latest message that was taken; no one if it had none, or no message was
  // taken.
  ActorRef LastSender() const { return last_ == nullptr ? ActorRef() : last_->sender(); }
  // Replies to that sender.
  template <class M>
  void Reply(M&& message) {
    Send(LastSender(), std::forward<M>(message));
  }
  // Forwards that message with its sender. Not possible if it was taken by Expect and cannot be
  // copied.
  void Forward(ActorRef to, TestLocation at = TestLocation::Here());

  // The number of messages that were not taken yet.
  size_t pending() const;
  // Drops messages of this type from now on.
  template <class M>
  void Ignore() {
    IgnoreType(MessageTypeOf<M>());
  }

 private:
  friend class TestKit;

  TestProbe(TestKit& kit, std::shared_ptr<testkit_internal::ProbeInbox> inbox, ActorRef ref)
      : kit_(&kit), inbox_(std::move(inbox)), ref_(ref) {}

  // A copy if the type has one, so that the message can still be forwarded.
  template <class M>
  M Read(Envelope& message) {
    if constexpr (std::is_copy_constructible_v<M>) {
      return std::as_const(message).template As<M>();
    } else {
      was_moved_ = true;
      return message.Take<M>();
    }
  }

  static std::string OneOf(const std::vector<std::string_view>& names);
  Envelope& TakeNext(std::string_view expected, absl::Duration within, TestLocation at);
  Envelope& Fish(std::string_view expected, absl::FunctionRef<bool(const Envelope&)> wanted, absl::Duration within,
                 TestLocation at);
  void ExpectTerminatedOf(ActorRef actor, absl::Duration within, TestLocation at);
  void WatchActor(ActorRef actor);
  void UnwatchActor(ActorRef actor);
  void IgnoreType(const MessageType* type);
  absl::Duration Patience(absl::Duration within) const;
  std::string Describe(const Envelope& message) const;
  std::string PathOf(ActorRef actor) const;
  [[noreturn]] void End(std::string_view expected, const std::string& instead, TestLocation at) const;
  [[noreturn]] void EndOnOther(std::string_view expected, const Envelope& message, TestLocation at) const;
  [[noreturn]] void EndOnUnequal(const std::string& expected, const std::string& got, TestLocation at) const;

  TestKit* kit_;
  std::shared_ptr<testkit_internal::ProbeInbox> inbox_;
  ActorRef ref_;
  EnvelopePtr last_;
  bool was_moved_ = false;
  // The paths of watched actors, for texts after their end.
  std::vector<std::pair<ActorRef, std::string>> watched_;
};

// A probe whose reference has a type.
template <class... Ms>
class TypedProbe : public TestProbe {
 public:
  explicit TypedProbe(TestProbe probe) : TestProbe(std::move(probe)) {}

  TypedRef<Ms...> ref() const { return TypedRef<Ms...>::Unchecked(TestProbe::ref()); }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TESTKIT_TEST_PROBE_H_
