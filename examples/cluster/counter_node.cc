// Counters as grains on several processes: start it as often as you like. Each node counts the words that are typed; which node
// has the counter of a word nobody has to know.
//
//   counter_node --port=2551                          # the first one has the store of the cluster
//   counter_node --port=2552 --store=localhost:2551
//   counter_node --port=2553 --store=localhost:2551
//
// A node that is ended by the end of its input hands its counters over. They are in memory, so they begin anew elsewhere;
// examples/bank has some that do not.
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/cluster/embedded/embedded_client.h"
#include "fraktor/cluster/embedded/embedded_messages.h"
#include "fraktor/cluster/embedded/embedded_store.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/remote/grpc/grpc_node.h"
#include "fraktor/utils/status/status_macros.h"

struct Count {
  int64_t value = 0;
  std::string node = {};
};
struct Add {
  using Reply = Count;
  int64_t n = 0;
};

// What is sent to another process needs a codec.
template <>
struct fraktor::Codec<Count> : fraktor::FieldCodec<Count, &Count::value, &Count::node> {
  static constexpr std::string_view kManifest = "counter.count";
};
template <>
struct fraktor::Codec<Add> : fraktor::FieldCodec<Add, &Add::n> {
  static constexpr std::string_view kManifest = "counter.add";
};

class Counter : public fraktor::Actor<Counter, Add> {
 public:
  static constexpr std::string_view kGrainKind = "counter";
  explicit Counter(const fraktor::GrainContext&) {}

  Count On(Context& context, const Add& add) {
    sum_ += add.n;
    return {.value = sum_, .node = fraktor::Cluster::Of(context.system())->authority()};
  }

 private:
  int64_t sum_ = 0;
};

struct Options {
  uint32_t port = 0;
  std::string store = {};
};

absl::StatusOr<Options> Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    absl::string_view word = argv[i];
    const bool is_port = absl::ConsumePrefix(&word, "--port=") && absl::SimpleAtoi(word, &options.port);
    if (is_port && options.port > 0 && options.port <= 65'535) continue;
    if (!absl::ConsumePrefix(&word, "--store=")) return absl::InvalidArgumentError(argv[i]);
    options.store = std::string(word);
  }
  if (options.port == 0) return absl::InvalidArgumentError("--port is missing");
  return options;
}

absl::Status Run(const Options& options) {
  fraktor::CodecSetup codecs;
  codecs.Add<Count, Add>().Add(fraktor::ClusterCodecs()).Add(fraktor::EmbeddedCodecs());
  // Between machines: MutualTls, and a host that others know.
  fraktor::GrpcNodeOptions node{.name = "counters",
                                .host = "localhost",
                                .transport = {.bind_port = static_cast<uint16_t>(options.port),
                                              .security = fraktor::GrpcSecurity::InsecureLoopback()}};
  FRAKTOR_ASSIGN_OR_RETURN(node.system.codecs, codecs.Build());
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<fraktor::ActorSystem> system, fraktor::StartGrpcNode(std::move(node)));
  // Who is a member, and where each counter runs. It is in memory, and so waits for a term at its start, since it does not know
  // what it has allowed before; with a RocksDbBackend it would know.
  if (options.store.empty()) {
    FRAKTOR_RETURN_IF_ERROR(fraktor::EmbeddedStore::Start(*system, {.term = absl::Seconds(3)}));
  }
  const std::string at = options.store.empty() ? absl::StrCat("localhost:", options.port) : options.store;
  FRAKTOR_ASSIGN_OR_RETURN(auto store, fraktor::EmbeddedClient::Make(*system, {.authority = at}));
  FRAKTOR_ASSIGN_OR_RETURN(
      fraktor::Cluster * cluster,
      fraktor::Cluster::Start(
          *system, {.kinds = {fraktor::GrainKindOf<Counter>()}, .membership = store, .lock = store, .storage = store}));
  FRAKTOR_RETURN_IF_ERROR(cluster->Joined().Wait());
  std::cout << "joined as " << cluster->authority() << std::endl;
  for (std::string word; std::cin >> word;) {
    const absl::StatusOr<Count> count = cluster->Grain<Counter>(word).AskAndWait(*system, Add{1}, absl::Seconds(30));
    if (count.ok()) {
      std::cout << word << ": " << count->value << ", on " << count->node << std::endl;
    } else {
      std::cout << word << ": " << count.status() << std::endl;
    }
  }
  // The end of the system would do it too, for as long as the phase "cluster-leave" may take.
  return cluster->Leave().Wait();
}

int main(int argc, char** argv) {
  const absl::StatusOr<Options> options = Parse(argc, argv);
  if (!options.ok()) {
    std::cerr << options.status().message() << "\nusage: counter_node --port=PORT [--store=HOST:PORT]\n";
    return 2;
  }
  const absl::Status ran = Run(*options);
  if (!ran.ok()) std::cerr << ran << "\n";
  return ran.ok() ? 0 : 1;
}
