// The benchmark programs for CAF 0.17, as Debian has it. `tools/bench peers` compiles and runs them:
//
//   caf_programs pairs/100/w:2
//
// runs one program once without counting it, then once more, and prints one line of JSON with its name and figures.
// Names are those of //benchmarks/limit. A message is one int64. What never ends, or never gets a message, is cut off
// by time.
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "caf/all.hpp"
#include "caf/io/all.hpp"

extern char** environ;

namespace {

using Clock = std::chrono::steady_clock;

class Countdown {
 public:
  void Arm(int64_t count) {
    done_.store(0, std::memory_order_relaxed);
    left_.store(count, std::memory_order_release);
  }

  void Hit() {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    done_.store(1, std::memory_order_release);
    done_.notify_all();
  }

  void Await() { done_.wait(0, std::memory_order_acquire); }

 private:
  std::atomic<int64_t> left_{0};  // acquire-release: the last one sees what the others did
  std::atomic<int> done_{0};      // store-release in Hit, load-acquire in Await
};

Countdown countdown;

double SecondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Lets the workers come to rest between setting up and measuring.
void Settle() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

caf::behavior Ping(caf::event_based_actor* self, caf::actor pong, int64_t rounds) {
  return {[self, pong, left = rounds](int64_t value) mutable {
    if (left-- > 0) {
      self->send(pong, value);
    } else {
      countdown.Hit();
    }
  }};
}

caf::behavior Pong(caf::event_based_actor* self) {
  return {[self](int64_t value) { self->send(caf::actor_cast<caf::actor>(self->current_sender()), value); }};
}

double MeasurePairs(caf::actor_system& system, int64_t pairs) {
  const int64_t rounds = 1'000'000 / pairs / 2;
  countdown.Arm(pairs);
  std::vector<caf::actor> pings;
  for (int64_t i = 0; i < pairs; ++i) pings.push_back(system.spawn(Ping, system.spawn(Pong), rounds));
  Settle();
  const Clock::time_point begin = Clock::now();
  for (const caf::actor& ping : pings) caf::anon_send(ping, int64_t{1});
  countdown.Await();
  return static_cast<double>(rounds * pairs * 2) / SecondsSince(begin);
}

struct RingState {
  caf::actor next;
};

caf::behavior RingNode(caf::stateful_actor<RingState>* self) {
  return {[self](int64_t value) {
            if (value > 0) {
              self->send(self->state.next, value - 1);
            } else {
              countdown.Hit();
            }
          },
          [self](const caf::actor& next) { self->state.next = next; }};
}

double MeasureRing(caf::actor_system& system, int64_t size) {
  constexpr int64_t kHops = 1'000'000;
  countdown.Arm(1);
  std::vector<caf::actor> nodes;
  for (int64_t i = 0; i < size; ++i) nodes.push_back(system.spawn(RingNode));
  for (int64_t i = 0; i < size; ++i) caf::anon_send(nodes[i], nodes[(i + 1) % size]);
  Settle();
  const Clock::time_point begin = Clock::now();
  caf::anon_send(nodes[0], kHops);
  countdown.Await();
  return static_cast<double>(kHops) / SecondsSince(begin);
}

constexpr int64_t kFanInMessages = 1'000'000;

caf::behavior Consumer(caf::event_based_actor*, int64_t count) {
  return {[left = count](int64_t) mutable {
    if (--left == 0) countdown.Hit();
  }};
}

caf::behavior Producer(caf::event_based_actor* self, caf::actor consumer, int64_t count) {
  return {[self, consumer, count](int64_t) {
    for (int64_t i = 0; i < count; ++i) self->send(consumer, i);
  }};
}

double MeasureFanIn(caf::actor_system& system, int64_t producers) {
  const int64_t share = kFanInMessages / producers;
  countdown.Arm(1);
  const caf::actor consumer = system.spawn(Consumer, share * producers);
  std::vector<caf::actor> actors;
  for (int64_t i = 0; i < producers; ++i) actors.push_back(system.spawn(Producer, consumer, share));
  Settle();
  const Clock::time_point begin = Clock::now();
  for (const caf::actor& actor : actors) caf::anon_send(actor, int64_t{1});
  countdown.Await();
  return static_cast<double>(share * producers) / SecondsSince(begin);
}

double MeasureFanInForeign(caf::actor_system& system, int64_t producers) {
  const int64_t share = kFanInMessages / producers;
  countdown.Arm(1);
  const caf::actor consumer = system.spawn(Consumer, share * producers);
  Settle();
  const Clock::time_point begin = Clock::now();
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < producers; ++i) {
    threads.emplace_back([&] {
      for (int64_t value = 0; value < share; ++value) caf::anon_send(consumer, value);
    });
  }
  for (std::thread& thread : threads) thread.join();
  countdown.Await();
  return static_cast<double>(share * producers) / SecondsSince(begin);
}

