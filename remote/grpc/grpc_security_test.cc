#include "fraktor/remote/grpc/grpc_security.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/event/log.h"
#include "fraktor/remote/grpc/grpc_test_ends.h"
#include "fraktor/remote/grpc/grpc_transport.h"
#include "fraktor/remote/grpc/test_certificates.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor {
namespace {

class Lines final : public LogSink {
 public:
  void Write(const LogRecord& record) override { lines.Add(std::string(record.text)); }
  Happenings lines;
};

class GrpcSecurityTest : public testing::Test {
 protected:
  static TestAuthority Authority(std::string_view name) {
    absl::StatusOr<TestAuthority> made = TestAuthority::Make(name);
    EXPECT_TRUE(made.ok()) << made.status() << "; these tests need the openssl program";
    return *std::move(made);
  }
  GrpcTransportOptions With(GrpcSecurity security) { return {.security = std::move(security), .log = &log_}; }
  // OK, or why no stream could be opened from one to the other.
  static absl::Status Try(End& from, End& to, std::string_view host = "localhost") {
    Sending sending(from, At(to.transport->port(), host));
    if (sending.listener->seen.Await(1).front() != "opened") return sending.listener->why();
    sending.stream->Write("hello");
    to.receiver->frames.Await(1);
    sending.stream->Close();
    sending.listener->seen.AwaitClosed();
    return absl::OkStatus();
  }

