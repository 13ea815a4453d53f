// A probe: an actor whose messages a test looks at.
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
// What is expected comes in the order of arrival: an expectation takes the next message, whatever it is, and fails the
// test if it is not the one. The test ends then, with a text that names the probe, what it expected and what it got.
// Waiting means virtual time, which moves as far as it takes; in a kit with threads it is the real clock.
//
// A probe lives below /system, so it sees the users' actors end.
//
// Thread safety: the thread of the test. Messages come from any.
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
#include "fraktor/actor/testkit/test_failure.h"
#include "fraktor/actor/turn/mailing.h"
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
  // As long as the kit's patience.
  static constexpr absl::Duration kPatience = -absl::InfiniteDuration();

  TestProbe(TestProbe&&) noexcept = default;
  TestProbe& operator=(TestProbe&&) noexcept = default;

  ActorRef ref() const { return ref_; }
  std::string Path() const;

  // The next message, which must be an M.
  template <class M>
  M Expect(absl::Duration within = kPatience, TestLocation at = TestLocation::Here()) {
    Envelope& message = TakeNext(MessageTypeOf<M>()->name(), within, at);
    if (!message.Is<M>()) EndOnOther(MessageTypeOf<M>()->name(), message, at);
    return Read<M>(message);
  }

  // The same, and it must be equal to `expected`.
  template <class M>
  M ExpectMessage(const M& expected, absl::Duration within = kPatience, TestLocation at = TestLocation::Here()) {
    M message = Expect<M>(within, at);
    if (!(message == expected)) EndOnUnequal(testing::PrintToString(expected), testing::PrintToString(message), at);
    return message;
  }

  // The next message, which must be one of several types.
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

  // The next M for which `wanted` says true; what comes before it is dropped.
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

  // The next message, whatever it is; null if none comes in time.
  EnvelopePtr Receive(absl::Duration within = kPatience);

  // Nothing comes for so long; with nothing given, in all that can happen now.
  void ExpectNoMessage(absl::Duration duration = absl::ZeroDuration(), TestLocation at = TestLocation::Here());

  // The next message is the news that an actor has ended. Watches it, if that was not done before.
  template <class Ref>
  void ExpectTerminated(const Ref& actor, absl::Duration within = kPatience, TestLocation at = TestLocation::Here()) {
    ExpectTerminatedOf(testkit_internal::Untyped(actor), within, at);
  }

  // The probe watches an actor from now on, or no longer.
  template <class Ref>
  void Watch(const Ref& actor) {
    WatchActor(testkit_internal::Untyped(actor));
  }
  template <class Ref>
  void Unwatch(const Ref& actor) {
    UnwatchActor(testkit_internal::Untyped(actor));
  }

  // Sends a message of which the probe is the sender.
  template <class M>
  void Send(ActorRef to, M&& message) {
    using Message = std::decay_t<M>;
    SendForeign(to, MakeEnvelope<Message>(ref_, std::forward<M>(message)), kIsInterceptedMessage<Message> ? kMarked : 0)
        .IgnoreError();
  }
  template <class... Ms, class M>
  void Send(TypedRef<Ms...> to, M&& message) {
    TypedRef<Ms...>::template Check<M>();
    Send(to.untyped(), std::forward<M>(message));
  }

  // Of the message that was taken last; no one if it had none, or there is no message.
  ActorRef LastSender() const { return last_ == nullptr ? ActorRef() : last_->sender(); }
  // Answers it.
  template <class M>
  void Reply(M&& message) {
    Send(LastSender(), std::forward<M>(message));
  }
  // Passes it on, as if its sender had sent it there. Not if it cannot be copied and was taken by Expect.
  void Forward(ActorRef to, TestLocation at = TestLocation::Here());

  // Messages that are there and were not taken.
  size_t pending() const;
  // Messages of this type are dropped from now on.
  template <class M>
  void Ignore() {
    IgnoreType(MessageTypeOf<M>());
  }

 private:
  friend class TestKit;

  TestProbe(TestKit& kit, std::shared_ptr<testkit_internal::ProbeInbox> inbox, ActorRef ref)
      : kit_(&kit), inbox_(std::move(inbox)), ref_(ref) {}

  // A copy if there can be one, so that the message can still be passed on.
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
  // What they were called when they lived.
  std::vector<std::pair<ActorRef, std::string>> watched_;
};

// A probe that says which messages it is for: its reference can be given where such a one is wanted.
template <class... Ms>
class TypedProbe : public TestProbe {
 public:
  explicit TypedProbe(TestProbe probe) : TestProbe(std::move(probe)) {}

  TypedRef<Ms...> ref() const { return TypedRef<Ms...>::Unchecked(TestProbe::ref()); }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TESTKIT_TEST_PROBE_H_