caf::behavior StopAtOnce(caf::event_based_actor* self) {
  return {[self](int64_t) {
    countdown.Hit();
    self->quit();
  }};
}

caf::behavior Spawner(caf::event_based_actor* self) {
  return {[self](int64_t count) {
    for (int64_t i = 0; i < count; ++i) self->send(self->spawn(StopAtOnce), i);
  }};
}

double MeasureSpawn(caf::actor_system& system, int64_t) {
  constexpr int64_t kActors = 20'000;
  countdown.Arm(kActors);
  const caf::actor spawner = system.spawn(Spawner);
  Settle();
  const Clock::time_point begin = Clock::now();
  caf::anon_send(spawner, kActors);
  countdown.Await();
  return static_cast<double>(kActors) / SecondsSince(begin);
}

// A tenth of what the others run: CAF 0.17 hands every actor that ends to one thread through a queue of 64 places, and
// would need minutes.
constexpr int64_t kLeaves = 100'000;

caf::behavior SkynetNode(caf::event_based_actor* self, caf::actor parent) {
  return {[self, parent](int64_t first, int64_t leaves) {
            constexpr int64_t kChildren = 10;
            if (leaves == 1) {
              self->send(parent, first);
              self->quit();
              return;
            }
            const int64_t share = leaves / kChildren;
            const caf::actor own = self;
            for (int64_t i = 0; i < kChildren; ++i) {
              self->send(self->spawn(SkynetNode, own), first + i * share, share);
            }
          },
          [self, parent, sum = int64_t{0}, answers = 0](int64_t value) mutable {
            sum += value;
            if (++answers < 10) return;
            self->send(parent, sum);
            self->quit();
          }};
}

caf::behavior SkynetRoot(caf::event_based_actor*) {
  return {[](int64_t sum) {
    if (sum != kLeaves * (kLeaves - 1) / 2) std::abort();
    countdown.Hit();
  }};
}

double MeasureSkynet(caf::actor_system& system, int64_t) {
  countdown.Arm(1);
  const caf::actor root = system.spawn(SkynetRoot);
  Settle();
  const Clock::time_point begin = Clock::now();
  caf::anon_send(system.spawn(SkynetNode, root), int64_t{0}, kLeaves);
  countdown.Await();
  return static_cast<double>(kLeaves) / SecondsSince(begin);
}

caf::behavior Server(caf::event_based_actor*) {
  return {[](int64_t value) { return value; }};
}

void AskAgain(caf::event_based_actor* self, const caf::actor& server, int64_t left) {
  if (left == 0) {
    countdown.Hit();
    return;
  }
  self->request(server, caf::infinite, left).then([self, server, left](int64_t) { AskAgain(self, server, left - 1); });
}

caf::behavior Asker(caf::event_based_actor* self, caf::actor server) {
  return {[self, server](int64_t count) { AskAgain(self, server, count); }};
}

double MeasureAsk(caf::actor_system& system, int64_t) {
  constexpr int64_t kAsks = 300'000;
  countdown.Arm(1);
  const caf::actor asker = system.spawn(Asker, system.spawn(Server));
  Settle();
  const Clock::time_point begin = Clock::now();
  caf::anon_send(asker, kAsks);
  countdown.Await();
  return static_cast<double>(kAsks) / SecondsSince(begin);
}

// Written by the receiver, read by the main thread up to received().
struct Arrivals {
  std::vector<int64_t> latencies_ns;
  std::atomic<size_t> received{0};  // release by the receiver after each entry, acquire by the reader
};

int64_t NowNs() { return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count(); }

caf::behavior Receiver(caf::event_based_actor*, Arrivals* arrivals) {
  return {[arrivals](int64_t sent_ns) {
    arrivals->latencies_ns[arrivals->received.load(std::memory_order_relaxed)] = NowNs() - sent_ns;
    arrivals->received.fetch_add(1, std::memory_order_release);
  }};
}

