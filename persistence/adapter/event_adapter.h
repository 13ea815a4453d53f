// EventAdapter: what stands between the events of an actor and those in the journal: another form for the store, tags,
// events of former times turned into those of today.
//
//   // What is stored instead, with tags:
//   auto writes = WriteAdapter<Deposited>([](const Deposited& event) {
//     return AdaptedEvent::Of(StoredDeposit{event.amount.cents()}).WithTags({"money"});
//   });
//   // What is read: an event, a std::optional, a std::vector of them, or EventSeq of several types.
//   auto reads = ReadAdapter<StoredDeposit>([](const StoredDeposit& stored) { return Deposited{Cents(stored.cents)}; });
//   // Only tags:
//   auto tags = TagEvents({"money"});
//
// EventAdapters (event_adapters.h) says which events they are for. The handlers of an actor and its replies see its own
// events, always; adapters work behind their back.
//
// What an adapter writes must follow from the event alone, byte by byte: an event may be adapted again when its write is
// sent again, and is then compared with what is stored. Protobuf messages with maps have no such bytes: keep the entries in
// a repeated field, in order.
//
// An adapter may throw, or return an error: an event that cannot be adapted for the journal is rejected, one that cannot
// be adapted back fails the recovery, with the adapter's own code.
//
// Thread safety: called by many actors at once; so an adapter has no state, or guards it.
#ifndef FRAKTOR_PERSISTENCE_ADAPTER_EVENT_ADAPTER_H_
#define FRAKTOR_PERSISTENCE_ADAPTER_EVENT_ADAPTER_H_

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/persistence/actor/event_codec.h"
#include "fraktor/persistence/journal/event_batch.h"

namespace fraktor::inline v0 {

// What an event becomes on its way to the journal.
struct AdaptedEvent {
  // Null: the event as it is.
  EnvelopePtr event = nullptr;
  std::vector<std::string> tags = {};
  // Instead of the manifest of its codec: an alias of its type (CodecSetup::AddAlias). Empty: that of its codec.
  std::string manifest = {};

  static AdaptedEvent Unchanged() { return {}; }
  template <class E>
  static AdaptedEvent Of(E event) {
    return {.event = MakeEnvelope<E>(ActorRef(), std::move(event))};
  }
  AdaptedEvent WithTags(std::vector<std::string> its_tags) && {
    tags = std::move(its_tags);
    return std::move(*this);
  }
  AdaptedEvent WithManifest(std::string its_manifest) && {
    manifest = std::move(its_manifest);
    return std::move(*this);
  }
};

class EventAdapter {
 public:
  using EventSink = EventCodec::EventSink;

  virtual ~EventAdapter() = default;

  // The usual one changes nothing.
  virtual absl::StatusOr<AdaptedEvent> ToJournal(const Envelope& event) const;

  // Gives the events that a stored one stands for to `sink`: none, one or several; returns what that returns, if it is an
  // error. `stored` says with which manifest, number and tags it was stored. The usual one passes it on.
  virtual absl::Status FromJournal(EnvelopePtr event, const StoredEvent& stored, EventSink sink) const;

  // Whether ToJournal changes nothing, ever: only such adapters can share the events of a type (event_adapters.h).
  virtual bool OnlyReads() const;
};

// Events of several types, for adapters that make more than one of one:
//
//   EventSeq events;
//   events.Add(Opened{}).Add(Deposited{10});
class EventSeq {
 public:
  template <class E>
  EventSeq& Add(E event) {
    events_.push_back(MakeEnvelope<E>(ActorRef(), std::move(event)));
    return *this;
  }
  std::vector<EnvelopePtr>& envelopes() { return events_; }

