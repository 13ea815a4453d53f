#include "fraktor/persistence/durable/state_codecs.h"

#include <cstdint>
#include <string_view>

#include "fraktor/actor/serialization/codec.h"
#include "fraktor/persistence/durable/state_messages.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/state/state_storage.h"

namespace fraktor::inline v0 {

template <>
struct Codec<WriterId> : FieldCodec<WriterId, &WriterId::high, &WriterId::low> {
  static constexpr std::string_view kManifest = "fraktor.persistence.writer_id";
};
template <>
struct Codec<DurableState>
    : FieldCodec<DurableState, &DurableState::persistence_id, &DurableState::revision, &DurableState::manifest,
                 &DurableState::manifest_version, &DurableState::payload, &DurableState::writer> {
  static constexpr std::string_view kManifest = "fraktor.persistence.durable_state";
  static constexpr uint32_t kVersion = 1;  // 0 had no writer
};
template <>
struct Codec<StoredState> : FieldCodec<StoredState, &StoredState::exists, &StoredState::state> {
  static constexpr std::string_view kManifest = "fraktor.persistence.stored_state";
};
template <>
struct Codec<LoadState> : FieldCodec<LoadState, &LoadState::persistence_id, &LoadState::client, &LoadState::instance_id,
                                     &LoadState::token> {
  static constexpr std::string_view kManifest = "fraktor.persistence.load_state";
  static constexpr uint32_t kVersion = 1;  // 0 had no token: it is read as kNoEpoch
};
template <>
struct Codec<ChangeState> : FieldCodec<ChangeState, &ChangeState::change, &ChangeState::client,
                                       &ChangeState::instance_id, &ChangeState::token> {
  static constexpr std::string_view kManifest = "fraktor.persistence.change_state";
  static constexpr uint32_t kVersion = 1;  // 0 had no token: it is read as kNoEpoch
};
template <>
struct Codec<StateLoaded>
    : FieldCodec<StateLoaded, &StateLoaded::cause, &StateLoaded::stored, &StateLoaded::instance_id> {
  static constexpr std::string_view kManifest = "fraktor.persistence.state_loaded";
};
template <>
struct Codec<StateChanged>
    : FieldCodec<StateChanged, &StateChanged::cause, &StateChanged::revision, &StateChanged::instance_id> {
  static constexpr std::string_view kManifest = "fraktor.persistence.state_changed";
};

const CodecSetup& StateCodecs() {
  static const CodecSetup& codecs = (*new CodecSetup).Add<LoadState, ChangeState, StateLoaded, StateChanged>();
  return codecs;
}

}  // namespace fraktor::inline v0
