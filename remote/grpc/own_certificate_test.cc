#include "fraktor/remote/grpc/own_certificate.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/event/log.h"
#include "fraktor/remote/grpc/grpc_node.h"
#include "fraktor/remote/grpc/grpc_security.h"
#include "fraktor/remote/grpc/grpc_test_ends.h"
#include "fraktor/remote/grpc/test_certificates.h"

namespace fraktor {
namespace {

using Names = std::vector<std::string>;

class OwnCertificateTest : public testing::Test {
 protected:
  TestAuthority authority_ = TestAuthority::Make("ours").value();
};

TEST_F(OwnCertificateTest, IsReadWithItsDatesAndNames) {
  const PemTexts texts = authority_.Issue({.names = {"localhost", "127.0.0.1", "*.nodes.test", "2001:db8::1"}}).value();
  const absl::StatusOr<OwnCertificate> read = ReadOwnCertificate(texts.certificate);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->names, (Names{"localhost", "127.0.0.1", "*.nodes.test", "2001:db8::1"}));
  EXPECT_LE(read->not_before, absl::Now());
  EXPECT_GT(read->not_after, absl::Now());
}

TEST_F(OwnCertificateTest, IsRefusedIfItIsNone) {
  for (const char* const text : {"", "-----BEGIN CERTIFICATE-----", "-----BEGIN CERTIFICATE-----\n????\n-----END",
                                 "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ReadOwnCertificate(text).status())) << text;
  }
  // Cut anywhere, it is refused or read, and nothing else happens.
  const std::string whole = authority_.Issue().value().certificate;
  for (size_t size = 0; size < whole.size(); size += 4) {
    ReadOwnCertificate(whole.substr(0, size) + "\n-----END CERTIFICATE-----").status().IgnoreError();
  }
}

TEST_F(OwnCertificateTest, IsInTroubleIfItIsOutOfDateOrForOthers) {
  const absl::Time noon = absl::FromUnixSeconds(1'000'000);
  const OwnCertificate certificate{.not_before = noon - absl::Hours(1),
                                   .not_after = noon + absl::Hours(1),
                                   .names = {"a.nodes.test", "*.shop.test", "::1"}};
  for (const char* const host : {"a.nodes.test", "A.Nodes.Test", "x.shop.test", "[::1]"}) {
    EXPECT_TRUE(TroublesOf(certificate, host, noon).empty()) << host;
  }
  for (const char* const host : {"b.nodes.test", "shop.test", "x.y.shop.test", ".shop.test", "localhost"}) {
    EXPECT_EQ(TroublesOf(certificate, host, noon).size(), 1u) << host;
  }
  EXPECT_NE(TroublesOf(certificate, "localhost", noon)[0].find("is for [a.nodes.test, *.shop.test, ::1]"),
            std::string::npos);
  const Names late = TroublesOf(certificate, "a.nodes.test", noon + absl::Hours(2));
  ASSERT_EQ(late.size(), 1u);
  EXPECT_NE(late[0].find("has expired at 1970-01-12 14:46:40 UTC"), std::string::npos) << late[0];
  EXPECT_EQ(TroublesOf(certificate, "a.nodes.test", noon - absl::Hours(2)).size(), 1u);
}

class Lines final : public LogSink {
 public:
  void Write(const LogRecord& record) override {
    if (record.level >= LogLevel::kWarning) lines.Add(std::string(record.text));
  }
  Happenings lines;
};

TEST_F(OwnCertificateTest, IsComplainedOfWhenANodeStarts) {
  Lines log;
  GrpcNodeOptions options{
      .name = "shop",
      .host = "localhost",
      .transport = {.security = GrpcSecurity::MutualTls(
                        authority_.Issue({.names = {"a.test"}, .is_expired = true}).value(), {"*"})}};
  options.system.log_sink = &log;
  const auto node = StartGrpcNode(std::move(options));
  ASSERT_TRUE(node.ok()) << node.status();
  const Names lines = log.lines.Await(2);
  EXPECT_NE(lines[0].find("the certificate of this node has expired"), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find("is for [a.test], and the node calls itself localhost"), std::string::npos) << lines[1];
}

}  // namespace
}  // namespace fraktor
