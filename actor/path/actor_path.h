// ActorPath: the address of an actor: its system, where that system runs, and the actor's place in
// the tree.
//
//   FRAKTOR_ASSIGN_OR_RETURN(ActorPath cart, ActorPathParser::Parse("pekko://shop@10.0.0.7:2552/user/cart#42"));
//   std::string place = cart.ToString();        // "pekko://shop@10.0.0.7:2552/user/cart"
//   std::string canonical = cart.ToCanonical(); // "pekko://shop@10.0.0.7:2552/user/cart#42": one incarnation
//   ActorPath user = cart.Parent();             // "pekko://shop@10.0.0.7:2552/user"
//   ActorPath item = cart.Child(segment);       // only the new segment was ever checked
//
// Two paths are equal, and have the same hash, if their system, authority (with its protocol) and
// segments are equal. The uid does not count. Without an authority the scheme does not count
// either: `pekko://shop/user` and `pekko.tcp://shop/user` are the same place in the same system,
// because the protocol only says how to reach it from elsewhere. (Pekko tells them apart: its
// addresses always have a protocol.) Letter case is kept and counts. No part is decoded.
//
// The text is built once and kept, in one allocation. Up to 8 segments need no other allocation.
// The hash is part of the value and is the same on every platform and in every run (path_hash.h).
//
// Thread safety: paths are immutable values.
#ifndef FRAKTOR_ACTOR_PATH_ACTOR_PATH_H_
#define FRAKTOR_ACTOR_PATH_ACTOR_PATH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"

#include "fraktor/actor/path/actor_path_parts.h"
#include "fraktor/actor/path/actor_uid.h"
#include "fraktor/actor/path/guardian_segments.h"
#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/path/path_segment.h"

namespace fraktor::inline v0 {

namespace path_internal {
class PathBuilder;
}

class ActorPath {
 public:
  // Paths of up to this many segments keep the list of their segments inline.
  static constexpr size_t kInlineSegments = 8;

  // "pekko://shop/".
  static ActorPath Root(const ActorPathParts& parts);

  // "pekko://shop/user".
  static ActorPath Of(const ActorPathParts& parts, Guardian guardian);

  // Returns the path with one more segment and without a uid. Does not check the parent again.
  ActorPath Child(const PathSegment& segment) const { return Append(segment.raw()); }

  // Returns the path without its last segment and without a uid. The parent of the root is the
  // root.
  ActorPath Parent() const;

  ActorPath WithUid(ActorUid uid) const;
  ActorPath WithoutUid() const { return WithUid(ActorUid()); }

  // Returns the path as a peer has to write it: with the given authority if the path has none. A
  // path with an authority of its own stays as it is, and so does `pekko://local/ignore`, which
  // leads nowhere.
  ActorPath WithAuthority(const PathAuthority& authority) const;

  std::string_view scheme() const { return Text(0, scheme_end_); }
  std::string_view system() const { return Text(scheme_end_ + 3, system_end_); }
  bool has_authority() const { return host_end_ != 0; }
  // The host, with its brackets if it has some, and the port. Empty and 0 without an authority.
  std::string_view host() const { return has_authority() ? Text(system_end_ + 1, host_end_) : std::string_view(); }
  uint16_t port() const { return port_; }
  std::optional<PathAuthority> authority() const;
  ActorPathParts parts() const;

  bool IsRoot() const { return segment_ends_.empty(); }
  size_t segment_count() const { return segment_ends_.size(); }
  std::string_view segment(size_t i) const {
    return Text(i == 0 ? path_begin_ + 1 : segment_ends_[i - 1] + 1, segment_ends_[i]);
  }
  // The last segment. Empty for the root.
  std::string_view name() const { return IsRoot() ? std::string_view() : segment(segment_count() - 1); }

  ActorUid uid() const { return uid_; }
  uint64_t hash() const { return hash_; }

  // Address and segments, without the uid; a view of this value. Only the root ends in a slash.
  std::string_view text() const { return text_; }
  std::string ToString() const { return text_; }

