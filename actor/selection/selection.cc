#include "fraktor/actor/selection/selection.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/internal/actor_names.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/registry/internal/path_failure.h"
#include "fraktor/actor/selection/internal/actor_selection_resolver.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/internal/promise_sending.h"
#include "fraktor/actor/send/internal/remote_sending.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/system/internal/remote_provider.h"
#include "fraktor/actor/tree/internal/actor_tree.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

using actor_internal::ActorSelectionResolver;
using actor_internal::ActorWorker;
using actor_internal::AnswerPromise;
using actor_internal::FailRemoteAsk;
using actor_internal::MayLive;
using actor_internal::NodeCache;
using actor_internal::PathFailureReporter;
using actor_internal::ResolvedSelection;
using actor_internal::SharedSender;

namespace {

// A copy constructor that throws must not throw out of Tell.
absl::Status TryCopy(const Envelope& message, EnvelopePtr& copy) {
  try {
    copy = CopyEnvelope(NodeCache::OfThisThread(), message);
    return absl::OkStatus();
  } catch (...) {
    return Annotate(StatusFromException(CaptureException()), "it could not be copied for each recipient");
  }
}

// The maximum number of actors that one selection visits. A text of a few bytes could otherwise
// visit all actors, again and again.
constexpr size_t kMaxSteps = 1'000'000;

// Matches elements against live actors, level by level, so that it visits an actor once even if
// several ways lead to it.
class Walk {
 public:
  explicit Walk(ActorSystem& system) : system_(system) {}

  // Returns the actors at the end, each once. ResourceExhausted beyond kMaxSteps.
  absl::StatusOr<std::vector<ActorRef>> Follow(ActorRef start, const std::vector<SelectionElement>& elements) {
    std::vector<ActorRef> here = {start};
    for (const SelectionElement& element : elements) {
      std::vector<ActorRef> next;
      absl::flat_hash_set<ActorRef> seen;
      const auto reach = [&](ActorRef actor) {
        if (seen.insert(actor).second) next.push_back(actor);
      };
      for (const ActorRef actor : here) Step(actor, element, reach);
      if (steps_ > kMaxSteps) {
        return absl::ResourceExhaustedError(
            absl::StrCat("the selection leads past more than ", kMaxSteps, " actors; use fewer wildcards"));
      }
      here = std::move(next);
    }
    return here;
  }

 private:
  template <class Reach>
  void Step(ActorRef actor, const SelectionElement& element, Reach reach) {
    ++steps_;
    switch (element.kind()) {
      case SelectionElement::Kind::kParent: {
        const ActorRef parent = system_.tree().ParentOf(actor);
        if (parent.IsCurrent()) reach(parent);
        break;
      }
      case SelectionElement::Kind::kName: {
        const ActorRef child = system_.names().FindChild(actor, element.text());
        if (child.IsNoOne() || !actor.IsCurrent()) break;
        if (element.uid().IsNone() || system_.names().UidOf(child) == element.uid()) reach(child);
        break;
      }
      case SelectionElement::Kind::kPattern:
        for (const ActorRef child : system_.tree().ChildrenOf(actor)) {
          ++steps_;
          if (actor.IsCurrent() && element.Matches(system_.names().NameOf(child))) reach(child);
        }
        break;
    }
  }

  ActorSystem& system_;
  size_t steps_ = 0;
};

absl::StatusOr<ActorPath> AnchorOf(const absl::StatusOr<ActorSelection>& parsed, std::string_view here) {
  FRAKTOR_RETURN_IF_ERROR(parsed.status());
  if (parsed->address().has_value()) return *parsed->address();
  FRAKTOR_ASSIGN_OR_RETURN(ActorPath path, ActorPathParser::Parse(here));
  while (parsed->start() == ActorSelection::Start::kRoot && !path.IsRoot()) path = path.Parent();
  return path;
}

}  // namespace

