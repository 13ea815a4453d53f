#include "fraktor/actor/path/path_authority.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/path/internal/actor_path_validator.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {

using path_internal::ActorPathValidator;

bool IsKnownProtocol(std::string_view protocol) { return protocol == "pekko" || protocol == "pekko.tcp"; }

absl::StatusOr<PathAuthority> PathAuthority::Create(std::string_view protocol, std::string_view host, uint16_t port) {
  FRAKTOR_RETURN_IF_ERROR(ActorPathValidator::ValidateScheme(protocol));
  FRAKTOR_RETURN_IF_ERROR(ActorPathValidator::ValidateHost(host));
  return PathAuthority(protocol, host, port);
}

std::string PathAuthority::ToString() const { return absl::StrCat(protocol_, "://", host_, ":", port_); }

}  // namespace fraktor::inline v0
