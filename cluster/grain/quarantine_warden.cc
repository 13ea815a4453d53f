#include "fraktor/cluster/grain/quarantine_warden.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/event/log.h"
#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/registry/authority_events.h"
#include "fraktor/cluster/identity/topology_changed.h"
#include "fraktor/remote/association/peer_info.h"
#include "fraktor/remote/association/remote_events.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

std::shared_ptr<QuarantineWarden> QuarantineWarden::Make(ActorSystem& system, Remoting& remoting, Executor& executor,
                                                         IsNeeded is_needed) {
  auto warden =
      std::shared_ptr<QuarantineWarden>(new QuarantineWarden(system, remoting, executor, std::move(is_needed)));
  warden->Listen();
  return warden;
}

QuarantineWarden::QuarantineWarden(ActorSystem& system, Remoting& remoting, Executor& executor, IsNeeded is_needed)
    : system_(system), remoting_(remoting), executor_(executor), is_needed_(std::move(is_needed)) {}

void QuarantineWarden::Listen() {
  const std::weak_ptr<QuarantineWarden> weak = weak_from_this();
  quarantines_ = system_.events().Listen<QuarantinedEvent>([weak](const QuarantinedEvent&) {
    const std::shared_ptr<QuarantineWarden> self = weak.lock();
    if (self == nullptr) return;
    // Once to see since when, and once when its time is over.
    self->Review();
    self->ReviewAfter(kPause);
  });
  notices_ = system_.events().Listen<ThisSystemQuarantined>([weak](const ThisSystemQuarantined& notice) {
    const std::shared_ptr<QuarantineWarden> self = weak.lock();
    if (self == nullptr) return;
    self->executor_.Post([weak, node = std::string(notice.node)] {
      const std::shared_ptr<QuarantineWarden> still = weak.lock();
      if (still == nullptr) return;
      still->since_[node] = Instant::InfinitePast();
      still->ReviewNow();
    });
  });
  topologies_ = system_.events().Listen<TopologyChanged>([weak](const TopologyChanged&) {
    if (const std::shared_ptr<QuarantineWarden> self = weak.lock()) self->Review();
  });
}

void QuarantineWarden::Review() {
  executor_.Post([weak = weak_from_this()] {
    if (const std::shared_ptr<QuarantineWarden> self = weak.lock()) self->ReviewNow();
  });
}

void QuarantineWarden::ReviewAfter(absl::Duration pause) {
  // Without a timer the next change of members does it.
  system_.toolbox()
      .ScheduleAfter(pause,
                     [weak = weak_from_this()] {
                       if (const std::shared_ptr<QuarantineWarden> self = weak.lock()) self->Review();
                     })
      .status()
      .IgnoreError();
}

void QuarantineWarden::ReviewNow() {
  const Instant now = system_.toolbox().Now();
  std::map<std::string, Instant> seen;
  for (const PeerInfo& peer : remoting_.Peers()) {
    if (!peer.is_quarantined) continue;
    std::string node = peer.parts.ToString();
    const auto known = since_.find(node);
    const Instant since = known == since_.end() ? now : known->second;
    const std::optional<PathAuthority>& authority = peer.parts.authority();
    const bool is_needed =
        authority.has_value() && is_needed_(absl::StrCat(ToAbsl(authority->host()), ":", authority->port()));
    if (is_needed && since + kPause <= now) {
      if (remoting_.EndQuarantine(*authority).ok()) {
        const std::string text = absl::StrCat("the quarantine of ", node, " has ended: the cluster needs it");
        system_.log().Log(LogLevel::kInfo, {.at = system_.toolbox().WallNow(), .path = "cluster", .text = text});
      }
      continue;
    }
    if (is_needed && known == since_.end()) ReviewAfter(kPause);
    seen.emplace(std::move(node), since);
  }
  since_ = std::move(seen);
}

}  // namespace fraktor::inline v0