Selection::Selection(ActorSystem& system, std::string_view here, std::string_view text)
    : system_(system), text_(text), parsed_(ActorSelection::Parse(text)), anchor_(AnchorOf(parsed_, here)) {}

Selection Select(ActorSystem& system, std::string_view text) {
  return Selection(system, system.names().TextOf(system.root_guardian()), text);
}

Selection Select(ActorContext& context, std::string_view text) {
  ActorSystem& system = context.system();
  return Selection(system, system.names().CanonicalTextOf(context.self()), text);
}

ActorRef Selection::SenderNow() {
  const ActorWorker* const worker = ActorWorker::Current();
  return worker == nullptr ? ActorRef() : worker->turn_state.self();
}

std::string Selection::ToString() const {
  return anchor_.ok() ? parsed_->ToString(*anchor_) : absl::StrCat("ActorSelection[", QuotedForText(text_), "]");
}

std::string Selection::ToWireText() const { return anchor_.ok() ? parsed_->ToWireText(*anchor_) : text_; }

Selection::Receivers Selection::Look() const {
  Receivers receivers;
  if (anchor_.ok() && system_.IsElsewhere(*anchor_)) {
    const absl::StatusOr<ActorRef> there = system_.remote_provider()->SelectionAt(*anchor_, parsed_->ElementsText());
    if (there.ok()) {
      receivers.refs.push_back(*there);
    } else {
      receivers.missing = there.status();
      receivers.meant = ToWireText();
    }
    return receivers;
  }
  if (!anchor_.ok()) {
    receivers.missing = anchor_.status();
    receivers.meant = text_;
    return receivers;
  }
  const absl::StatusOr<ResolvedSelection> resolved = ActorSelectionResolver::ResolvePrefix(*anchor_, *parsed_);
  if (!resolved.ok()) {
    receivers.missing = resolved.status();
    receivers.meant = ToWireText();
    return receivers;
  }
  const ActorRef start = system_.names().Find(resolved->prefix);
  if (!start.IsNoOne()) {
    absl::StatusOr<std::vector<ActorRef>> found = Walk(system_).Follow(start, resolved->rest);
    if (!found.ok()) {
      receivers.missing = found.status();
      receivers.meant = ToWireText();
      return receivers;
    }
    receivers.refs = *std::move(found);
    if (!receivers.refs.empty()) return receivers;
  }
  if (resolved->rest.empty()) {
    receivers.missing = system_.names().WhyMissing(resolved->prefix);
    receivers.meant = resolved->prefix.ToCanonical();
  } else {
    receivers.meant = ToWireText();
    receivers.missing = MakeError(absl::StatusCode::kNotFound, PathResolutionErrorKind::kPidUnknown,
                                  absl::StrCat("no live actor matches ", receivers.meant));
  }
  return receivers;
}

std::vector<ActorRef> Selection::Find() const {
  if (anchor_.ok() && system_.IsElsewhere(*anchor_)) return {};
  return Look().refs;
}

