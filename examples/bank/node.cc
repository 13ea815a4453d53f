#include "fraktor/examples/bank/node.h"

#include <signal.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/cluster/embedded/embedded_client.h"
#include "fraktor/cluster/embedded/embedded_messages.h"
#include "fraktor/cluster/embedded/embedded_store.h"
#include "fraktor/cluster/embedded/rocksdb/rocksdb_backend.h"
#include "fraktor/cluster/grain/grain_call.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/examples/bank/account.h"
#include "fraktor/examples/bank/certificates.h"
#include "fraktor/examples/bank/post_office.h"
#include "fraktor/persistence/actor/persistence_extension.h"
#include "fraktor/persistence/protocol/protocol_codecs.h"
#include "fraktor/persistence/protocol/remote_stores.h"
#include "fraktor/persistence/rocksdb/rocksdb_journal.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/remote/grpc/grpc_node.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace bank {
namespace {

constexpr char kJournal[] = "main";
// How long the storage node may be away, and how long accounts of a node that does not come back are missing.
constexpr absl::Duration kTerm = absl::Seconds(20);

void SayReadyAndWait(fraktor::ActorSystem& system) {
  std::cout << "ready " << fraktor::Remoting::Of(system)->address().authority()->port() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
  }
}

absl::Status RunStorage(NodeOptions options) {
  FRAKTOR_ASSIGN_OR_RETURN(auto toolbox, fraktor::StdToolbox::Make({.name = "storage"}));
  options.toolbox = toolbox.get();
  FRAKTOR_ASSIGN_OR_RETURN(std::shared_ptr<fraktor::JournalStorage> journal,
                           fraktor::RocksDbJournal::Open(*toolbox, {.path = JournalFolder(options.dir)}));
  FRAKTOR_ASSIGN_OR_RETURN(auto backend,
                           fraktor::RocksDbBackend::Open({.path = absl::StrCat(options.dir, "/cluster")}));
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<fraktor::ActorSystem> system, StartSystem(options));
  auto& persistence = system->Extension<fraktor::PersistenceExtension>();
  FRAKTOR_RETURN_IF_ERROR(persistence.AddJournal(kJournal, {.storage = journal}));
  // Others name it by its path, so it has to be there.
  FRAKTOR_RETURN_IF_ERROR(persistence.StartStores());
  FRAKTOR_RETURN_IF_ERROR(fraktor::EmbeddedStore::Start(*system, {.term = kTerm, .backend = backend}));
  SayReadyAndWait(*system);
  system.reset();
  return journal->Close().Wait();
}

absl::Status RunCompute(const NodeOptions& options, const std::string& storage) {
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<fraktor::ActorSystem> system, StartSystem(options));
  auto& persistence = system->Extension<fraktor::PersistenceExtension>();
  fraktor::PersistenceOptions how;
  // While the storage node is away writes wait, and are sent again: the journal knows one that it has.
  how.actor.write_timeout = absl::Seconds(1);
  how.actor.max_write_resends = 60;
  how.actor.recovery_event_timeout = absl::Seconds(5);
  FRAKTOR_RETURN_IF_ERROR(persistence.Configure(how));
  FRAKTOR_ASSIGN_OR_RETURN(const fraktor::RemoteStores stores, fraktor::RemoteStores::At(*system, storage));
  FRAKTOR_ASSIGN_OR_RETURN(const fraktor::ActorRef journal, stores.Journal(kJournal));
  FRAKTOR_RETURN_IF_ERROR(persistence.AddJournal(kJournal, {.actor = journal}));
  FRAKTOR_RETURN_IF_ERROR(system->TrySpawn<PostOffice>(kPostOffice).status());
  FRAKTOR_ASSIGN_OR_RETURN(fraktor::Cluster * cluster,
                           JoinCluster(*system, {.storage = storage, .hosts_accounts = true}));
  SayReadyAndWait(*system);
  // Accounts move to those that stay.
  return cluster->Leave().Wait();
}

}  // namespace

std::string CertificatesFolder(const std::string& dir) { return absl::StrCat(dir, "/certificates"); }
std::string JournalFolder(const std::string& dir) { return absl::StrCat(dir, "/journal"); }
std::string LogFile(const std::string& dir, const std::string& name) { return absl::StrCat(dir, "/", name, ".log"); }

absl::StatusOr<std::unique_ptr<fraktor::ActorSystem>> StartSystem(const NodeOptions& options) {
  fraktor::CodecSetup codecs = AccountCodecs();
  codecs.Add<NodeReport, GetNodeReport>()
      .Add(fraktor::ProtocolCodecs())
      .Add(fraktor::ClusterCodecs())
      .Add(fraktor::EmbeddedCodecs());
  fraktor::GrpcNodeOptions node{
      .name = kSystemName,
      .host = "localhost",
      .transport = {.bind_host = "127.0.0.1",
                    .bind_port = options.port,
                    .security = SecurityOf(CertificatesFolder(options.dir), options.name),
                    .log = options.log},
  };
  // A node that was killed is looked for every half a second: it comes back soon.
  node.remote.max_backoff = absl::Milliseconds(500);
  node.system.toolbox = options.toolbox;
  node.system.log_sink = options.log;
  FRAKTOR_ASSIGN_OR_RETURN(node.system.codecs, codecs.Build());
  return fraktor::StartGrpcNode(std::move(node));
}

absl::StatusOr<fraktor::Cluster*> JoinCluster(fraktor::ActorSystem& system, const JoinOptions& options) {
  FRAKTOR_ASSIGN_OR_RETURN(auto store, fraktor::EmbeddedClient::Make(system, {.authority = options.storage}));
  fraktor::ClusterOptions cluster;
  if (options.hosts_accounts) cluster.kinds = {fraktor::GrainKindOf<Account>()};
  cluster.membership = store;
  cluster.lock = store;
  cluster.storage = store;
  return fraktor::Cluster::Start(system, cluster);
}

absl::Status RunNode(const std::vector<std::string>& words) {
  const bool is_storage = words.size() == 3 && words[0] == kStorageName;
  uint32_t port = 0;
  if ((!is_storage && words.size() != 4) || !absl::SimpleAtoi(words[2], &port) || port > 65'535) {
    return absl::InvalidArgumentError("bank node storage FOLDER PORT | bank node NAME FOLDER PORT STORAGE");
  }
  const NodeOptions options{.name = words[0], .dir = words[1], .port = static_cast<uint16_t>(port)};
  const std::string log = LogFile(options.dir, options.name);
  if (std::freopen(log.c_str(), "a", stderr) == nullptr) {
    return absl::UnavailableError(absl::StrCat("cannot write ", log));
  }
  // Ctrl-C is for the one who started it, and who ends its input.
  signal(SIGINT, SIG_IGN);
  return is_storage ? RunStorage(options) : RunCompute(options, words[3]);
}

}  // namespace bank