  Lines log_;
  TestAuthority ours_ = Authority("ours");
};

TEST_F(GrpcSecurityTest, LetsPeersTalkWhoseCertificatesAndNamesAreRight) {
  const PemTexts a_texts = ours_.Issue({.names = {"localhost", "a.nodes.test"}}).value();
  const PemFiles b_files =
      WritePemFiles(ours_.folder(), ours_.Issue({.names = {"localhost", "b.nodes.test"}}).value()).value();
  End a(With(GrpcSecurity::MutualTls(a_texts, {"b.nodes.test"})));
  End b(With(GrpcSecurity::MutualTls(b_files, {"*.nodes.test"})));
  EXPECT_TRUE(Try(a, b).ok());
  EXPECT_EQ(b.receiver->last_origin().hosts, (std::vector<std::string>{"localhost", "a.nodes.test"}));
  EXPECT_TRUE(Try(b, a).code() == absl::StatusCode::kOk);
}

TEST_F(GrpcSecurityTest, RefusesOtherAuthoritiesAndExpiredCertificatesAndOtherHosts) {
  TestAuthority theirs = Authority("theirs");
  PemTexts stranger = theirs.Issue().value();
  End good(With(GrpcSecurity::MutualTls(ours_.Issue().value(), {"*"})));
  // One who believes us, and whom we do not believe.
  stranger.roots = ours_.Issue().value().roots;
  End bad(With(GrpcSecurity::MutualTls(stranger, {"*"})));
  for (const auto& [from, to] : {std::pair<End*, End*>(&bad, &good), std::pair<End*, End*>(&good, &bad)}) {
    const absl::Status status = Try(*from, *to);
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_NE(std::string(status.message()).find("signed by the roots"), std::string::npos) << status;
  }
  End old(With(GrpcSecurity::MutualTls(ours_.Issue({.is_expired = true}).value(), {"*"})));
  EXPECT_TRUE(absl::IsUnavailable(Try(good, old)));
  EXPECT_TRUE(absl::IsUnavailable(Try(old, good)));
  End elsewhere(With(GrpcSecurity::MutualTls(ours_.Issue({.names = {"elsewhere.test"}}).value(), {"*"})));
  EXPECT_TRUE(absl::IsUnavailable(Try(good, elsewhere)));
  EXPECT_TRUE(Try(good, good).ok());
  // One who does not protect itself does not get in either.
  End bare;
  EXPECT_FALSE(Try(bare, good).ok());
  EXPECT_FALSE(Try(good, bare).ok());
}

TEST_F(GrpcSecurityTest, RefusesNamesThatAreNotOnTheList) {
  const PemTexts texts = ours_.Issue({.names = {"localhost", "a.nodes.test"}}).value();
  End open(With(GrpcSecurity::MutualTls(texts, {"*"})));
  End choosy(With(GrpcSecurity::MutualTls(texts, {"b.nodes.test", "*.test", "*.a.nodes.test"})));
  const absl::Status there = Try(open, choosy);
  EXPECT_TRUE(absl::IsPermissionDenied(there)) << there;
  EXPECT_NE(std::string(there.message()).find("[localhost, a.nodes.test]"), std::string::npos) << there;
  // Whose certificate, and whose list.
  EXPECT_NE(std::string(there.message()).find("the certificate of ipv"), std::string::npos) << there;
  EXPECT_NE(std::string(there.message()).find("in the GrpcSecurity of the node that listens at localhost"),
            std::string::npos)
      << there;
  EXPECT_NE(log_.lines.Await(1)[0].find("peer_names"), std::string::npos) << log_.lines.Await(1)[0];
  const absl::Status here = Try(choosy, open);
  EXPECT_TRUE(absl::IsPermissionDenied(here)) << here;
  EXPECT_NE(
      std::string(here.message())
          .find(absl::StrCat("the certificate of localhost:", open.transport->port(), " is for [localhost, a.nod")),
      std::string::npos)
      << here;
  EXPECT_NE(std::string(here.message()).find("in the GrpcSecurity of the node that connects to it"), std::string::npos);
  EXPECT_EQ(open.receiver->frames.Await(0).size(), 0u);
  // Who uses the stream logs what becomes of it: nobody else does.
  EXPECT_EQ(log_.lines.Await(1).size(), 1u);
}

TEST_F(GrpcSecurityTest, UsesNewCertificatesWithoutARestart) {
  TestAuthority theirs = Authority("theirs");
  const PemTexts before = ours_.Issue().value();
  const PemTexts after = theirs.Issue().value();
  GrpcSecurity in_memory = GrpcSecurity::MutualTls(before, {"*"});
  const std::string folder = ours_.folder() + "/files";
  std::filesystem::create_directory(folder);
  End a(With(in_memory));
  End b(With(GrpcSecurity::MutualTls(WritePemFiles(folder, before).value(), {"*"})));
  End rest(With(GrpcSecurity::MutualTls(after, {"*"})));
  EXPECT_TRUE(Try(a, b).ok());
  EXPECT_TRUE(absl::IsUnavailable(Try(a, rest)));
  Sending stays(a, At(b.transport->port(), "localhost"));
  stays.listener->seen.Await(1);
  EXPECT_TRUE(in_memory.Replace(after).ok());
  ASSERT_TRUE(WritePemFiles(folder, after).ok());
  // It is looked at once a second.
  while (!Try(a, rest).ok() || !Try(rest, a).ok()) {
  }
  while (!Try(b, rest).ok() || !Try(rest, b).ok()) {
  }
  EXPECT_TRUE(Try(a, b).ok());
  stays.stream->Write("still open");
  EXPECT_EQ(stays.listener->seen.Await(2).back(), "written");
}

TEST_F(GrpcSecurityTest, SaysWhatIsWrongWithCertificates) {
  const PemTexts good = ours_.Issue().value();
  const auto refuses = [&](GrpcSecurity security, std::string_view text) {
    const absl::Status status = GrpcTransport::Listen(With(std::move(security))).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(std::string(status.message()).find(text), std::string::npos) << status;
  };
  refuses(GrpcSecurity::MutualTls(good, {}), "names of peers");
  refuses(GrpcSecurity::MutualTls(good, {"a.nodes.test", ""}), "one of the peer_names of MutualTls is empty");
  refuses(GrpcSecurity::MutualTls(PemTexts{}, {"*"}), "roots");
  PemTexts texts = good;
  texts.certificate = "no certificate";
  refuses(GrpcSecurity::MutualTls(texts, {"*"}), "certificate");
  texts = good;
  texts.private_key = ours_.Issue().value().private_key;
  refuses(GrpcSecurity::MutualTls(texts, {"*"}), "is the key that of the certificate");
  PemFiles files = WritePemFiles(ours_.folder(), good).value();
  files.reload = absl::Milliseconds(10);
  refuses(GrpcSecurity::MutualTls(files, {"*"}), "reload");
  files.reload = absl::Seconds(1);
  files.private_key = ours_.folder() + "/nowhere.key";
  refuses(GrpcSecurity::MutualTls(files, {"*"}), "nowhere.key");
  GrpcSecurity of_files = GrpcSecurity::MutualTls(WritePemFiles(ours_.folder(), good).value(), {"*"});
  EXPECT_TRUE(absl::IsFailedPrecondition(of_files.Replace(good)));
  GrpcSecurity of_texts = GrpcSecurity::MutualTls(good, {"*"});
  EXPECT_TRUE(absl::IsInvalidArgument(of_texts.Replace(PemTexts{})));
}

TEST_F(GrpcSecurityTest, WarnsOfOpenDoors) {
  GrpcTransportOptions open = With(GrpcSecurity::Insecure());
  open.bind_host = "0.0.0.0";
  End a(open);
  EXPECT_NE(log_.lines.Await(1)[0].find("not protected"), std::string::npos);
  End b;
  EXPECT_TRUE(Try(b, a).ok());
}

}  // namespace
}  // namespace fraktor
