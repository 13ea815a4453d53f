#include "fraktor/actor/serialization/codec_registry.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec_context.h"
#include "fraktor/actor/serialization/message_codec.h"
#include "fraktor/actor/serialization/serialization_error.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

bool IsManifest(std::string_view text) {
  if (text.empty() || text.size() > kMaxManifestBytes) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f' && c != '"' && c != '\\'; });
}

absl::Status InvalidSetup(std::string_view manifest, std::string_view text) {
  return SerializationError(SerializationErrorKind::kInvalidSetup, manifest, text);
}

}  // namespace

const CodecRegistry& CodecRegistry::BuiltIn() {
  // Never destroyed: other static objects may use it while the program ends.
  static const auto* const kRegistry = new std::shared_ptr<const CodecRegistry>(CodecSetup().Build().value());
  return **kRegistry;
}

absl::StatusOr<const MessageCodec*> CodecRegistry::EncodeUntyped(const MessageType* type, const void* message,
                                                                 std::string& out, const CodecContext& context) const {
  const MessageCodec* const codec = FindType(type);
  if (codec == nullptr) return NotRegistered(type);
  FRAKTOR_RETURN_IF_ERROR(codec->Encode(message, out, context));
  return codec;
}

absl::StatusOr<EnvelopePtr> CodecRegistry::Decode(const EncodedMessage& message, ActorRef sender,
                                                  const CodecContext& context) const {
  const MessageCodec* const codec = FindManifest(message.manifest);
  if (codec == nullptr) return UnknownManifest(message.manifest);
  return codec->Decode(message.version, message.bytes, sender, context);
}

absl::StatusOr<const MessageCodec*> CodecRegistry::Require(std::string_view manifest, const MessageType* type) const {
  const MessageCodec* const codec = FindManifest(manifest);
  if (codec == nullptr) return UnknownManifest(manifest);
  if (codec->type() == type) return codec;
  return SerializationError(SerializationErrorKind::kWrongType, manifest,
                            absl::StrCat("the manifest \"", ToAbsl(manifest), "\" stands for ",
                                         ToAbsl(codec->type()->name()), ", and not for ", ToAbsl(type->name())));
}

const MessageCodec* CodecRegistry::FindType(const MessageType* type) const {
  const auto found = by_type_.find(type);
  return found == by_type_.end() ? nullptr : found->second;
}

const MessageCodec* CodecRegistry::FindManifest(std::string_view manifest) const {
  const auto found = by_manifest_.find(ToAbsl(manifest));
  return found == by_manifest_.end() ? nullptr : found->second;
}

absl::Status CodecRegistry::NotRegistered(const MessageType* type) {
  return SerializationError(
      SerializationErrorKind::kNotRegistered, {},
      absl::StrCat("no codec is registered for messages of type ", ToAbsl(type->name()),
                   ": add it to the CodecSetup of the system's options (ActorSystemOptions::codecs)"));
}

absl::Status CodecRegistry::UnknownManifest(std::string_view manifest) {
  return SerializationError(
      SerializationErrorKind::kUnknownManifest, manifest,
      absl::StrCat("no codec is registered under the manifest ", QuotedForText(manifest),
                   ": add its type, or an alias of the type that has replaced it, to the CodecSetup of the system's "
                   "options (ActorSystemOptions::codecs)"));
}

std::vector<std::string_view> CodecRegistry::Manifests() const {
  std::vector<std::string_view> manifests;
  manifests.reserve(codecs_.size());
  for (const auto& codec : codecs_) manifests.push_back(codec->manifest());
  std::sort(manifests.begin(), manifests.end());
  return manifests;
}

absl::Status CodecRegistry::Add(std::shared_ptr<const MessageCodec> codec) {
  const auto [known, is_new] = by_type_.try_emplace(codec->type(), codec.get());
  if (!is_new) {
    return InvalidSetup(codec->manifest(),
                        absl::StrCat("messages of type ", ToAbsl(codec->type()->name()), " were added twice, as \"",
                                     ToAbsl(known->second->manifest()), "\" and as \"", ToAbsl(codec->manifest()),
                                     "\": add them once, and other names for reading as aliases"));
  }
  FRAKTOR_RETURN_IF_ERROR(AddName(std::string(codec->manifest()), codec.get()));
  codecs_.push_back(std::move(codec));
  return absl::OkStatus();
}

absl::Status CodecRegistry::AddName(std::string manifest, const MessageCodec* codec) {
  if (!IsManifest(manifest)) {
    return InvalidSetup(manifest,
                        absl::StrCat("messages of type ", ToAbsl(codec->type()->name()), " cannot have the manifest ",
                                     QuotedForText(manifest), ": a manifest has 1 to ", kMaxManifestBytes,
                                     " printable ASCII characters, and no space, quote or backslash"));
  }
  const auto [known, is_new] = by_manifest_.try_emplace(manifest, codec);
  if (is_new) return absl::OkStatus();
  return InvalidSetup(manifest, absl::StrCat("the manifest \"", manifest, "\" was given to two types, ",
                                             ToAbsl(known->second->type()->name()), " and ",
                                             ToAbsl(codec->type()->name()), ": choose another for one of them"));
}

CodecSetup& CodecSetup::Add(const CodecSetup& other) {
  // Uses an index, because `other` may be this setup.
  const size_t codecs = other.codecs_.size();
  for (size_t i = 0; i < codecs; ++i) codecs_.push_back(other.codecs_[i]);
  const size_t aliases = other.aliases_.size();
  for (size_t i = 0; i < aliases; ++i) aliases_.push_back(other.aliases_[i]);
  return *this;
}

absl::StatusOr<std::shared_ptr<const CodecRegistry>> CodecSetup::Build() const {
  std::shared_ptr<CodecRegistry> registry(new CodecRegistry);
  CodecSetup built_in;
  built_in.Add<bool, int32_t, uint32_t, int64_t, uint64_t, float, double, std::string>();
  for (const auto& codec : built_in.codecs_) FRAKTOR_RETURN_IF_ERROR(registry->Add(codec));
  for (const auto& codec : codecs_) FRAKTOR_RETURN_IF_ERROR(registry->Add(codec));
  for (const Alias& alias : aliases_) {
    const MessageCodec* const codec = registry->FindType(alias.type);
    if (codec == nullptr) {
      return InvalidSetup(alias.manifest,
                          absl::StrCat("\"", alias.manifest, "\" is an alias of ", ToAbsl(alias.type->name()),
                                       ", which was not added: add it too"));
    }
    FRAKTOR_RETURN_IF_ERROR(registry->AddName(alias.manifest, codec));
  }
  return std::shared_ptr<const CodecRegistry>(std::move(registry));
}

}  // namespace fraktor::inline v0
