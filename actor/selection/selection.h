// Selections: actors by their paths, with `..` and wildcards, as they live when something is sent.
//
//   Select(system, "/user/workers/*").Tell(Reload{});              // to all children of workers
//   Select(context, "../printer").Tell(Print{"hello"});            // from where the actor is
//   auto finding = Select(context, "/user/till").ResolveOne(absl::Seconds(1));
//   absl::StatusOr<ActorRef> till = co_await finding;
//
// The text is that of path/actor_selection.h: `/user/a` from the root, `a/b` from the actor that selects (from a system:
// from the root), `pekko://shop/user/a` with an address; `*` stands for any run of characters, `?` for one. `..` never
// leads above the guardian.
//
// Each message looks for its receivers anew, on the sender's thread, and goes straight to their mailboxes; an actor gets
// it once. It is copied, but for the last of them. If there is none, it is a dead letter as for an actor that has ended:
// with the path that was meant, the message itself, and who sent it; besides, a PathFailure is published. An Identify is
// answered instead: by all receivers, or by one ActorIdentity of no one. When a wildcard has matched several actors, those
// among them at which the rest of the path leads nowhere are passed over in silence.
//
// An ask has a path too, that of its reply promise (ActorSystem::PathOf of a sender): a message by
// that path is its answer. Wildcards do not lead to asks.
//
// A text with the address of another system (pekko://shop@10.0.0.7:2552/user/a) is sent there as it is, and what is said
// above happens there, if the system has a RemoteProvider.
//
// Limit: a selection leads past a million actors at most; one that leads past more reaches nobody, and says so.
//
// Cost: looking for receivers takes the lock of the names. Who sends often resolves once, and keeps the ActorRef.
//
// Thread safety: an immutable value; any thread may use it while the system lives.
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

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_selection.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/turn/actor_context.h"
#include "fraktor/utils/future/future.h"

namespace fraktor::inline v0 {

class Selection {
 public:
  // The sender is the actor in whose turn this is called, or no one.
  template <class M>
  void Tell(M&& message) const {
    TellAs(SenderNow(), std::forward<M>(message));
  }
  // With another sender, which gets the answers.
  template <class M>
  void TellAs(ActorRef sender, M&& message) const {
    Deliver(MakeEnvelope<std::decay_t<M>>(sender, std::forward<M>(message)));
  }

  // A message that has been made, as if its sender had sent it.
  void Send(EnvelopePtr message) const { Deliver(std::move(message)); }

  // Those that live now, parents before their children. Empty if there are none, or the text is malformed, or it is
  // another system's, whose actors cannot be counted from here.
  std::vector<ActorRef> Find() const;

  // The first of them, when it has answered an Identify. Errors: what is wrong with the text; kPidUnknown if there is
  // none, or it ends before it has answered; DeadlineExceeded if it has not answered in time.
  Future<ActorRef> ResolveOne(absl::Duration timeout) const;

  // What is wrong with the text; OK if nothing is.
  absl::Status status() const { return parsed_.status(); }

  // For people: "ActorSelection[Anchor(pekko://S/user/c2#1), Path(/../*/hello)]".
  std::string ToString() const;
  // As it goes over the wire: "pekko://S/user/c2/../*/hello".
  std::string ToWireText() const;

  // Equal if they start at the same actor and have the same elements.
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

  // Whom a message goes to; or why to nobody, and the path that was meant.
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
  // Where it starts: a canonical path.
  absl::StatusOr<ActorPath> anchor_;
};

// From the root.
Selection Select(ActorSystem& system, std::string_view text);
// From the actor, in its turn.
Selection Select(ActorContext& context, std::string_view text);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SELECTION_SELECTION_H_
