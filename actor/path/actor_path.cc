#include "fraktor/actor/path/actor_path.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fraktor/actor/path/actor_path_parts.h"
#include "fraktor/actor/path/actor_uid.h"
#include "fraktor/actor/path/guardian_segments.h"
#include "fraktor/actor/path/internal/path_hash.h"
#include "fraktor/actor/path/path_authority.h"

namespace fraktor::inline v0 {
namespace {

constexpr size_t kMaxUint64Digits = 20;

// Decimal digits on the stack.
class Decimal {
 public:
  explicit Decimal(uint64_t number) : end_(std::to_chars(digits_, digits_ + kMaxUint64Digits, number).ptr) {}
  std::string_view view() const { return std::string_view(digits_, static_cast<size_t>(end_ - digits_)); }

 private:
  char digits_[kMaxUint64Digits];
  const char* end_;
};

}  // namespace

ActorPath ActorPath::MakeRoot(const Address& address, size_t further_bytes) {
  ActorPath path;
  const Decimal port(address.port);
  std::string& text = path.text_;
  text.reserve(address.scheme.size() + 3 + address.system.size() + 1 + address.host.size() + 1 + port.view().size() +
               1 + further_bytes);
  text.append(address.scheme);
  path.scheme_end_ = static_cast<uint32_t>(text.size());
  text.append("://");
  text.append(address.system);
  path.system_end_ = static_cast<uint32_t>(text.size());
  if (!address.host.empty()) {
    text.push_back('@');
    text.append(address.host);
    path.host_end_ = static_cast<uint32_t>(text.size());
    text.push_back(':');
    text.append(port.view());
    path.port_ = address.port;
  }
  path.path_begin_ = static_cast<uint32_t>(text.size());
  text.push_back('/');
  path.hash_ = path.RootHash();
  return path;
}

uint64_t ActorPath::RootHash() const {
  if (!has_authority()) return path_internal::LocalRootHash(system());
  return path_internal::RemoteRootHash(scheme(), system(), host(), port_);
}

void ActorPath::AppendInPlace(std::string_view segment) {
  if (!IsRoot()) text_.push_back('/');
  text_.append(segment);
  segment_ends_.push_back(static_cast<uint32_t>(text_.size()));
  hash_ = path_internal::ChildHash(hash_, segment);
}

ActorPath ActorPath::CopyWithRoom(size_t further_bytes) const {
  ActorPath copy;
  copy.text_.reserve(text_.size() + further_bytes);
  copy.text_ = text_;
  copy.segment_ends_ = segment_ends_;
  copy.CopyAddressFrom(*this);
  copy.hash_ = hash_;
  return copy;
}

ActorPath ActorPath::Append(std::string_view segment) const {
  ActorPath child = CopyWithRoom(1 + segment.size());
  child.AppendInPlace(segment);
  return child;
}

ActorPath ActorPath::Root(const ActorPathParts& parts) {
  Address address{.scheme = parts.scheme(), .system = parts.system(), .host = {}, .port = 0};
  if (parts.authority().has_value()) {
    address.host = parts.authority()->host();
    address.port = parts.authority()->port();
  }
  return MakeRoot(address, 0);
}

ActorPath ActorPath::Of(const ActorPathParts& parts, Guardian guardian) {
  return Root(parts).Append(GuardianSegments::NameOf(guardian));
}

ActorPath ActorPath::Parent() const {
  ActorPath parent = MakeRoot(address(), text_.size());
  for (size_t i = 0; i + 1 < segment_count(); ++i) parent.AppendInPlace(segment(i));
  return parent;
}

ActorPath ActorPath::WithUid(ActorUid uid) const {
  ActorPath path = *this;
  path.uid_ = IsRoot() ? ActorUid() : uid;
  return path;
}

ActorPath ActorPath::WithAuthority(const PathAuthority& authority) const {
  if (has_authority() || text_ == "pekko://local/ignore") return *this;
  Address address{
      .scheme = authority.protocol(), .system = system(), .host = authority.host(), .port = authority.port()};
  ActorPath path = MakeRoot(address, text_.size());
  for (size_t i = 0; i < segment_count(); ++i) path.AppendInPlace(segment(i));
  path.uid_ = uid_;
  return path;
}

std::optional<PathAuthority> ActorPath::authority() const {
  if (!has_authority()) return std::nullopt;
  return PathAuthority(scheme(), host(), port_);
}

ActorPathParts ActorPath::parts() const { return ActorPathParts(scheme(), system(), authority()); }

std::string ActorPath::ToCanonical() const {
  if (uid_.IsNone()) return text_;
  const Decimal uid(uid_.value());
  std::string canonical;
  canonical.reserve(text_.size() + 1 + uid.view().size());
  canonical.append(text_);
  canonical.push_back('#');
  canonical.append(uid.view());
  return canonical;
}

namespace path_internal {

ActorPath PathBuilder::OfNames(const ActorPath& like, const std::vector<std::string_view>& names, ActorUid uid) {
  size_t bytes = 0;
  for (const std::string_view name : names) bytes += 1 + name.size();
  ActorPath path = ActorPath::MakeRoot(like.address(), bytes);
  path.segment_ends_.reserve(names.size());
  for (const std::string_view name : names) path.AppendInPlace(name);
  if (!path.IsRoot()) path.uid_ = uid;
  return path;
}

}  // namespace path_internal

bool operator==(const ActorPath& a, const ActorPath& b) {
  if (a.hash_ != b.hash_ || a.has_authority() != b.has_authority()) return false;
  // The protocol is part of the authority. Without an authority the scheme does not say where the
  // actor is.
  if (a.has_authority()) return a.text_ == b.text_;
  return std::string_view(a.text_).substr(a.scheme_end_) == std::string_view(b.text_).substr(b.scheme_end_);
}

}  // namespace fraktor::inline v0
