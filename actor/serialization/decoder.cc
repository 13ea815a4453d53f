#include "fraktor/actor/serialization/decoder.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec_context.h"
#include "fraktor/actor/serialization/encoder.h"
#include "fraktor/actor/serialization/serialization_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

ActorRef Decoder::Ref() {
  const std::string_view bytes = Bytes();
  if (bytes.empty() || !ok()) return {};
  if (context_.refs == nullptr) {
    Fail("it contains an ActorRef, and the reader cannot read references; set CodecContext::refs");
    return {};
  }
  absl::StatusOr<ActorRef> ref = context_.refs->Read(bytes);
  if (ref.ok()) return *ref;
  Fail(ref.status());
  return {};
}

absl::Status Decoder::Status() {
  const auto code = Value<int32_t>();
  const std::string_view text = Bytes();
  const bool is_known = code >= 0 && code <= static_cast<int32_t>(absl::StatusCode::kUnauthenticated);
  absl::Status status(is_known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown, ToAbsl(text));
  const uint64_t payloads = Varint();
  if (payloads > kMaxStatusPayloads) Fail("an error with too many payloads");
  for (uint64_t i = 0; i < payloads && ok(); ++i) {
    const std::string_view url = Bytes();
    status.SetPayload(ToAbsl(url), absl::Cord(ToAbsl(Bytes())));
  }
  return ok() ? status : absl::OkStatus();
}

size_t Decoder::Count(size_t min_bytes) {
  const uint64_t count = Varint();
  if (!ok()) return 0;
  if (count <= reader_.rest().size() / (min_bytes == 0 ? 1 : min_bytes)) return static_cast<size_t>(count);
  Fail(absl::StrCat("it claims that ", count, " elements follow, and has ", reader_.rest().size(), " bytes left"));
  return 0;
}

void Decoder::Fail(absl::Status why) {
  if (has_failed_) return;
  has_failed_ = true;
  status_ = why.ok() ? absl::UnknownError("a codec failed without a reason") : std::move(why);
}

void Decoder::Fail(std::string_view why) { Fail(SerializationError(SerializationErrorKind::kCorrupt, {}, why)); }

absl::Status Decoder::Finish() {
  if (!has_failed_ && !reader_.ok()) Fail("it ends before all of it was read");
  if (!has_failed_ && !AtEnd()) Fail(absl::StrCat("there are ", rest().size(), " bytes left at its end"));
  return status_;
}

}  // namespace fraktor::inline v0
