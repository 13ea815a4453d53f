#include "fraktor/remote/grpc/test_certificates.h"

#include <stdlib.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "fraktor/remote/grpc/child_process.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {
namespace {

absl::Status Run(std::vector<std::string> command) {
  // What it says matters only if something is wrong, and then the command can be run by hand.
  FRAKTOR_ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::Start(command));
  const int code = child.Wait();
  if (code == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(absl::StrJoin(command, " "), " ended with ", code));
}

std::string Read(const std::string& path) {
  std::ifstream file(path);
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

absl::Status Write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file.good() ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("cannot write ", path));
}

std::string AltName(const std::string& name) {
  const bool is_address = !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) != 0;
  return absl::StrCat(is_address ? "IP:" : "DNS:", name);
}

const std::vector<std::string> kNewKey = {"-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc"};

}  // namespace

absl::StatusOr<TestAuthority> TestAuthority::Make(std::string_view name) {
  const char* const parent = getenv("TEST_TMPDIR");
  std::string folder = absl::StrCat(parent == nullptr ? "/tmp" : parent, "/authority.XXXXXX");
  if (mkdtemp(folder.data()) == nullptr) return absl::UnavailableError(absl::StrCat("cannot make ", folder));
  TestAuthority authority(folder);
  std::vector<std::string> command = {"openssl", "req", "-x509", "-days", "3650", "-subj"};
  command.push_back(absl::StrCat("/CN=", std::string(name)));
  command.insert(command.end(), kNewKey.begin(), kNewKey.end());
  for (const std::string& word :
       {std::string("-keyout"), folder + "/ca.key", std::string("-out"), folder + "/ca.pem"}) {
    command.push_back(word);
  }
  FRAKTOR_RETURN_IF_ERROR(Run(command));
  FRAKTOR_RETURN_IF_ERROR(Write(folder + "/index.txt", ""));
  FRAKTOR_RETURN_IF_ERROR(Write(folder + "/serial", "1000\n"));
  return authority;
}

TestAuthority::TestAuthority(TestAuthority&& other) noexcept
    : folder_(std::exchange(other.folder_, {})), issued_(other.issued_) {}

TestAuthority::~TestAuthority() {
  if (folder_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

absl::StatusOr<PemTexts> TestAuthority::Issue(const TestCertificate& wanted) {
  const std::string base = absl::StrCat(folder_, "/", ++issued_);
  std::vector<std::string> names;
  for (const std::string& name : wanted.names) names.push_back(AltName(name));
  FRAKTOR_RETURN_IF_ERROR(
      Write(base + ".cnf", absl::StrCat("[ca]\ndefault_ca=ours\n[ours]\ndatabase=", folder_,
                                        "/index.txt\nserial=", folder_, "/serial\nnew_certs_dir=", folder_,
                                        "\ndefault_md=sha256\npolicy=any\nunique_subject=no\n"
                                        "x509_extensions=leaf\n[any]\ncommonName=supplied\n[leaf]\n"
                                        "subjectAltName=",
                                        absl::StrJoin(names, ","), "\n")));
  std::vector<std::string> request = {"openssl", "req",         "-new", "-subj",      "/CN=node",
                                      "-keyout", base + ".key", "-out", base + ".csr"};
  request.insert(request.end(), kNewKey.begin(), kNewKey.end());
  FRAKTOR_RETURN_IF_ERROR(Run(request));
  std::vector<std::string> sign = {"openssl",  "ca",
                                   "-batch",   "-notext",
                                   "-config",  base + ".cnf",
                                   "-cert",    folder_ + "/ca.pem",
                                   "-keyfile", folder_ + "/ca.key",
                                   "-in",      base + ".csr",
                                   "-out",     base + ".pem"};
  for (const std::string& word :
       wanted.is_expired ? std::vector<std::string>{"-startdate", "20200101000000Z", "-enddate", "20200201000000Z"}
                         : std::vector<std::string>{"-days", "30"}) {
    sign.push_back(word);
  }
  FRAKTOR_RETURN_IF_ERROR(Run(sign));
  return PemTexts{
      .roots = Read(folder_ + "/ca.pem"), .certificate = Read(base + ".pem"), .private_key = Read(base + ".key")};
}

absl::StatusOr<PemFiles> WritePemFiles(const std::string& folder, const PemTexts& texts) {
  PemFiles files{.roots = folder + "/roots.pem",
                 .certificate = folder + "/node.pem",
                 .private_key = folder + "/node.key",
                 .reload = absl::Seconds(1)};
  FRAKTOR_RETURN_IF_ERROR(Write(files.roots, texts.roots));
  FRAKTOR_RETURN_IF_ERROR(Write(files.private_key, texts.private_key));
  FRAKTOR_RETURN_IF_ERROR(Write(files.certificate, texts.certificate));
  return files;
}

}  // namespace fraktor::inline v0
