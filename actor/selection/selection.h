// Selection: sends to live actors by a path with `..` and wildcards.
//
//   Select(system, "/user/workers/*").Tell(Reload{});              // to all children of workers
//   Select(context, "../printer").Tell(Print{"hello"});            // relative to the actor of the context
//   auto finding = Select(context, "/user/till").ResolveOne(absl::Seconds(1));
//   absl::StatusOr<ActorRef> till = co_await finding;
//
// selection/actor_selection.h defines the text: `/user/a` starts at the root, `a/b` starts at the
// actor that selects (at the root for a system), and `pekko://shop/user/a` has an address. `*`
// matches any run of characters, `?` matches one. `..` never leads above the guardian.
//
// Each message looks up its recipients anew, on the sender's thread, and goes straight to their
// mailboxes. An actor receives it once. Each recipient except the last receives a copy. If there is
// no recipient, the message is a dead letter as for an actor that has ended, with the path, the
// message and its sender, and a PathFailure is published. Identify always gets a reply: from all
// recipients, or one ActorIdentity of no one. If a wildcard matches several actors, those from
// which the rest of the path leads nowhere are skipped silently.
//
// An ask has a path too: the path of its reply promise (ActorSystem::PathOf of a sender). A message
// to that path is the reply. Wildcards do not match asks.
//
// A text with the address of another system (`pekko://shop@10.0.0.7:2552/user/a`) is sent there
// unchanged if this system has a RemoteProvider, and the other system looks up the recipients.
//
// Limit: a selection visits at most a million actors. One that would visit more reaches no actor,
// and fails with ResourceExhausted.
//
// Cost: the lookup takes the lock of the names. A sender that sends often should resolve once and
// keep the ActorRef.
//
// Thread safety: an immutable value. Any thread may use it while the system lives.
#ifndef FRAKTOR_ACTOR_SELECTION_SELECTION_H_
#define FRAKTOR_ACTOR_SELECTION_SELECTION_H_

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/selection/actor_selection.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/utils/future/future.h"

namespace fraktor::inline v0 {

class Selection {
 public:
  // Sends with the actor of the current turn as the sender. Outside of a turn the sender is no one.
  template <class M>
  void Tell(M&& message) const {
    TellAs(SenderNow(), std::forward<M>(message));
  }
  // Sends with another sender, which receives the replies.
  template <class M>
  void TellAs(ActorRef sender, M&& message) const {
    Deliver(MakeEnvelope<std::decay_t<M>>(sender, std::forward<M>(message)));
  }

  // Sends an existing envelope with the sender that it has.
  void Send(EnvelopePtr message) const { Deliver(std::move(message)); }

  // Returns the live actors that match now, parents before their children. Empty if there are none,
  // if the text is malformed, or if it names another system, whose actors are not visible here.
  std::vector<ActorRef> Find() const;

  // Resolves to the first match, after it has replied to an Identify. Errors: a malformed text;
  // kPidUnknown if there is no match or it ends before it replies; DeadlineExceeded if it does not
  // reply in time.
  Future<ActorRef> ResolveOne(absl::Duration timeout) const;

  // The error of a malformed text, or OK.
  absl::Status status() const { return parsed_.status(); }

  // The selection as people read it: "ActorSelection[Anchor(pekko://S/user/c2#1),
  // Path(/../*/hello)]".
  std::string ToString() const;
  // The selection as it goes over the wire: "pekko://S/user/c2/../*/hello".
  std::string ToWireText() const;

  // Two selections are equal if they start at the same actor and have the same elements.
  friend bool operator==(const Selection& a, const Selection& b) {
    return &a.system_ == &b.system_ && a.ToString() == b.ToString();
  }
  template <typename H>
  friend H AbslHashValue(H state, const Selection& selection) {
    return H::combine(std::move(state), selection.ToString());
  }

 private:
  friend Selection Select(ActorSystem& system, std::string_view text);
  friend Selection Select(ActorContext& context, std::string_view text);

  // The recipients. If there are none, `meant` is the path. `missing` says why not all recipients
  // get the message.
  struct Receivers {
    std::vector<ActorRef> refs = {};
    absl::Status missing = {};
    std::string meant = {};
  };

  Selection(ActorSystem& system, std::string_view here, std::string_view text);

  static ActorRef SenderNow();
  void Deliver(EnvelopePtr message) const;
  Receivers Look() const;
  void Lose(EnvelopePtr message, const Receivers& receivers) const;

  ActorSystem& system_;
  std::string text_;
  absl::StatusOr<ActorSelection> parsed_;
  // The canonical path at which the selection starts.
  absl::StatusOr<ActorPath> anchor_;
};

// Selects from the root.
Selection Select(ActorSystem& system, std::string_view text);
// Selects from the actor. Must be called in its turn.
Selection Select(ActorContext& context, std::string_view text);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SELECTION_SELECTION_H_
