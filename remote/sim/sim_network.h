// SimNetwork: nodes and the links between them, in virtual time, as bad as a test wants them.
//
//   SimNetwork network(sim.toolbox(), {.drop = 0.05, .duplicate = 0.05, .reorder = 0.05});
//   std::unique_ptr<Transport> transport = network.MakeTransport(a);      // a node; the address of an earlier one: it is
//                                                                         // that node after a restart
//   network.Cut(a, b);                                                    // nothing gets through in either direction
//   network.CutOneWay(a, b);                                              // nothing gets from a to b
//   network.Heal();
//   network.Crash(a);                                                     // its transport is dead; peers find out
//
// What happens to a frame is drawn by a generator of the toolbox's seed, and goes into the trace of a SimToolbox: who
// sent how many bytes to whom does not, since references have another size in every run. Streams keep the order of their
// frames unless a frame is reordered: then it is late, and others overtake it.
//
// A cut swallows frames, and lets no stream be opened; streams that are open do not notice. A crash closes those that led
// to the node, after a while, if they are not cut; otherwise with the first frame that gets through.
//
// Thread safety: the thread that pumps the toolbox.
#ifndef FRAKTOR_REMOTE_SIM_SIM_NETWORK_H_
#define FRAKTOR_REMOTE_SIM_SIM_NETWORK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"

#include "fraktor/actor/path/path_authority.h"
#include "fraktor/remote/transport/transport.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/sim_trace.h"

namespace fraktor::inline v0 {

struct SimNetworkOptions {
  // Of frames.
  double drop = 0;
  double duplicate = 0;
  double reorder = 0;
  absl::Duration min_delay = absl::Microseconds(50);
  absl::Duration max_delay = absl::Microseconds(500);
  // How late a reordered frame, or the second of two, is at most.
  absl::Duration max_lateness = absl::Milliseconds(50);
  // How long it takes to find out that nobody answers.
  absl::Duration connect_timeout = absl::Seconds(1);
  // Streams do not end with the node that they lead to: whoever comes after it gets what is sent. As behind a proxy.
  bool survive_restarts = false;
  // Of each stream; 0: any number. A frame is written, and arrives, when its bytes have gone through.
  uint64_t bytes_per_second = 0;
  // Of each node. What waits to be handled has no time to pile up here, so only the size of a frame counts.
  TransportLimits limits = {};
  // Where what happens is written down; null: nowhere.
  SimTrace* trace = nullptr;
};

// How many frames had which fate.
struct SimNetworkCounts {
  uint64_t sent = 0;
  uint64_t delivered = 0;
  uint64_t dropped = 0;
  uint64_t duplicated = 0;
  uint64_t reordered = 0;
  uint64_t cut = 0;
};

class SimNetwork {
 public:
  // The toolbox must outlive it, and everything that it has scheduled there.
  SimNetwork(RuntimeToolbox& toolbox, const SimNetworkOptions& options);
  ~SimNetwork();
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  // A node at an address, which takes the place of an earlier one there. Must not outlive the network. `hosts` is what
  // others are told that it has proved to be: see StreamOrigin.
  std::unique_ptr<Transport> MakeTransport(const PathAuthority& address, std::vector<std::string> hosts = {});

  void Cut(const PathAuthority& a, const PathAuthority& b);
  void CutOneWay(const PathAuthority& from, const PathAuthority& to);
  void Heal(const PathAuthority& a, const PathAuthority& b);
  // All of them.
  void Heal();
  void Crash(const PathAuthority& node);

  // From now on.
  void SetFaults(double drop, double duplicate, double reorder);

  // Sees each frame before it is sent, and may change it; false drops it. For tests of one frame in particular.
  using Tamper = std::function<bool(const PathAuthority& from, const PathAuthority& to, std::string& frame)>;
  void SetTamper(Tamper tamper);

  const SimNetworkCounts& counts() const;
  // A uid for a system that starts now: another one each time, the same in every run.
  uint64_t NextUid();

 private:
  class Core;
  class Stream;
  class Node;

  const std::shared_ptr<Core> core_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_SIM_SIM_NETWORK_H_