 private:
  std::vector<EnvelopePtr> events_;
};

namespace adapter_internal {

template <class T>
inline constexpr bool kIsStatusOr = false;
template <class T>
inline constexpr bool kIsStatusOr<absl::StatusOr<T>> = true;
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;

absl::Status PassAll(std::vector<EnvelopePtr> events, EventCodec::EventSink sink);

// Gives whatever an adapter function has returned to the sink.
template <class R>
absl::Status Pass(R result, EventCodec::EventSink sink) {
  if constexpr (kIsStatusOr<R>) {
    if (!result.ok()) return result.status();
    return Pass(*std::move(result), sink);
  } else if constexpr (std::is_same_v<R, EventSeq>) {
    return PassAll(std::move(result.envelopes()), sink);
  } else if constexpr (kIsOptional<R>) {
    return result.has_value() ? Pass(*std::move(result), sink) : absl::OkStatus();
  } else if constexpr (kIsVector<R>) {
    for (auto& event : result) {
      absl::Status status = Pass(std::move(event), sink);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  } else {
    return sink(MakeEnvelope<R>(ActorRef(), std::move(result)));
  }
}

template <class R>
absl::StatusOr<AdaptedEvent> ToAdapted(R result) {
  if constexpr (kIsStatusOr<R>) {
    if (!result.ok()) return result.status();
    return ToAdapted(*std::move(result));
  } else if constexpr (std::is_same_v<R, AdaptedEvent>) {
    return result;
  } else {
    return AdaptedEvent::Of(std::move(result));
  }
}

// Either function may be missing: std::nullptr_t.
template <class E, class Write, class S, class Read>
class FunctionAdapter final : public EventAdapter {
 public:
  FunctionAdapter(Write write, Read read) : write_(std::move(write)), read_(std::move(read)) {}

  absl::StatusOr<AdaptedEvent> ToJournal(const Envelope& event) const override {
    if constexpr (!std::is_same_v<Write, std::nullptr_t>) {
      if (const E* const typed = event.TryAs<E>()) return ToAdapted(write_(*typed));
    }
    return EventAdapter::ToJournal(event);
  }
  absl::Status FromJournal(EnvelopePtr event, const StoredEvent& stored, EventSink sink) const override {
    if constexpr (!std::is_same_v<Read, std::nullptr_t>) {
      if (const S* const typed = event->TryAs<S>()) {
        if constexpr (std::is_invocable_v<const Read&, const S&, const StoredEvent&>) {
          return Pass(read_(*typed, stored), sink);
        } else {
          return Pass(read_(*typed), sink);
        }
      }
    }
    return EventAdapter::FromJournal(std::move(event), stored, sink);
  }
  bool OnlyReads() const override { return std::is_same_v<Write, std::nullptr_t>; }

 private:
  const Write write_;
  const Read read_;
};

}  // namespace adapter_internal

// Writes events E as `write(const E&)` says: an event, an AdaptedEvent, or a StatusOr of one of these. What is read it
// passes on.
template <class E, class Write>
std::shared_ptr<const EventAdapter> WriteAdapter(Write write) {
  return std::make_shared<const adapter_internal::FunctionAdapter<E, Write, E, std::nullptr_t>>(std::move(write),
                                                                                                nullptr);
}

// Reads stored events S as `read(const S&)` or `read(const S&, const StoredEvent&)` says: an event, a std::optional or a
// std::vector of it, EventSeq, or a StatusOr of one of these. What is written it leaves alone.
template <class S, class Read>
std::shared_ptr<const EventAdapter> ReadAdapter(Read read) {
  return std::make_shared<const adapter_internal::FunctionAdapter<S, std::nullptr_t, S, Read>>(nullptr,
                                                                                               std::move(read));
}

// Both.
template <class E, class S, class Write, class Read>
std::shared_ptr<const EventAdapter> ReadWriteAdapter(Write write, Read read) {
  return std::make_shared<const adapter_internal::FunctionAdapter<E, Write, S, Read>>(std::move(write),
                                                                                      std::move(read));
}

// Leaves events as they are, and gives them tags.
std::shared_ptr<const EventAdapter> TagEvents(std::vector<std::string> tags);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ADAPTER_EVENT_ADAPTER_H_
