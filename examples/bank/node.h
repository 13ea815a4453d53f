// The nodes of the bank, each a process of its own that works until its input ends:
//
//   bank node storage FOLDER PORT                    the journal of all accounts, and the placement of the cluster
//   bank node compute-1 FOLDER PORT STORAGE          accounts; STORAGE is "localhost:2550"
//
// PORT 0 picks one. When a node is there it prints "ready PORT". What it logs goes to FOLDER/NAME.log.
//
// Thread safety: functions.
#ifndef FRAKTOR_EXAMPLES_BANK_NODE_H_
#define FRAKTOR_EXAMPLES_BANK_NODE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/event/log.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace bank {

inline constexpr char kSystemName[] = "bank";
inline constexpr char kStorageName[] = "storage";

// Below the folder of a run.
std::string CertificatesFolder(const std::string& dir);
std::string JournalFolder(const std::string& dir);
std::string LogFile(const std::string& dir, const std::string& name);

struct NodeOptions {
  // Also of its certificate.
  std::string name = {};
  std::string dir = {};
  uint16_t port = 0;
  // Null: its own.
  fraktor::RuntimeToolbox* toolbox = nullptr;
  // Null: stderr.
  fraktor::LogSink* log = nullptr;
};

// A system that the others know, with all codecs of the bank.
absl::StatusOr<std::unique_ptr<fraktor::ActorSystem>> StartSystem(const NodeOptions& options);

// Makes it a member of the cluster whose storage node is at `storage`: one on which accounts run, or one that only calls.
struct JoinOptions {
  std::string storage = {};
  bool hosts_accounts = false;
};
absl::StatusOr<fraktor::Cluster*> JoinCluster(fraktor::ActorSystem& system, const JoinOptions& options);

// What `bank node ...` does, with the words after "node". Returns when the input has ended.
absl::Status RunNode(const std::vector<std::string>& words);

}  // namespace bank

#endif  // FRAKTOR_EXAMPLES_BANK_NODE_H_
