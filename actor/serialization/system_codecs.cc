#include "fraktor/actor/serialization/system_codecs.h"

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0 {

const CodecRegistry& CodecsOf(const ActorSystem& system) {
  const CodecRegistry* const codecs = system.options().codecs.get();
  return codecs == nullptr ? CodecRegistry::BuiltIn() : *codecs;
}

absl::Status PathRefs::Write(ActorRef ref, std::string& out) {
  // The path of an ended actor would be read as the next actor with that path.
  if (ref.IsPromise() || !(ref.IsRemote() || ref.IsCurrent())) return absl::OkStatus();
  const std::string path = system_.CanonicalPathOf(ref);
  if (ref.IsRemote() && !ActorPathParser::Parse(path).ok()) return absl::OkStatus();
  out.append(path, 0, path.rfind('#'));
  return absl::OkStatus();
}

absl::StatusOr<ActorRef> PathRefs::Read(std::string_view bytes) {
  absl::StatusOr<ActorRef> ref = system_.Resolve(bytes);
  const bool is_missing = ErrorKindOf<PathResolutionErrorKind>(ref.status()).has_value();
  const bool is_out_of_reach =
      ErrorKindOf<ActorPathErrorKind>(ref.status()) == ActorPathErrorKind::kUnsupportedAuthority;
  return is_missing || is_out_of_reach ? ActorRef() : ref;
}

}  // namespace fraktor::inline v0