void Selection::Lose(EnvelopePtr message, const Receivers& receivers) const {
  const ActorRef sender = message->sender();
  if (const auto* const identify = message->TryAs<Identify>()) {
    if (!sender.IsNoOne()) fraktor::Tell(sender, ActorIdentity{.id = identify->id, .ref = ActorRef()});
    return;
  }
  const Instant now = system_.toolbox().Now();
  const bool has_recipients = !receivers.refs.empty();
  const std::string meant = has_recipients ? ToWireText() : receivers.meant;
  const std::string from = sender.IsNoOne() ? std::string() : system_.PathOf(sender);
  AllDeadLetters letter{
      .reason = DeadLetterReason::kNoRecipient,
      .sender = from,
      .recipient = meant,
      .message = {.type_name = message->type()->name(), .type = message->type(), .message = message->payload()}};
  if (has_recipients) {
    letter.reason = DeadLetterReason::kNotCopyable;
    system_.dead_letters().Publish(DeadLetter{letter}, now);
  } else if (message->type()->is_suppressed()) {
    system_.dead_letters().Publish(SuppressedDeadLetter{letter}, now);
  } else {
    PathFailureReporter(system_.events(), system_.dead_letters()).Report(receivers.missing, letter, now).IgnoreError();
  }
  // The asker gets its error now and does not wait for the timeout. If other recipients have the
  // ask, the asker waits for them.
  const auto why = [&] {
    return MakeError(absl::StatusCode::kDeadlineExceeded, ActorErrorKind::kAskTimeout,
                     absl::StrCat(ToAbsl(message->type()->name()), " gets no reply: ", receivers.missing.message()));
  };
  if (sender.IsPromise()) {
    if ((sender.word() & ActorRef::kShared) != 0) return;
    AnswerPromise(sender, MakeEnvelope<ErrorReply>(ActorRef(), why()).release());
  } else {
    FailRemoteAsk(sender, why);
  }
}

void Selection::Deliver(EnvelopePtr message) const {
  Receivers receivers = Look();
  const std::vector<ActorRef>& to = receivers.refs;
  if (to.empty()) return Lose(std::move(message), receivers);
  if (to.size() > 1 && !message->type()->is_copyable()) {
    receivers.missing = absl::FailedPreconditionError(
        absl::StrCat("it has no copy constructor, and ", to.size(), " actors would get it"));
    return Lose(std::move(message), receivers);
  }
  const ActorRef sender = message->sender();
  if (to.size() > 1) message->set_sender(SharedSender(sender));
  for (size_t i = 0; i < to.size(); ++i) {
    EnvelopePtr one;
    if (i + 1 == to.size()) {
      one = std::move(message);
    } else if (absl::Status copied = TryCopy(*message, one); !copied.ok()) {
      // If nobody has received the ask yet, its loss fails it.
      if (i == 0) message->set_sender(sender);
      receivers.missing = std::move(copied);
      return Lose(std::move(message), receivers);
    }
    const auto* const identify = to[i].IsPromise() ? one->TryAs<Identify>() : nullptr;
    if (identify != nullptr) {
      // A promise cannot reply to Identify; it would take Identify for its reply.
      if (!sender.IsNoOne()) fraktor::Tell(sender, ActorIdentity{.id = identify->id, .ref = to[i]});
    } else if (one->type()->is_intercepted()) {
      SendIntercepted(to[i], std::move(one));
    } else if (ActorWorker* const worker = ActorWorker::Current()) {
      worker->Send(to[i], one.release());
    } else {
      SendForeign(to[i], std::move(one)).IgnoreError();
    }
  }
}

Future<ActorRef> Selection::ResolveOne(absl::Duration timeout) const {
  const Receivers receivers = Look();
  if (receivers.refs.empty()) return MakeReadyFuture<ActorRef>(receivers.missing);
  const ActorRef first = receivers.refs.front();
  if (first.IsPromise()) return MakeReadyFuture<ActorRef>(first);
  const std::string path = first.IsRemote() ? ToWireText() : system_.PathOf(first);
  return system_.Ask<ActorIdentity>(first, Identify{}, timeout)
      .MapResult([first, path](absl::StatusOr<ActorIdentity> identity) -> absl::StatusOr<ActorRef> {
        if (identity.ok() && !identity->ref.IsNoOne()) return identity->ref;
        if (identity.ok()) {
          return MakeError(absl::StatusCode::kNotFound, PathResolutionErrorKind::kPidUnknown,
                           absl::StrCat("no live actor matches ", path));
        }
        if (MayLive(first)) return identity.status();
        return MakeError(absl::StatusCode::kNotFound, PathResolutionErrorKind::kPidUnknown,
                         absl::StrCat(path, " ended before it replied"));
      });
}

}  // namespace fraktor::inline v0
