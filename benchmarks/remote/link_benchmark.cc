// A link between two processes of this machine, over gRPC, against a bare gRPC stream with the same payload, int64.
//
// `remote_one_way` sends from one actor to one of the other process; an item is a message that has arrived there.
// `remote_round_trip` is one message to an actor there and one back: p50_us, p99_us. `bare_*` are the same without
// actors; `*_mtls` with certificates on both sides.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "benchmark/benchmark.h"

#include "fraktor/benchmarks/measuring/program_time.h"
#include "fraktor/benchmarks/remote/bare_stream.h"
#include "fraktor/benchmarks/remote/link_node.h"
#include "fraktor/remote/grpc/child_process.h"
#include "fraktor/remote/grpc/test_certificates.h"

namespace fraktor {
namespace {

constexpr int64_t kMessages = int64_t{8192} * 256;
constexpr int64_t kWarmUp = int64_t{8192} * 16;
constexpr int64_t kRoundTrips = 10'000;
constexpr int64_t kFirstRoundTrips = 500;

// The other process.
class Peer {
 public:
  explicit Peer(std::vector<std::string> arguments) : process_(Start(std::move(arguments))) {
    int port = 0;
    const std::string line = process_.ReadLine().value();
    if (line.substr(0, 6) != "ready " || !absl::SimpleAtoi(line.substr(6), &port)) std::abort();
    port_ = static_cast<uint16_t>(port);
  }
  ~Peer() {
    process_.CloseInput();
    process_.Wait();
  }
  uint16_t port() const { return port_; }

 private:
  static ChildProcess Start(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), BesideThisProgram("link_peer"));
    return ChildProcess::Start(arguments).value();
  }

  ChildProcess process_;
  uint16_t port_ = 0;
};

// What both processes show each other, if they do.
class Certificates {
 public:
  explicit Certificates(bool is_wanted) {
    if (!is_wanted) return;
    authority_ = std::make_unique<TestAuthority>(TestAuthority::Make("link").value());
    const PemFiles written = WritePemFiles(authority_->folder(), authority_->Issue().value()).value();
    files_ = {written.roots, written.certificate, written.private_key};
  }
  const std::vector<std::string>& files() const { return files_; }
  std::vector<std::string> PeerArguments() const {
    std::vector<std::string> arguments = {files_.empty() ? "fraktor" : "mtls"};
    arguments.insert(arguments.end(), files_.begin(), files_.end());
    return arguments;
  }

 private:
  std::unique_ptr<TestAuthority> authority_;
  std::vector<std::string> files_;
};

void ReportOneWay(benchmark::State& state, double seconds) {
  if (seconds <= 0) state.SkipWithError("messages were lost");
  state.SetIterationTime(std::max(seconds, 1e-9));
}

void ReportRoundTrips(benchmark::State& state, std::vector<ProgramClock::duration> times) {
  std::sort(times.begin(), times.end());
  double sum = 0;
  for (const ProgramClock::duration time : times) sum += Seconds(time);
  state.SetIterationTime(sum);
  const auto percentile = [&](double share) {
    return 1e6 * Seconds(times[static_cast<size_t>(share * static_cast<double>(times.size() - 1))]);
  };
  state.counters["p50_us"] = percentile(0.50);
  state.counters["p99_us"] = percentile(0.99);
}

void RemoteOneWay(benchmark::State& state, bool has_tls) {
  const Certificates certificates(has_tls);
  const Peer peer(certificates.PeerArguments());
  LinkNode node("here", LinkSecurity(certificates.files()));
  // First they have to meet: before that, only some messages wait, and the others are dropped.
  node.RunRoundTrips(peer.port(), kFirstRoundTrips);
  node.RunOneWay(peer.port(), kWarmUp);
  for (auto _ : state) ReportOneWay(state, node.RunOneWay(peer.port(), kMessages));
  state.SetItemsProcessed(state.iterations() * kMessages);
}

void RemoteRoundTrip(benchmark::State& state, bool has_tls) {
  const Certificates certificates(has_tls);
  const Peer peer(certificates.PeerArguments());
  LinkNode node("here", LinkSecurity(certificates.files()));
  node.RunRoundTrips(peer.port(), kFirstRoundTrips);
  for (auto _ : state) ReportRoundTrips(state, node.RunRoundTrips(peer.port(), kRoundTrips));
  state.SetItemsProcessed(state.iterations() * kRoundTrips);
}

void BareOneWay(benchmark::State& state) {
  const Peer peer({"bare"});
  RunBareOneWay(peer.port(), kWarmUp);
  for (auto _ : state) ReportOneWay(state, RunBareOneWay(peer.port(), kMessages));
  state.SetItemsProcessed(state.iterations() * kMessages);
}

void BareRoundTrip(benchmark::State& state) {
  const Peer peer({"bare"});
  RunBareRoundTrips(peer.port(), kFirstRoundTrips);
  for (auto _ : state) ReportRoundTrips(state, RunBareRoundTrips(peer.port(), kRoundTrips));
  state.SetItemsProcessed(state.iterations() * kRoundTrips);
}

// Those with a number of workers are run in turn with the programs of other runtimes, those that are plain with bare ones.
BENCHMARK_CAPTURE(RemoteOneWay, plain, false)->Name("remote_one_way/w:2")->Apply(Once);
BENCHMARK_CAPTURE(RemoteOneWay, plain, false)->Name("remote_one_way_plain")->Apply(Once);
BENCHMARK(BareOneWay)->Name("bare_one_way")->Apply(Once);
BENCHMARK_CAPTURE(RemoteOneWay, mtls, true)->Name("remote_one_way_mtls")->Apply(Once);
BENCHMARK_CAPTURE(RemoteRoundTrip, plain, false)->Name("remote_round_trip/w:2")->Apply(Once);
BENCHMARK_CAPTURE(RemoteRoundTrip, plain, false)->Name("remote_round_trip_plain")->Apply(Once);
BENCHMARK(BareRoundTrip)->Name("bare_round_trip")->Apply(Once);
BENCHMARK_CAPTURE(RemoteRoundTrip, mtls, true)->Name("remote_round_trip_mtls")->Apply(Once);

}  // namespace
}  // namespace fraktor
