// Certificates for the nodes of the bank: an authority that signs one for each, and forgets its key.
//
//   FRAKTOR_RETURN_IF_ERROR(MakeCertificates(folder, {"storage", "compute-1"}));
//   GrpcSecurity security = SecurityOf(folder, "compute-1");
//
// They are made by the openssl of the machine, are good for "localhost" and for some days, and are there to show mutual TLS:
// where nodes are on several machines, the operator's authority makes them.
#ifndef FRAKTOR_EXAMPLES_BANK_CERTIFICATES_H_
#define FRAKTOR_EXAMPLES_BANK_CERTIFICATES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

#include "fraktor/remote/grpc/grpc_security.h"

namespace bank {

// Writes roots.pem, and NAME.pem and NAME.key for each, over what is there. FailedPrecondition if openssl is missing or
// fails; openssl.log in the folder has what it says.
absl::Status MakeCertificates(const std::string& folder, const std::vector<std::string>& names);

// Who has one of them may talk to who has another.
fraktor::GrpcSecurity SecurityOf(const std::string& folder, const std::string& name);

}  // namespace bank

#endif  // FRAKTOR_EXAMPLES_BANK_CERTIFICATES_H_
