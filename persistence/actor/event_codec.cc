#include "fraktor/persistence/actor/event_codec.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/serialization/codec_context.h"
#include "fraktor/actor/serialization/message_codec.h"
#include "fraktor/actor/serialization/serialization_error.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

// How large an event or a state may be is the store's to say.
constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

// Of what could not be decoded.
JournalErrorKind KindOf(const absl::Status& status) {
  const auto kind = ErrorKindOf<SerializationErrorKind>(status);
  return kind == SerializationErrorKind::kUnknownManifest ? JournalErrorKind::kUnknownManifest
         : kind == SerializationErrorKind::kNewerVersion  ? JournalErrorKind::kNewerSchema
                                                          : JournalErrorKind::kCorrupt;
}

// The same, for whoever has to mend it. Records have checksums, so damaged ones do not come here.
std::string TextOf(const absl::Status& status) {
  if (ErrorKindOf<SerializationErrorKind>(status) != SerializationErrorKind::kCorrupt)
    return std::string(status.message());
  return absl::StrCat(status.message(),
                      ". The bytes are as they were written, so the codec has changed: it wants other fields, or more, "
                      "than were written. If a field was added, raise kVersion of the codec "
                      "(fraktor/actor/serialization/codec.h)");
}

}  // namespace

absl::Status RegistryEventCodec::Encode(const Envelope& event, PersistentRepr& repr) const {
  PathRefs refs(system_);
  FRAKTOR_ASSIGN_OR_RETURN(const MessageCodec* const codec,
                           registry_.Encode(event, repr.payload, {.refs = &refs, .max_bytes = kNoLimit}));
  repr.manifest.assign(codec->manifest());
  repr.manifest_version = codec->version();
  return absl::OkStatus();
}

absl::Status RegistryEventCodec::Decode(const StoredEvent& stored, EventSink sink) const {
  PathRefs refs(system_);
  absl::StatusOr<EnvelopePtr> event =
      registry_.Decode({.manifest = stored.manifest, .version = stored.manifest_version, .bytes = stored.payload}, {},
                       {.refs = &refs, .max_bytes = kNoLimit});
  if (!event.ok()) {
    return EventError(event.status().code(), KindOf(event.status()), stored.persistence_id, stored.sequence_nr,
                      TextOf(event.status()));
  }
  return sink(*std::move(event));
}

absl::Status RegistryEventCodec::EncodeState(const Envelope& state, Snapshot& snapshot) const {
  PathRefs refs(system_);
  FRAKTOR_ASSIGN_OR_RETURN(const MessageCodec* const codec,
                           registry_.Encode(state, snapshot.payload, {.refs = &refs, .max_bytes = kNoLimit}));
  snapshot.manifest.assign(codec->manifest());
  snapshot.manifest_version = codec->version();
  return absl::OkStatus();
}

absl::StatusOr<EnvelopePtr> RegistryEventCodec::DecodeState(const Snapshot& snapshot) const {
  PathRefs refs(system_);
  absl::StatusOr<EnvelopePtr> state =
      registry_.Decode({.manifest = snapshot.manifest, .version = snapshot.manifest_version, .bytes = snapshot.payload},
                       {}, {.refs = &refs, .max_bytes = kNoLimit});
  if (!state.ok()) {
    return MakeError(state.status().code(), KindOf(state.status()),
                     absl::StrCat("snapshot ", snapshot.metadata.sequence_nr, " of \"",
                                  snapshot.metadata.persistence_id, "\": ", TextOf(state.status())),
                     {{"id", snapshot.metadata.persistence_id}, {"nr", snapshot.metadata.sequence_nr}});
  }
  return state;
}

}  // namespace fraktor::inline v0
