// GrpcTransport: frames over gRPC, one stream for each peer and lane, each on a connection of its own.
//
//   GrpcTransportOptions options{.security = GrpcSecurity::MutualTls(PemFiles{...}, {"*.nodes.shop.internal"})};
//   options.bind_host = "0.0.0.0";
//   std::unique_ptr<Transport> transport = GrpcTransport::Listen(options).value();
//   RemotingConfig remoting{.canonical_hostname = "node-1.nodes.shop.internal", .canonical_port = transport->port()};
//
// There is no default for the security: both sides show certificates, or the program says in so many words that they do
// not.
//
// Memory: of what is sent, a stream has one frame; more waits in the association. Of what is received, max_inbound_bytes
// may be read and not handled yet; gRPC is told to keep no more than that, and 16 MiB for connections, at which peers have
// to wait.
//
// gRPC's threads stay as long as the process. With gRPC 1.51, one that has run the handlers of a small frame
// (FrameSequel) waits for up to 5ms before it polls again, so that the other one need not wake it for each frame: a frame
// may wait as long as that if the other one is kept by a handler then.
//
// Thread safety: as Transport. Callbacks come from gRPC's threads.
#ifndef FRAKTOR_REMOTE_GRPC_GRPC_TRANSPORT_H_
#define FRAKTOR_REMOTE_GRPC_GRPC_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/event/log.h"
#include "fraktor/remote/grpc/grpc_security.h"
#include "fraktor/remote/transport/transport.h"

namespace fraktor::inline v0 {

struct GrpcTransportOptions {
  // Where to listen: it need not be the address that others know.
  std::string bind_host = "127.0.0.1";
  // 0 picks one.
  uint16_t bind_port = 0;
  GrpcSecurity security;
  // Frames at least as large as the association writes: WireLimits.
  TransportLimits limits = {};
  // Streams of peers; further ones are refused. A peer has three.
  size_t max_inbound_streams = 4096;
  // A connection that is not there after so long has failed.
  absl::Duration connect_timeout = absl::Seconds(5);
  // A connection that is silent for so long is asked whether it is there, and is broken if no answer comes in time.
  absl::Duration keepalive = absl::Seconds(20);
  absl::Duration keepalive_timeout = absl::Seconds(10);
  // Where warnings go; null: stderr. It must outlive the transport.
  LogSink* log = nullptr;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

class GrpcTransport {
 public:
  // InvalidArgument for bad options or certificates, Unavailable if the port cannot be had.
  static absl::StatusOr<std::unique_ptr<Transport>> Listen(const GrpcTransportOptions& options);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_GRPC_GRPC_TRANSPORT_H_
