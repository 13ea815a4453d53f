// TestAuthority: certificates for tests and benchmarks, made by the openssl of the machine, in a folder that goes with it.
//
//   TestAuthority authority = TestAuthority::Make("ours").value();
//   PemTexts node = authority.Issue({.names = {"localhost", "127.0.0.1"}}).value();
//
// Thread safety: one thread at a time.
#ifndef FRAKTOR_REMOTE_GRPC_TEST_CERTIFICATES_H_
#define FRAKTOR_REMOTE_GRPC_TEST_CERTIFICATES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "fraktor/remote/grpc/grpc_security.h"

namespace fraktor::inline v0 {

struct TestCertificate {
  // Hosts and addresses.
  std::vector<std::string> names = {"localhost", "127.0.0.1"};
  bool is_expired = false;
};

class TestAuthority {
 public:
  // NotFound if there is no openssl.
  static absl::StatusOr<TestAuthority> Make(std::string_view name);

  TestAuthority(TestAuthority&& other) noexcept;
  TestAuthority& operator=(TestAuthority&&) = delete;
  ~TestAuthority();

  // With the authority's own certificate as roots.
  absl::StatusOr<PemTexts> Issue(const TestCertificate& wanted = {});

  // A place for files, which is gone with the authority.
  const std::string& folder() const { return folder_; }

 private:
  explicit TestAuthority(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  int issued_ = 0;
};

// Files in a folder.
absl::StatusOr<PemFiles> WritePemFiles(const std::string& folder, const PemTexts& texts);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_GRPC_TEST_CERTIFICATES_H_
