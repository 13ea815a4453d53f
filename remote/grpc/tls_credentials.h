// TLS as gRPC has it, which differs from version to version: all of it is here.
//
// Thread safety: a function.
#ifndef FRAKTOR_REMOTE_GRPC_TLS_CREDENTIALS_H_
#define FRAKTOR_REMOTE_GRPC_TLS_CREDENTIALS_H_

#include <memory>

#include "absl/status/statusor.h"

#include "fraktor/remote/grpc/grpc_security.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace fraktor::inline v0 {

struct TlsCredentials {
  std::shared_ptr<grpc::ServerCredentials> server;
  std::shared_ptr<grpc::ChannelCredentials> channel;
};

// Of a security that is MutualTls and valid. Both sides ask for a certificate of the other and check it with the roots,
// and the one that connects also that it is of the host; names are left to the caller. InvalidArgument if TLS cannot do
// anything with the certificates.
absl::StatusOr<TlsCredentials> MakeTlsCredentials(const GrpcSecurity& security);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_GRPC_TLS_CREDENTIALS_H_
