#include "fraktor/actor/serialization/message_codec.h"

#include <cxxabi.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec_context.h"
#include "fraktor/actor/serialization/decoder.h"
#include "fraktor/actor/serialization/encoder.h"
#include "fraktor/actor/serialization/serialization_error.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

// Adds the manifest to the text. Keeps the kind, if the status has one.
absl::Status Explained(const absl::Status& status, SerializationErrorKind otherwise, std::string_view manifest,
                       std::string_view doing) {
  const SerializationErrorKind kind = ErrorKindOf<SerializationErrorKind>(status).value_or(otherwise);
  return SerializationError(
      kind, manifest,
      absl::StrCat(ToAbsl(doing), " message \"", ToAbsl(manifest), "\": ", ToAbsl(ToStd(status.message()))));
}

// Runs `body` and turns exceptions into a status. Lets forced unwinding of the thread pass.
template <class Body>
absl::Status Caught(Body body) {
  try {
    return body();
  } catch (const std::exception& thrown) {
    return absl::InternalError(absl::StrCat("its codec threw: ", thrown.what()));
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return absl::InternalError("its codec threw something that is no std::exception");
  }
}

}  // namespace

absl::Status MessageCodec::Encode(const void* message, std::string& out, const CodecContext& context) const {
  const size_t start = out.size();
  absl::Status status = Caught([&]() -> absl::Status {
    Encoder encoder(out, context);
    EncodeTo(message, encoder);
    if (!encoder.ok()) return encoder.status();
    if (out.size() - start <= context.max_bytes) return absl::OkStatus();
    return SerializationError(SerializationErrorKind::kTooLarge, manifest_,
                              absl::StrCat("it takes ", out.size() - start, " bytes; ", context.max_bytes,
                                           " are allowed: split it, or raise the limit"));
  });
  if (status.ok()) return status;
  out.resize(start);
  return Explained(status, SerializationErrorKind::kCannotEncode, manifest_, "cannot write");
}

absl::StatusOr<EnvelopePtr> MessageCodec::Decode(uint32_t version, std::string_view bytes, ActorRef sender,
                                                 const CodecContext& context) const {
  EnvelopePtr envelope;
  absl::Status status = Guarded(version, bytes, context, [&](Decoder& in) -> absl::Status {
    absl::StatusOr<EnvelopePtr> decoded = DecodeFrom(in, sender);
    if (!decoded.ok()) return decoded.status();
    envelope = *std::move(decoded);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return envelope;
}

absl::Status MessageCodec::Guarded(uint32_t version, std::string_view bytes, const CodecContext& context,
                                   absl::FunctionRef<absl::Status(Decoder& in)> decode) const {
  if (version > version_) {
    return SerializationError(
        SerializationErrorKind::kNewerVersion, manifest_,
        absl::StrCat("cannot read message \"", manifest_, "\": it was written in version ", version,
                     ", and this program knows it up to version ", version_, ": update the program that reads"));
  }
  if (bytes.size() > context.max_bytes) {
    return SerializationError(SerializationErrorKind::kTooLarge, manifest_,
                              absl::StrCat("cannot read message \"", manifest_, "\": it has ", bytes.size(), " bytes; ",
                                           context.max_bytes, " are allowed: raise the limit"));
  }
  absl::Status status = Caught([&] {
    Decoder in(bytes, version, version_, context);
    return decode(in);
  });
  if (status.ok()) return status;
  return Explained(status, SerializationErrorKind::kCorrupt, manifest_,
                   absl::StrCat("cannot read the ", bytes.size(), " bytes, version ", version, ", of a"));
}

}  // namespace fraktor::inline v0
