// GrpcSecurity: how nodes know that they talk to whom they think, and that nobody else listens.
//
//   GrpcSecurity security = GrpcSecurity::MutualTls(
//       PemFiles{.roots = "ca.pem", .certificate = "node.pem", .private_key = "node.key"}, {"*.nodes.shop.internal"});
//
// With MutualTls both sides show a certificate, which the roots must have signed, which must be in date, and of whose
// names one must be on the list. A node that is connected to must also have its host among its names. Files are looked at
// again and again, texts are replaced by Replace: handshakes from then on use what is new, and streams that are open stay.
//
// Without it nothing is protected. A program has to say so: InsecureLoopback for what never leaves the machine, Insecure
// for the rest, which is logged as a warning.
//
// Thread safety: any thread. Copies are the same security: Replace is for all of them.
#ifndef FRAKTOR_REMOTE_GRPC_GRPC_SECURITY_H_
#define FRAKTOR_REMOTE_GRPC_GRPC_SECURITY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace fraktor::inline v0 {

// Where the certificates are, in PEM. Change the key and its certificate together, by renaming a folder or a link to one:
// a pair that does not match is of no use while it lasts.
struct PemFiles {
  std::string roots = {};
  std::string certificate = {};
  std::string private_key = {};
  // How often they are looked at: whole seconds, at least one.
  absl::Duration reload = absl::Seconds(10);
};

// The certificates themselves, in PEM.
struct PemTexts {
  std::string roots = {};
  std::string certificate = {};
  std::string private_key = {};
};

class GrpcSecurity {
 public:
  // Names of peers, as their certificates have them: "node-1.shop.internal"; "*.shop.internal" for one label, whichever;
  // "*" for everybody whom the roots have signed.
  static GrpcSecurity MutualTls(PemFiles files, std::vector<std::string> peer_names);
  static GrpcSecurity MutualTls(const PemTexts& texts, std::vector<std::string> peer_names);
  // Nothing is protected, and nobody but this machine gets in: refused for other addresses to listen at.
  static GrpcSecurity InsecureLoopback();
  // Nothing is protected: whoever reaches the port may send, and read along.
  static GrpcSecurity Insecure();

  // From the next second on handshakes use these. FailedPrecondition if it was not made of texts, InvalidArgument for
  // texts that are none in PEM.
  absl::Status Replace(const PemTexts& texts);

  enum class Kind : uint8_t { kMutualTls, kInsecureLoopback, kInsecure };
  Kind kind() const { return kind_; }
  // Whether a peer that shows this name is on the list.
  bool Admits(std::string_view name) const;
  // InvalidArgument that says what is missing and where.
  absl::Status Validate() const;
  // Where the certificates are read, also those that were given as texts, which never get to a disk.
  const PemFiles& files() const { return files_; }

 private:
  class Texts;
  explicit GrpcSecurity(Kind kind) : kind_(kind) {}

  Kind kind_;
  PemFiles files_;
  std::vector<std::string> peer_names_;
  // Null unless it was made of texts.
  std::shared_ptr<Texts> texts_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_GRPC_GRPC_SECURITY_H_
