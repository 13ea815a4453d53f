// A bare gRPC stream of byte buffers, as little as there can be above gRPC: what links of nodes are measured against.
//
//   BareServer server;                                              // one process
//   double seconds = RunBareOneWay(server_port, 1'000'000);         // the other
//
// A message is an int64 behind its length. One way, a producer appends messages to a buffer and one write is under way
// at a time, of all that has come meanwhile; at 256 KiB the producer waits. So it is as well batched as it can be, and
// nothing waits for a timer.
#ifndef FRAKTOR_BENCHMARKS_REMOTE_BARE_STREAM_H_
#define FRAKTOR_BENCHMARKS_REMOTE_BARE_STREAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "fraktor/benchmarks/measuring/program_time.h"

namespace fraktor::inline v0 {

// Adds up what comes on streams without an answer until they end, and sends back what comes on the others.
class BareServer {
 public:
  BareServer();
  ~BareServer();
  uint16_t port() const;

 private:
  class Parts;
  const std::unique_ptr<Parts> parts_;
};

// How long it takes until the other side has counted all messages. Negative if it has counted others.
double RunBareOneWay(uint16_t port, int64_t messages);

// How long each round trip takes.
std::vector<ProgramClock::duration> RunBareRoundTrips(uint16_t port, int64_t count);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_BENCHMARKS_REMOTE_BARE_STREAM_H_