double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

// The figures as JSON members. Busy pairs never end: the process leaves without them.
std::string MeasureLatency(caf::actor_system& system, int64_t pairs) {
  constexpr size_t kMessages = 500;
  constexpr std::chrono::milliseconds kPeriod(1);
  constexpr int kLastWaits = 2000;
  static Arrivals arrivals;
  arrivals.latencies_ns.resize(kMessages);
  const caf::actor receiver = system.spawn(Receiver, &arrivals);
  for (int64_t i = 0; i < pairs; ++i) {
    caf::anon_send(system.spawn(Ping, system.spawn(Pong), int64_t{1} << 60), int64_t{1});
  }
  Settle();
  const double cpu_before = CpuSeconds();
  const Clock::time_point begin = Clock::now();
  for (size_t i = 0; i < kMessages; ++i) {
    std::this_thread::sleep_for(kPeriod);
    caf::anon_send(receiver, NowNs());
  }
  for (int i = 0; i < kLastWaits && arrivals.received.load(std::memory_order_acquire) < kMessages; ++i) {
    std::this_thread::sleep_for(kPeriod);
  }
  const double cores = (CpuSeconds() - cpu_before) / SecondsSince(begin);
  std::vector<int64_t> latencies(
      arrivals.latencies_ns.begin(),
      arrivals.latencies_ns.begin() + static_cast<std::ptrdiff_t>(arrivals.received.load(std::memory_order_acquire)));
  std::sort(latencies.begin(), latencies.end());
  std::string figures =
      "\"delivered\": " + std::to_string(static_cast<double>(latencies.size()) / static_cast<double>(kMessages));
  if (pairs == 0) figures += ", \"cores\": " + std::to_string(cores);
  if (latencies.empty()) return figures;
  const std::map<std::string, double> shares = {{"p50_us", 0.50}, {"p95_us", 0.95}, {"p99_us", 0.99}};
  for (const auto& [name, share] : shares) {
    const int64_t ns = latencies[static_cast<size_t>(share * static_cast<double>(latencies.size() - 1))];
    figures += ", \"" + name + "\": " + std::to_string(1e-3 * static_cast<double>(ns));
  }
  return figures;
}

// The percentiles as JSON members.
std::string Percentiles(std::vector<int64_t> latencies_ns) {
  std::sort(latencies_ns.begin(), latencies_ns.end());
  const auto us = [&](double share) {
    const auto at = static_cast<size_t>(share * static_cast<double>(latencies_ns.size() - 1));
    return std::to_string(1e-3 * static_cast<double>(latencies_ns[at]));
  };
  return "\"p50_us\": " + us(0.50) + ", \"p99_us\": " + us(0.99);
}

// Counts down from the number that it gets first, and says so to whoever sends.
caf::behavior RemoteSink(caf::event_based_actor* self) {
  return {[self, left = int64_t{0}](int64_t value) mutable {
    if (left == 0) {
      left = value;
    } else if (--left == 0) {
      self->send(caf::actor_cast<caf::actor>(self->current_sender()), int64_t{0});
    }
  }};
}

// A process that publishes a sink and an echo, and goes with this one. Returns the ports.
std::pair<uint16_t, uint16_t> StartServer(size_t workers) {
  int output[2];
  if (pipe(output) != 0) std::abort();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output[1], 1);
  std::string words[] = {"/proc/self/exe", "serve/w:" + std::to_string(workers)};
  char* arguments[] = {words[0].data(), words[1].data(), nullptr};
  pid_t pid = 0;
  if (posix_spawn(&pid, arguments[0], &actions, nullptr, arguments, environ) != 0) std::abort();
  close(output[1]);
  std::FILE* const file = fdopen(output[0], "r");
  unsigned sink = 0;
  unsigned echo = 0;
  if (std::fscanf(file, "%u %u", &sink, &echo) != 2) std::abort();
  return {static_cast<uint16_t>(sink), static_cast<uint16_t>(echo)};
}

[[noreturn]] void Serve(caf::actor_system& system) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto publish = [&](const caf::actor& actor) { return *system.middleman().publish(actor, 0, "127.0.0.1"); };
  const unsigned sink = publish(system.spawn(RemoteSink));
  const unsigned echo = publish(system.spawn(Pong));
  std::printf("%u %u\n", sink, echo);
  std::fflush(stdout);
  for (;;) pause();
}

