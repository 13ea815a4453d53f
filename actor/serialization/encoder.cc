#include "fraktor/actor/serialization/encoder.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec_context.h"
#include "fraktor/actor/serialization/serialization_error.h"
#include "fraktor/utils/bytes/bytes.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

void Encoder::Ref(ActorRef ref) {
  if (ref.IsNoOne()) return Varint(0);
  if (!ok()) return;
  if (context_.refs == nullptr) {
    return Fail("it contains an ActorRef, and the writer cannot write references; set CodecContext::refs");
  }
  // Inserts the length before the bytes, once it is known.
  const size_t at = out_.size();
  absl::Status written = context_.refs->Write(ref, out_);
  if (!written.ok()) return Fail(std::move(written));
  std::string length;
  AppendVarint(length, out_.size() - at);
  out_.insert(at, length);
  MayAppend(0);
}

void Encoder::Status(const absl::Status& status) {
  Value(static_cast<int32_t>(status.raw_code()));
  Bytes(ToStd(status.message()));
  // Sorted, because a status has no order of its payloads.
  std::map<std::string, std::string> payloads;
  status.ForEachPayload([&](auto url, const absl::Cord& payload) {
    if (payloads.size() < kMaxStatusPayloads) payloads.emplace(std::string(url), std::string(payload));
  });
  Value(payloads);
}

void Encoder::Fail(absl::Status why) {
  if (has_failed_) return;
  has_failed_ = true;
  status_ = why.ok() ? absl::UnknownError("a codec failed without a reason") : std::move(why);
}

void Encoder::Fail(std::string_view why) { Fail(SerializationError(SerializationErrorKind::kCannotEncode, {}, why)); }

bool Encoder::AppendAtLimit(size_t bytes) {
  const size_t size = out_.size() - start_;
  if (bytes > kMaxVarintBytes + context_.max_bytes || size + bytes > context_.max_bytes + kMaxVarintBytes) {
    Fail(SerializationError(SerializationErrorKind::kTooLarge, {},
                            absl::StrCat("it takes more than ", context_.max_bytes, " bytes")));
    return false;
  }
  return true;
}

}  // namespace fraktor::inline v0
