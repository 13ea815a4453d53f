// QuarantineWarden: ends quarantines of members, and of who else is needed. Remoting puts a node that is silent for some
// seconds into quarantine, for days, since nobody knows what that start of it has missed. But who is gone is for the
// membership to say: a node that is a member has grains, and calls to them have to get there.
//
//   auto warden = QuarantineWarden::Make(system, *remoting, executor, [driver](const std::string& authority) {
//     return driver->topology()->FindAuthority(authority) != nullptr;
//   });
//
// A quarantine lasts for kPause, so that the peer hears of it: what it has watched here is forgotten, and it has to know
// that. One that this node was told of ends at once, since here everything has been forgotten by then. So two nodes that
// were in quarantine for each other come together again within some seconds after both are members and can reach each
// other.
//
// Thread safety: any thread. What it does it does on the executor.
#ifndef FRAKTOR_CLUSTER_GRAIN_QUARANTINE_WARDEN_H_
#define FRAKTOR_CLUSTER_GRAIN_QUARANTINE_WARDEN_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/time/time.h"

#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/executor.h"

namespace fraktor::inline v0 {

class QuarantineWarden final : public std::enable_shared_from_this<QuarantineWarden> {
 public:
  static constexpr absl::Duration kPause = absl::Seconds(3);

  // Whether the node at an authority, "host:port", is needed. Called on the executor. A TopologyChanged of the system says
  // that it may be another one that is.
  using IsNeeded = std::function<bool(const std::string& authority)>;

  // System, remoting and executor must outlive it.
  static std::shared_ptr<QuarantineWarden> Make(ActorSystem& system, Remoting& remoting, Executor& executor,
                                                IsNeeded is_needed);

 private:
  QuarantineWarden(ActorSystem& system, Remoting& remoting, Executor& executor, IsNeeded is_needed);

  void Listen();
  void Review();
  void ReviewAfter(absl::Duration pause);
  // On the executor.
  void ReviewNow();

  ActorSystem& system_;
  Remoting& remoting_;
  Executor& executor_;
  const IsNeeded is_needed_;
  // Since when nodes have been seen in quarantine; long ago if they have said so themselves. Of the executor.
  std::map<std::string, Instant> since_;
  EventSubscription quarantines_;
  EventSubscription notices_;
  EventSubscription topologies_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_GRAIN_QUARANTINE_WARDEN_H_