caf::behavior RemoteSource(caf::event_based_actor* self, caf::actor sink) {
  return {[self, sink](int64_t messages) {
    if (messages == 0) {
      countdown.Hit();
      return;
    }
    self->send(sink, messages);
    for (int64_t i = 0; i < messages; ++i) self->send(sink, i);
  }};
}

caf::behavior RemotePing(caf::event_based_actor* self, caf::actor echo, size_t count, std::vector<int64_t>* latencies) {
  return {[=, begin = int64_t{0}](int64_t value) mutable {
    if (begin != 0) latencies->push_back(NowNs() - begin);
    if (latencies->size() == count) {
      countdown.Hit();
      return;
    }
    begin = NowNs();
    self->send(echo, value);
  }};
}

std::string MeasureRemote(caf::actor_system& system, const std::string& program, size_t workers) {
  constexpr int64_t kMessages = 300'000;
  const auto [sink_port, echo_port] = StartServer(workers);
  if (program == "remote_one_way") {
    const caf::actor source = system.spawn(RemoteSource, *system.middleman().remote_actor("127.0.0.1", sink_port));
    double seconds = 0;
    for (const int64_t messages : {kMessages / 10, kMessages}) {
      countdown.Arm(1);
      const Clock::time_point begin = Clock::now();
      caf::anon_send(source, messages);
      countdown.Await();
      seconds = SecondsSince(begin);
    }
    return "\"items_per_second\": " + std::to_string(static_cast<double>(kMessages) / seconds);
  }
  const caf::actor echo = *system.middleman().remote_actor("127.0.0.1", echo_port);
  std::vector<int64_t> latencies;
  for (const size_t count : {size_t{500}, size_t{10'000}}) {
    latencies.clear();
    latencies.reserve(count);
    countdown.Arm(1);
    caf::anon_send(system.spawn(RemotePing, echo, count, &latencies), int64_t{1});
    countdown.Await();
  }
  return Percentiles(std::move(latencies));
}

int Run(const std::string& name) {
  const size_t workers_at = name.rfind("/w:");
  if (workers_at == std::string::npos) {
    std::fprintf(stderr, "caf_programs: \"%s\" does not end in /w:<workers>\n", name.c_str());
    return 2;
  }
  const size_t workers = std::stoul(name.substr(workers_at + 3));
  const std::string program = name.substr(0, std::min(name.find('/'), workers_at));
  const size_t parameter_at = program.size() + 1;
  const int64_t parameter = parameter_at < workers_at ? std::stoll(name.substr(parameter_at)) : 1;

  const std::map<std::string, std::function<double(caf::actor_system&, int64_t)>> rates = {
      {"ping_pong", MeasurePairs}, {"pairs", MeasurePairs}, {"ring", MeasureRing},
      {"fan_in", MeasureFanIn},    {"spawn", MeasureSpawn}, {"fan_in_foreign", MeasureFanInForeign},
      {"skynet", MeasureSkynet},   {"ask", MeasureAsk},
  };
  const bool latency = program == "latency_idle" || program == "latency_busy";
  const bool remote = program == "remote_one_way" || program == "remote_round_trip";
  const auto rate = rates.find(program);
  if (!latency && !remote && program != "serve" && rate == rates.end()) {
    std::fprintf(stderr, "caf_programs: there is no program \"%s\"\n", program.c_str());
    return 2;
  }

  caf::actor_system_config config;
  config.set("scheduler.max-threads", workers);
  if (remote || program == "serve") config.load<caf::io::middleman>();
  caf::actor_system system(config);
  std::string figures;
  if (program == "serve") {
    Serve(system);
  } else if (remote) {
    figures = MeasureRemote(system, program, workers);
  } else if (latency) {
    figures = MeasureLatency(system, program == "latency_idle" ? 0 : parameter);
  } else {
    rate->second(system, parameter);
    figures = "\"items_per_second\": " + std::to_string(rate->second(system, parameter));
  }
  std::printf("{\"name\": \"%s\", %s}\n", name.c_str(), figures.c_str());
  std::fflush(stdout);
  std::_Exit(0);  // the system's destructor would wait for actors that nobody stops
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) return Run(argv[1]);
  std::fprintf(stderr, "usage: caf_programs <program>[/<parameter>]/w:<workers>\n");
  return 2;
}
