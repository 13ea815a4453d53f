#include "fraktor/remote/grpc/grpc_transport.h"

#include <netdb.h>
#include <sys/socket.h>

#include <cstdlib>
#include <memory>
#include <semaphore>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "fraktor/remote/grpc/grpc_test_ends.h"

namespace fraktor {
namespace {

TEST(GrpcTransport, BringsFramesInOrderAndEndsStreamsOnBothSides) {
  End a;
  End b;
  Sending sending(a, b);
  sending.listener->seen.Await(1);
  for (int i = 0; i < 20; ++i) {
    // Small ones, and ones that come in pieces.
    sending.stream->Write(absl::StrCat(i, std::string(i % 2 == 0 ? 0 : 200'000, 'x')));
    sending.listener->seen.Await(static_cast<size_t>(i) + 2);
  }
  sending.stream->Write("the last one");
  const std::vector<std::string> frames = b.receiver->frames.Await(21);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(frames[static_cast<size_t>(i)].substr(0, i % 2 == 0 ? 20 : absl::StrCat(i).size()), absl::StrCat(i));
  }
  EXPECT_EQ(frames.back(), "the last one");
  EXPECT_NE(b.receiver->last_origin().endpoint.find("127.0.0.1"), std::string::npos);
  EXPECT_TRUE(b.receiver->last_origin().hosts.empty());
  sending.listener->seen.Await(22);
  sending.stream->Close();
  EXPECT_EQ(sending.listener->seen.AwaitClosed().size(), 23u);
  EXPECT_TRUE(absl::IsCancelled(sending.listener->why())) << sending.listener->why();
  b.receiver->closed.AwaitClosed();
  sending.stream->Write("nothing happens");
  EXPECT_EQ(b.receiver->frames.Await(21).size(), 21u);
}

TEST(GrpcTransport, SaysThatNobodyIsThereAndFindsWhoComesLater) {
  End a;
  uint16_t free_port = 0;
  {
    End gone;
    free_port = gone.transport->port();
  }
  Sending early(a, At(free_port));
  EXPECT_EQ(early.listener->seen.AwaitClosed().size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(early.listener->why())) << early.listener->why();
  EXPECT_NE(early.listener->why().message().find(absl::StrCat("127.0.0.1:", free_port)), absl::string_view::npos);
  early.stream->Write("into the void");
  early.stream->Close();
  GrpcTransportOptions options = OnLoopback();
  options.bind_port = free_port;
  End b(options);
  Sending late(a, b);
  EXPECT_EQ(late.listener->seen.Await(1).front(), "opened");
}

// Where a name has two addresses, another program may have the same port at the other one.
TEST(GrpcTransport, FindsNodesAtLocalhostWhateverElseIsThere) {
  End a;
  End node;
  GrpcTransportOptions on_v6 = OnLoopback();
  on_v6.bind_host = "::1";
  on_v6.bind_port = node.transport->port();
  if (!GrpcTransport::Listen(on_v6).ok()) GTEST_SKIP() << "this machine has no IPv6, or somebody has the port";
  const End stranger(on_v6);
  Sending sending(a, At(node.transport->port(), "localhost"));
  EXPECT_EQ(sending.listener->seen.Await(1).front(), "opened");
  sending.stream->Write("to the node");
  EXPECT_EQ(node.receiver->frames.Await(1).front(), "to the node");
}

// gRPC looks names up by itself, and knows both addresses of localhost, unless it is told to ask the system.
bool LooksUpBothAddresses() {
  const char* const resolver = std::getenv("GRPC_DNS_RESOLVER");
  if (resolver == nullptr || std::string_view(resolver) != "native") return true;
  addrinfo* found = nullptr;
  if (::getaddrinfo("localhost", nullptr, nullptr, &found) != 0) return false;
  bool has_v6 = false;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) has_v6 |= each->ai_family == AF_INET6;
  ::freeaddrinfo(found);
  return has_v6;
}

// By the second try.
TEST(GrpcTransport, FindsANodeThatHasOnlyTheOtherAddressOfLocalhost) {
  if (!LooksUpBothAddresses()) GTEST_SKIP() << "localhost has one address here";
  End a;
  GrpcTransportOptions on_v6 = OnLoopback();
  on_v6.bind_host = "::1";
  if (!GrpcTransport::Listen(on_v6).ok()) GTEST_SKIP() << "this machine has no IPv6";
  const End only_v6(on_v6);
  Sending first(a, At(only_v6.transport->port(), "localhost"));
  EXPECT_EQ(first.listener->seen.AwaitClosed(), std::vector<std::string>{"closed"});
  Sending second(a, At(only_v6.transport->port(), "localhost"));
  EXPECT_EQ(second.listener->seen.Await(1).front(), "opened");
}

TEST(GrpcTransport, ClosesStreamsThatTheirReceiverCutsOrThatLoseTheirPeer) {
  End a;
  End b;
  Sending refused(a, b);
  refused.listener->seen.Await(1);
  refused.stream->Write("cut me");
  refused.listener->seen.AwaitClosed();
  EXPECT_TRUE(absl::IsInvalidArgument(refused.listener->why())) << refused.listener->why();
  b.receiver->closed.Await(1);
  Sending cut(a, b);
  cut.listener->seen.Await(1);
  b.transport->Cut(b.receiver->last_stream());
  cut.listener->seen.AwaitClosed();
  b.receiver->closed.Await(2);
  b.transport->Cut(b.receiver->last_stream());  // Nothing happens.
  Sending lost(a, b);
  lost.listener->seen.Await(1);
  b.transport = nullptr;
  EXPECT_EQ(lost.listener->seen.AwaitClosed(), (std::vector<std::string>{"opened", "closed"}));
  EXPECT_EQ(b.receiver->closed.Await(2).size(), 2u) << "it ends without a word";
}

TEST(GrpcTransport, RefusesStreamsThatAreNotWantedOrTooMany) {
  GrpcTransportOptions few = OnLoopback();
  few.max_inbound_streams = 1;
  End a;
  End b(few);
  Sending first(a, b);
  first.listener->seen.Await(1);
  Sending second(a, b);
  EXPECT_EQ(second.listener->seen.AwaitClosed(), std::vector<std::string>{"closed"});
  EXPECT_TRUE(absl::IsResourceExhausted(second.listener->why())) << second.listener->why();
  first.stream->Close();
  b.receiver->closed.Await(1);
  End c;
  c.receiver->Refuse();
  Sending third(a, c);
  EXPECT_EQ(third.listener->seen.AwaitClosed(), std::vector<std::string>{"closed"});
  // Nobody hears of frames before there is a receiver.
  const std::unique_ptr<Transport> deaf = GrpcTransport::Listen(OnLoopback()).value();
  Sending fourth(a, At(deaf->port()));
  EXPECT_EQ(fourth.listener->seen.AwaitClosed(), std::vector<std::string>{"closed"});
  EXPECT_TRUE(absl::IsUnavailable(fourth.listener->why())) << fourth.listener->why();
}

TEST(GrpcTransport, RefusesFramesThatAreTooLarge) {
  GrpcTransportOptions small = OnLoopback();
  small.limits = {.max_frame_bytes = 1000, .max_inbound_bytes = 1000};
  End a;
  End b(small);
  Sending fits(a, b);
  fits.listener->seen.Await(1);
  fits.stream->Write(std::string(1000, 'x'));
  b.receiver->frames.Await(1);
  fits.listener->seen.Await(2);
  fits.stream->Write(std::string(1001, 'y'));
  fits.listener->seen.AwaitClosed();
  EXPECT_FALSE(fits.listener->why().ok());
  b.receiver->closed.Await(1);
  EXPECT_EQ(b.receiver->frames.Await(1).size(), 1u);
  EXPECT_EQ(b.transport->limits().max_frame_bytes, 1000u);
}

TEST(GrpcTransport, HoldsFramesBackForWhichThereIsNoRoom) {
  GrpcTransportOptions narrow = OnLoopback();
  narrow.limits = {.max_frame_bytes = 100'000, .max_inbound_bytes = 120'000};
  End a;
  End b(narrow);
  Sending slow(a, b);
  Sending next(a, b);
  Sending small(a, b);
  slow.listener->seen.Await(1);
  next.listener->seen.Await(1);
  small.listener->seen.Await(1);
  slow.stream->Write("hold" + std::string(90'000, 'x'));
  b.receiver->frames.Await(1);
  next.stream->Write("next" + std::string(90'000, 'x'));
  next.listener->seen.Await(2);
  // A small one fits beside the first.
  small.stream->Write("small");
  EXPECT_EQ(b.receiver->frames.Await(2).back(), "small");
  b.receiver->Go();
  EXPECT_EQ(b.receiver->frames.Await(3).back().substr(0, 4), "next");
}

// Has a sequel of each frame; that of "keep" lasts until the test lets it go.
class Host final : public FrameReceiver {
 public:
  std::unique_ptr<FrameSequel> BeginFrame(std::string_view frame) override {
    return std::make_unique<Sequel>(*this, std::string(frame));
  }
  bool OnFrame(uint64_t, std::string_view frame) override {
    frames.Add(std::string(frame));
    return true;
  }

  Happenings frames;
  Happenings sequels;
  std::binary_semaphore may_go{0};

 private:
  class Sequel final : public FrameSequel {
   public:
    Sequel(Host& host, std::string frame) : host_(host), frame_(std::move(frame)) {}
    ~Sequel() override {
      host_.sequels.Add(frame_);
      if (frame_ == "keep") host_.may_go.acquire();
    }

   private:
    Host& host_;
    const std::string frame_;
  };
};

TEST(GrpcTransport, HandlesFramesWhileOneThreadIsKeptAfterAnotherHasRested) {
  End a;
  const std::unique_ptr<Transport> b = GrpcTransport::Listen(OnLoopback()).value();
  const auto host = std::make_shared<Host>();
  ASSERT_TRUE(b->Start(host).ok());
  Sending sending(a, At(b->port()));
  Sending other(a, At(b->port()));
  sending.listener->seen.Await(1);
  other.listener->seen.Await(1);
  sending.stream->Write("quick");
  host->sequels.Await(1);
  sending.listener->seen.Await(2);
  // One thread may still be about to rest, and then there is no sequel of the next frame.
  size_t written = 2;
  do {
    sending.stream->Write("keep");
    sending.listener->seen.Await(++written);
    host->frames.Await(written - 1);
  } while (host->sequels.Await(1).back() != "keep" && written < 1000);
  other.stream->Write("other");
  EXPECT_EQ(host->frames.Await(written).back(), "other");
  host->may_go.release(1);
}

TEST(GrpcTransport, EndsWhileItReceivesAndDoesNothingAfterwards) {
  End a;
  End b;
  Sending sending(a, b);
  sending.listener->seen.Await(1);
  Sending other(b, a);
  other.listener->seen.Await(1);
  sending.stream->Write("hold");
  b.receiver->frames.Await(1);
  b.receiver->Go();
  b.transport->Shutdown();
  const size_t seen = other.listener->seen.Await(1).size();
  other.stream->Write("x");
  other.stream->Close();
  b.transport->Cut(1);
  Sending late(b, a);
  ASSERT_NE(late.stream, nullptr);
  late.stream->Write("late");
  late.stream->Close();
  a.transport->Shutdown();
  EXPECT_EQ(other.listener->seen.Await(1).size(), seen);
  EXPECT_EQ(late.listener->seen.Await(0).size(), 0u);
}

TEST(GrpcTransport, RefusesOptionsThatAreNotSafeOrMakeNoSense) {
  const auto refuses = [](auto change, std::string_view name) {
    GrpcTransportOptions options = OnLoopback();
    change(options);
    const absl::Status status = GrpcTransport::Listen(options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(std::string(status.message()).find(name), std::string::npos) << status;
  };
  refuses([](GrpcTransportOptions& o) { o.bind_host = "0.0.0.0"; }, "bind_host");
  refuses([](GrpcTransportOptions& o) { o.bind_host = ""; }, "bind_host");
  refuses([](GrpcTransportOptions& o) { o.limits.max_frame_bytes = 0; }, "max_frame_bytes");
  refuses([](GrpcTransportOptions& o) { o.limits.max_inbound_bytes = 5; }, "max_inbound_bytes");
  refuses([](GrpcTransportOptions& o) { o.max_inbound_streams = 0; }, "max_inbound_streams");
  refuses([](GrpcTransportOptions& o) { o.connect_timeout = absl::ZeroDuration(); }, "connect_timeout");
  refuses([](GrpcTransportOptions& o) { o.keepalive = absl::ZeroDuration(); }, "keepalive");
  refuses([](GrpcTransportOptions& o) { o.keepalive_timeout = absl::ZeroDuration(); }, "keepalive_timeout");
  End first;
  GrpcTransportOptions taken = OnLoopback();
  taken.bind_port = first.transport->port();
  const absl::Status status = GrpcTransport::Listen(taken).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(std::string(status.message()).find(absl::StrCat(taken.bind_port)), std::string::npos) << status;
}

}  // namespace
}  // namespace fraktor