  // "/user/cart". The root is "/".
  std::string_view TextWithoutAddress() const { return std::string_view(text_).substr(path_begin_); }

  // The text with `#uid` at its end if the path has one. This form goes over the wire, and the
  // parser reads it.
  std::string ToCanonical() const;

  friend bool operator==(const ActorPath& a, const ActorPath& b);

  // For tables of this process. Use hash() where a decision must be the same in every run.
  template <class H>
  friend H AbslHashValue(H h, const ActorPath& path) {
    return H::combine(std::move(h), path.hash_);
  }

 private:
  friend class ActorPathParser;
  friend class path_internal::PathBuilder;

  ActorPath() = default;
  ActorPath(size_t text_size, size_t segments) : text_(text_size, '\0'), segment_ends_(segments) {}

  // The checked parts of the text before the path.
  struct Address {
    std::string_view scheme;
    std::string_view system;
    std::string_view host;  // empty without authority
    uint16_t port = 0;
  };

  static ActorPath MakeRoot(const Address& address, size_t further_bytes);
  Address address() const { return {scheme(), system(), host(), port_}; }
  std::string_view Text(size_t begin, size_t end) const { return std::string_view(text_.data() + begin, end - begin); }
  // Copies where the parts of the address end in the text.
  void CopyAddressFrom(const ActorPath& other) {
    scheme_end_ = other.scheme_end_;
    system_end_ = other.system_end_;
    host_end_ = other.host_end_;
    path_begin_ = other.path_begin_;
    port_ = other.port_;
  }
  ActorPath CopyWithRoom(size_t further_bytes) const;  // without uid
  ActorPath Append(std::string_view segment) const;
  void AppendInPlace(std::string_view segment);
  uint64_t RootHash() const;

  std::string text_;
  absl::InlinedVector<uint32_t, kInlineSegments> segment_ends_;
  // The positions in text_ at which the parts end. host_end_ is 0 without an authority.
  uint32_t scheme_end_ = 0;
  uint32_t system_end_ = 0;
  uint32_t host_end_ = 0;
  uint32_t path_begin_ = 0;
  uint16_t port_ = 0;
  ActorUid uid_;
  uint64_t hash_ = 0;
};

namespace path_internal {

// Makes paths of names from a table. The names were checked when they entered the system and are
// not checked again.
class PathBuilder {
 public:
  // Returns the path of these names below the root of the system of `like`.
  static ActorPath OfNames(const ActorPath& like, const std::vector<std::string_view>& names, ActorUid uid);

  struct Shape {
    size_t segments;   // number of segments below the parent
    size_t text_size;  // bytes of those segments, with a slash for each
    uint64_t hash;     // hash of the whole path
    ActorUid uid;
  };

  // Returns the path below `parent` with the names that `write_next` writes, the last name first.
  // `char* write_next(char* end)` writes a slash and a name that end at `end`, and returns where
  // they begin. It may overwrite the 8 bytes before `end`; each path has that many. Allocates once.
  template <class WriteNext>
  static ActorPath Below(const ActorPath& parent, const Shape& shape, WriteNext write_next) {
    // The root ends in a slash already; the first name uses it.
    const size_t before = parent.text_.size() - (parent.IsRoot() && shape.segments != 0 ? 1 : 0);
    ActorPath path(before + shape.text_size, parent.segment_count() + shape.segments);
    char* const text = path.text_.data();
    char* end = text + path.text_.size();
    uint32_t* const ends = path.segment_ends_.data();
    for (size_t i = parent.segment_count() + shape.segments; i-- > parent.segment_count();) {
      ends[i] = static_cast<uint32_t>(end - text);
      end = write_next(end);
    }
    std::copy_n(parent.text_.data(), before, text);
    std::copy(parent.segment_ends_.begin(), parent.segment_ends_.end(), ends);
    path.CopyAddressFrom(parent);
    path.hash_ = shape.hash;
    path.uid_ = path.IsRoot() ? ActorUid() : shape.uid;
    return path;
  }
};

}  // namespace path_internal

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATH_ACTOR_PATH_H_
