#include "fraktor/persistence/durable/durable_actor.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/stop_because.h"
#include "fraktor/actor/dispatch/internal/message_invoker.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/pattern/actor_log.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/serialization/codec_context.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/serialization/message_codec.h"
#include "fraktor/actor/serialization/system_codecs.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/fencing_token.h"
#include "fraktor/actor/timer/timers.h"
#include "fraktor/persistence/durable/state_extension.h"
#include "fraktor/persistence/durable/state_messages.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/writer_rules.h"
#include "fraktor/persistence/state/state_storage.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

using actor_internal::MessageInvoker;

namespace {

constexpr std::string_view kTimer = "fraktor.durable";
// How large a state may be is the store's to say.
constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

// Whether only this change is refused.
bool IsRejection(const absl::Status& status) {
  const auto kind = ErrorKindOf<JournalErrorKind>(status);
  return kind == JournalErrorKind::kTooLarge || kind == JournalErrorKind::kInvalid;
}

// Past any limit of the mailbox: an answer of the store must not be dropped.
ActorRef ClientOf(const ActorContext& context) { return context.self().Plain(); }

}  // namespace

absl::Status DurableActorOptions::Validate() const {
  if (stash_capacity == 0) return absl::InvalidArgumentError("DurableActorOptions::stash_capacity must be above 0");
  if (store_timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("DurableActorOptions::store_timeout is ",
                                                   absl::FormatDuration(store_timeout), "; it must be above 0"));
  }
  return absl::OkStatus();
}

DurableStateActor::DurableStateActor() : fencing_token_(CurrentFencingToken()) {}

absl::Status DurableStateActor::OnRecovered(ActorContext&) { return absl::OkStatus(); }

absl::Status DurableStateActor::PreStart(ActorContext& context) {
  persistence_id_ = PersistenceId();
  if (absl::StripAsciiWhitespace(persistence_id_).empty()) {
    return absl::InvalidArgumentError(absl::StrCat(context.Path(), " has the persistence id \"", persistence_id_,
                                                   "\": PersistenceId() must say a name that is not blank"));
  }
  FRAKTOR_RETURN_IF_ERROR(options().Validate());
  auto& extension = context.system().Extension<StateExtension>();
  FRAKTOR_ASSIGN_OR_RETURN(store_, extension.Store(StatePluginId()));
  max_message_bytes_ = extension.MessageBytes(StatePluginId());
  instance_id_ = extension.NextInstance();
  writer_ = extension.WriterOf(instance_id_);
  token_ = FencingToken();
  context.Tell(store_, LoadState{persistence_id_, ClientOf(context), instance_id_, token_});
  Expect(context);
  return absl::OkStatus();
}

absl::Status DurableStateActor::PreRestart(ActorContext& context, const absl::Status& reason, Envelope* message) {
  stash_.GiveBack(context);
  return ActorInstance::PreRestart(context, reason, message);
}

void DurableStateActor::PostStop(ActorContext& context) { stash_.GiveBack(context); }

absl::Status DurableStateActor::Receive(ActorContext& context, Envelope& message) {
  stash_.GoOn();
  const bool has_waited = stash_.TookBack(message);
  absl::Status status = Handle(context, message, has_waited);
  if (!is_busy_) stash_.ReturnNext(context);
  return status;
}

absl::Status DurableStateActor::Handle(ActorContext& context, Envelope& message, bool has_waited) {
  if (auto* const loaded = message.TryAs<StateLoaded>()) {
    return loaded->instance_id == instance_id_ && !is_loaded_ ? OnLoaded(context, *loaded) : absl::OkStatus();
  }
  if (message.Is<StateChanged>()) return OnChanged(context, message);
  if (const auto* const timeout = message.TryAs<StoreTimeout>()) {
    if (timeout->number != waits_ || !is_busy_) return absl::OkStatus();
    return GiveUp(context, absl::DeadlineExceededError(absl::StrCat(
                               "the store has not answered for ", absl::FormatDuration(options().store_timeout),
                               ": look at it, or raise DurableActorOptions::store_timeout")));
  }
  const bool is_end = message.Is<PoisonPill>();
  if (is_end && (!is_busy_ || stash_.waiting() >= options().stash_capacity)) {
    context.Stop();
    return absl::OkStatus();
  }
  if (!is_busy_) return OnCommand(context, message);
  if (!has_waited) return Wait(context, message);
  stash_.WaitAgain(context);
  return absl::OkStatus();
}

absl::Status DurableStateActor::OnLoaded(ActorContext& context, StateLoaded& loaded) {
  NoLongerExpect(context);
  if (!loaded.cause.ok()) return GiveUp(context, loaded.cause);
  const DurableState& stored = loaded.stored.state;
  revision_ = stored.revision;
  if (loaded.stored.exists) {
    PathRefs refs(context.system());
    absl::StatusOr<EnvelopePtr> state =
        CodecsOf(context.system())
            .Decode({.manifest = stored.manifest, .version = stored.manifest_version, .bytes = stored.payload}, {},
                    {.refs = &refs, .max_bytes = kNoLimit});
    absl::Status taken = state.ok() ? TakeState(**state) : state.status();
    if (!taken.ok()) return GiveUp(context, taken);
  }
  is_loaded_ = true;
  is_busy_ = false;
  return OnRecovered(context);
}

