#include "fraktor/cluster/membership/member_table.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/cluster/identity/check_positive.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

std::string_view AuthorityOf(std::string_view member_id) { return member_id.substr(0, member_id.rfind('#')); }

}  // namespace

MemberTable::MemberTable(const MemberTableOptions& options) : options_(options) { Changed(options.first_epoch); }

void MemberTable::Restore(uint64_t epoch, const std::vector<Member>& members, Instant now) {
  for (const Member& member : members) {
    entries_.insert_or_assign(member.authority, Entry{.member = member, .valid_until = now + options_.term});
  }
  Changed(epoch);
}

absl::StatusOr<Member> MemberTable::Join(const MemberCandidate& candidate, Instant now) {
  FRAKTOR_RETURN_IF_ERROR(CheckPositive({{"MemberTableOptions::term", options_.term}}));
  FRAKTOR_RETURN_IF_ERROR(CheckCounts({{"MemberTableOptions::max_members", options_.max_members}}));
  Expire(now);
  const uint64_t epoch = topology_->epoch() + 1;
  Member member{.authority = candidate.authority,
                .incarnation = epoch,
                .system_uid = candidate.system_uid,
                .kinds = candidate.kinds,
                .oldest_kinds = candidate.oldest_kinds};
  FRAKTOR_RETURN_IF_ERROR(CheckMember(member));
  if (entries_.size() >= options_.max_members && !entries_.contains(candidate.authority)) {
    return MakeError(
        absl::StatusCode::kResourceExhausted, MembershipError::kFull,
        absl::StrCat("\"", candidate.authority, "\" cannot join: there are ", entries_.size(), " members already"));
  }
  entries_.insert_or_assign(candidate.authority, Entry{.member = member, .valid_until = now + options_.term});
  Changed(epoch);
  return member;
}

absl::StatusOr<Member> MemberTable::Renew(std::string_view member_id, Instant now) {
  Expire(now);
  const Entries::iterator found = Find(member_id);
  if (found == entries_.end()) return HasLeft(member_id);
  found->second.valid_until = now + options_.term;
  return found->second.member;
}

absl::Status MemberTable::BeginLeaving(std::string_view member_id, Instant now) {
  Expire(now);
  const Entries::iterator found = Find(member_id);
  if (found == entries_.end()) return HasLeft(member_id);
  if (found->second.member.status == MemberStatus::kLeaving) return absl::OkStatus();
  found->second.member.status = MemberStatus::kLeaving;
  Changed(topology_->epoch() + 1);
  return absl::OkStatus();
}

bool MemberTable::Leave(std::string_view member_id) {
  const Entries::iterator found = Find(member_id);
  if (found == entries_.end()) return false;
  entries_.erase(found);
  Changed(topology_->epoch() + 1);
  return true;
}

bool MemberTable::Expire(Instant now) {
  const size_t before = entries_.size();
  std::erase_if(entries_, [now](const auto& entry) { return now >= entry.second.valid_until; });
  if (entries_.size() == before) return false;
  Changed(topology_->epoch() + 1);
  return true;
}

Instant MemberTable::NextExpiry() const {
  Instant next = Instant::InfiniteFuture();
  for (const auto& [authority, entry] : entries_) next = std::min(next, entry.valid_until);
  return next;
}

bool MemberTable::IsReplaced(std::string_view member_id) const {
  const auto found = entries_.find(AuthorityOf(member_id));
  return found != entries_.end() && found->second.member.id() != member_id;
}

absl::Status MemberTable::HasLeft(std::string_view member_id) const {
  const std::string why =
      IsReplaced(member_id)
          ? absl::StrCat("another node has joined as \"", ToAbsl(AuthorityOf(member_id)),
                         "\" and has taken the place of member \"", ToAbsl(member_id),
                         "\": two processes must not have the same authority")
          : absl::StrCat("member \"", ToAbsl(member_id), "\" has left or its term was over; join anew");
  return MakeError(absl::StatusCode::kFailedPrecondition, MembershipError::kHasLeft, why);
}

MemberTable::Entries::iterator MemberTable::Find(std::string_view member_id) {
  const Entries::iterator found = entries_.find(AuthorityOf(member_id));
  return found != entries_.end() && found->second.member.id() == member_id ? found : entries_.end();
}

void MemberTable::Changed(uint64_t epoch) {
  std::vector<Member> members;
  members.reserve(entries_.size());
  for (const auto& [authority, entry] : entries_) members.push_back(entry.member);
  // Each was checked when it joined, and there is one for each authority.
  topology_ = ClusterTopology::Make(epoch, std::move(members)).value();
}

}  // namespace fraktor::inline v0
