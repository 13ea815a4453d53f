// What is wrong with a node's own certificate, said when the node starts: every peer would refuse it, each with words of
// its own, and somewhere else.
//
//   for (const std::string& trouble : TroublesOf(ReadOwnCertificate(pem).value(), "node-1.shop.internal", now)) Warn(trouble);
//
// Thread safety: functions of their arguments.
#ifndef FRAKTOR_REMOTE_GRPC_OWN_CERTIFICATE_H_
#define FRAKTOR_REMOTE_GRPC_OWN_CERTIFICATE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace fraktor::inline v0 {

// Of a certificate of X.509, what a peer looks at besides who has signed it.
struct OwnCertificate {
  absl::Time not_before;
  absl::Time not_after;
  // Hosts, with wildcards, and addresses as text.
  std::vector<std::string> names = {};
};

// The first certificate of a text in PEM. InvalidArgument if there is none, or it cannot be read.
absl::StatusOr<OwnCertificate> ReadOwnCertificate(std::string_view pem);

// Why peers that call this node by `host` will refuse it; empty if they will not.
std::vector<std::string> TroublesOf(const OwnCertificate& certificate, std::string_view host, absl::Time now);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_GRPC_OWN_CERTIFICATE_H_