void DurableStateActor::Change(ActorContext& context, EnvelopePtr state,
                               absl::AnyInvocable<absl::Status(ActorContext&)> then) {
  ChangeState change{
      .change = {.exists = state != nullptr,
                 .state = {.persistence_id = persistence_id_, .revision = revision_ + 1, .writer = writer_}},
      .client = ClientOf(context),
      .instance_id = instance_id_,
      .token = token_};
  if (state != nullptr) {
    PathRefs refs(context.system());
    DurableState& stored = change.change.state;
    const absl::StatusOr<const MessageCodec*> codec =
        CodecsOf(context.system()).Encode(*state, stored.payload, {.refs = &refs, .max_bytes = kNoLimit});
    if (!codec.ok()) {
      Refuse(context, context.sender(), codec.status());
      return;
    }
    stored.manifest = std::string((*codec)->manifest());
    stored.manifest_version = (*codec)->version();
  }
  const size_t bytes = change.change.state.payload.size() + persistence_id_.size();
  if (store_.IsRemote() && bytes > max_message_bytes_) {
    Refuse(context, context.sender(),
           IdError(absl::StatusCode::kInvalidArgument, JournalErrorKind::kTooLarge, persistence_id_,
                   absl::StrCat("its state takes ", bytes, " bytes; ", max_message_bytes_,
                                " may be sent to the store, which is on another node: raise "
                                "StateStoreSetup::max_message_bytes and the limits of the transport")));
    return;
  }
  is_busy_ = true;
  sender_ = context.sender();
  then_ = std::move(then);
  context.Tell(store_, std::move(change));
  Expect(context);
}

void DurableStateActor::Refuse(ActorContext& context, ActorRef sender, const absl::Status& cause) {
  Log(context, LogLevel::kError,
      absl::StrCat("a change of \"", persistence_id_, "\" is not stored: ", cause.message()));
  if (!sender.IsNoOne()) context.Reply(ErrorReply{cause});
}

absl::Status DurableStateActor::OnChanged(ActorContext& context, Envelope& message) {
  const auto& changed = message.As<StateChanged>();
  if (changed.instance_id != instance_id_ || !is_loaded_ || !is_busy_ || changed.revision != revision_ + 1) {
    return absl::OkStatus();
  }
  NoLongerExpect(context);
  const absl::Status cause = changed.cause;
  if (!cause.ok() && !IsRejection(cause)) return GiveUp(context, cause);
  is_busy_ = false;
  // `then` answers the sender of the command.
  message.set_sender(sender_);
  absl::AnyInvocable<absl::Status(ActorContext&)> then = std::exchange(then_, nullptr);
  if (cause.ok()) {
    ++revision_;
    absl::Status followed = MessageInvoker::Call(
        "it", [&] { return then(context); }, &ActorContext::worker().turn_state.cause);
    if (followed.ok()) return followed;
    return Annotate(std::move(followed),
                    absl::StrCat("what follows revision ", revision_, " of \"", persistence_id_,
                                 "\" (ThenRun, ThenReply) fails; that is stored, so the command must not be sent "
                                 "again"));
  }
  Refuse(context, sender_, cause);
  return absl::OkStatus();
}

absl::Status DurableStateActor::Wait(ActorContext& context, const Envelope& message) {
  if (stash_.waiting() >= options().stash_capacity) {
    stash_.NoRoom();
    return absl::ResourceExhaustedError(
        absl::StrCat(context.Path(), " has no room for ", ToAbsl(message.type()->name()), ": ", stash_.waiting(),
                     " commands wait for the store; send slower, or raise DurableActorOptions::stash_capacity"));
  }
  stash_.Wait(context);
  return absl::OkStatus();
}

absl::Status DurableStateActor::StashCommand(ActorContext& context) {
  if (stash_.put_aside() >= options().stash_capacity) {
    return absl::ResourceExhaustedError(
        absl::StrCat(context.Path(), " has put ", stash_.put_aside(),
                     " commands aside: unstash earlier, or raise DurableActorOptions::stash_capacity"));
  }
  stash_.PutAside(context);
  return absl::OkStatus();
}

absl::Status DurableStateActor::GiveUp(ActorContext& context, const absl::Status& cause) {
  const std::string what =
      absl::StrCat("\"", persistence_id_, "\" ", is_loaded_ ? "could not be stored" : "could not be loaded");
  Log(context, LogLevel::kError, absl::StrCat(what, "; the actor stops: ", cause.message()));
  // The one whose change it was, and those who wait behind it.
  if (is_loaded_ && is_busy_ && !sender_.IsNoOne()) context.Tell(sender_, ErrorReply{cause});
  const absl::Status why = Annotate(cause, what);
  stash_.Refuse(context, why);
  StopBecause(context, why);
  return absl::OkStatus();
}

void DurableStateActor::Expect(ActorContext& context) {
  const absl::Status started = Timers(context).StartSingle(kTimer, StoreTimeout{++waits_}, options().store_timeout);
  if (!started.ok()) {
    Log(context, LogLevel::kWarning,
        absl::StrCat("nobody looks whether the store answers, since there is no timer: ", started.message()));
  }
}

void DurableStateActor::NoLongerExpect(ActorContext& context) { Timers(context).Cancel(kTimer); }

}  // namespace fraktor::inline v0
