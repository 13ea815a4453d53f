#include "fraktor/remote/grpc/tls_credentials.h"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"

namespace fraktor::inline v0 {
namespace {

using Provider = std::shared_ptr<grpc::experimental::CertificateProviderInterface>;

std::string Read(const std::string& path) {
  std::ifstream file(path);
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

// Providers that look at files say nothing if these are of no use, and every handshake fails later. The older kind of
// credentials says it when a server is made: so one is made, where nobody sees it.
absl::Status Try(const PemFiles& files) {
  // A name that nobody else has. Containers that share a network may have the same pid, so that alone would not do. It is
  // chance that no toolbox has to know of: nothing but the name depends on it.
  static std::atomic<uint64_t> tries{0};  // Only numbers that differ.
  std::random_device machine;
  const uint64_t chance = uint64_t{machine()} << 32 | machine();
  grpc::SslServerCredentialsOptions ssl(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  ssl.pem_root_certs = Read(files.roots);
  ssl.pem_key_cert_pairs.push_back({Read(files.private_key), Read(files.certificate)});
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(absl::StrCat("unix-abstract:fraktor-tls-", getpid(), "-", tries.fetch_add(1), "-", chance),
                           grpc::SslServerCredentials(ssl), &port);
  grpc::CallbackGenericService nothing;  // A server has to serve something.
  builder.RegisterCallbackGenericService(&nothing);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server != nullptr && port != 0) {
    server->Shutdown();
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("GrpcSecurity: TLS can do nothing with the certificates (roots ",
                                                 files.roots, ", certificate ", files.certificate, ", private_key ",
                                                 files.private_key,
                                                 "); is the key that of the certificate, and are they complete?"));
}

// gRPC has renamed these: what a version has is found out by the compiler.
template <class Options>
void SetProvider(Options& options, const Provider& provider) {
  if constexpr (requires { options.set_identity_certificate_provider(provider); }) {
    options.set_root_certificate_provider(provider);
    options.set_identity_certificate_provider(provider);
  } else {
    options.set_certificate_provider(provider);
    options.watch_root_certs();
    options.watch_identity_key_cert_pairs();
  }
}

template <class Options>
Options ServerOptions(const Provider& provider) {
  if constexpr (requires { Options::Create(provider); }) {
    return Options::Create(provider).value();
  } else {
    return Options(provider);
  }
}

}  // namespace

absl::StatusOr<TlsCredentials> MakeTlsCredentials(const GrpcSecurity& security) {
  const PemFiles& files = security.files();
  if (absl::Status tried = Try(files); !tried.ok()) return tried;
  const Provider provider = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      files.private_key, files.certificate, files.roots, static_cast<unsigned>(absl::ToInt64Seconds(files.reload)));

  auto server = ServerOptions<grpc::experimental::TlsServerCredentialsOptions>(provider);
  SetProvider(server, provider);
  server.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);

  grpc::experimental::TlsChannelCredentialsOptions channel;
  SetProvider(channel, provider);
  channel.set_verify_server_certs(true);
  channel.set_certificate_verifier(std::make_shared<grpc::experimental::HostNameCertificateVerifier>());

  TlsCredentials made{.server = grpc::experimental::TlsServerCredentials(server),
                      .channel = grpc::experimental::TlsCredentials(channel)};
  if (made.server == nullptr || made.channel == nullptr) {
    return absl::InternalError("GrpcSecurity: this gRPC refuses TLS credentials of files");
  }
  return made;
}

}  // namespace fraktor::inline v0
