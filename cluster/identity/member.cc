#include "fraktor/cluster/identity/member.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/cluster/identity/grain_key.h"

namespace fraktor::inline v0 {

std::string Member::id() const { return absl::StrCat(authority, "#", incarnation); }

std::string_view MemberStatusName(MemberStatus status) { return status == MemberStatus::kUp ? "up" : "leaving"; }

absl::Status CheckMember(const Member& member) {
  constexpr size_t kMaxAuthorityBytes = 300;
  constexpr size_t kMaxKinds = 4096;
  const std::string& authority = member.authority;
  if (authority.empty() || authority.size() > kMaxAuthorityBytes || authority.find('#') != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat("member \"", authority.substr(0, kMaxAuthorityBytes),
                                                   "\": an authority is host:port, 1 to 300 bytes without '#'"));
  }
  if (member.incarnation == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("member \"", authority, "\": incarnation 0; they begin with 1, and the provider gives them"));
  }
  if (member.kinds.size() > kMaxKinds) {
    return absl::InvalidArgumentError(
        absl::StrCat("member \"", authority, "\": ", member.kinds.size(), " kinds; 4096 at most"));
  }
  for (const std::string& kind : member.kinds) {
    const absl::Status checked = GrainKey(kind, "x").Check();
    if (!checked.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("member \"", authority, "\": ", checked.message()));
    }
  }
  for (const std::string& kind : member.oldest_kinds) {
    if (std::find(member.kinds.begin(), member.kinds.end(), kind) == member.kinds.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("member \"", authority, "\": kind \"", kind, "\" is among the oldest_kinds but not the kinds"));
    }
  }
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0
