#include "fraktor/examples/bank/certificates.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/remote/grpc/child_process.h"
#include "fraktor/utils/status/status_macros.h"

namespace bank {
namespace {

absl::Status RunOpenssl(const std::string& folder, const std::vector<std::string>& arguments) {
  const std::string log = absl::StrCat(folder, "/openssl.log");
  std::vector<std::string> command = {"sh", "-c", "exec openssl \"$@\" 2>>\"$0\"", log};
  command.insert(command.end(), arguments.begin(), arguments.end());
  FRAKTOR_ASSIGN_OR_RETURN(fraktor::ChildProcess openssl, fraktor::ChildProcess::Start(command));
  const int code = openssl.Wait();
  if (code == 0) return absl::OkStatus();
  if (code == 127) {
    return absl::FailedPreconditionError("there is no program openssl, which makes the certificates: install it");
  }
  return absl::FailedPreconditionError(absl::StrCat("openssl ended with ", code, "; ", log, " has what it said"));
}

// A key and a certificate for it, of the given name and with further arguments.
absl::Status Make(const std::string& folder, const std::string& name, std::vector<std::string> further) {
  const std::string path = absl::StrCat(folder, "/", name);
  std::vector<std::string> arguments = {"req",
                                        "-x509",
                                        "-newkey",
                                        "ec",
                                        "-pkeyopt",
                                        "ec_paramgen_curve:prime256v1",
                                        "-noenc",
                                        "-days",
                                        "30",
                                        "-subj",
                                        absl::StrCat("/CN=bank ", name),
                                        "-keyout",
                                        path + ".key",
                                        "-out",
                                        path + ".pem"};
  arguments.insert(arguments.end(), further.begin(), further.end());
  return RunOpenssl(folder, arguments);
}

}  // namespace

absl::Status MakeCertificates(const std::string& folder, const std::vector<std::string>& names) {
  FRAKTOR_RETURN_IF_ERROR(Make(folder, "roots", {}));
  const std::string roots = absl::StrCat(folder, "/roots");
  for (const std::string& name : names) {
    FRAKTOR_RETURN_IF_ERROR(
        Make(folder, name,
             {"-CA", roots + ".pem", "-CAkey", roots + ".key", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
              "-addext", "basicConstraints=critical,CA:FALSE"}));
  }
  // Nobody gets a certificate from now on.
  std::error_code failed;
  std::filesystem::remove(roots + ".key", failed);
  if (!failed) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("cannot remove ", roots, ".key: ", failed.message()));
}

fraktor::GrpcSecurity SecurityOf(const std::string& folder, const std::string& name) {
  return fraktor::GrpcSecurity::MutualTls(fraktor::PemFiles{.roots = absl::StrCat(folder, "/roots.pem"),
                                                            .certificate = absl::StrCat(folder, "/", name, ".pem"),
                                                            .private_key = absl::StrCat(folder, "/", name, ".key")},
                                          {"localhost"});
}

}  // namespace bank
