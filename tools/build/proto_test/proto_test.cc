#include <memory>
#include <string>

#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"

#include "fraktor/tools/build/proto_test/address.pb.h"
#include "fraktor/tools/build/proto_test/letter.pb.h"
#include "fraktor/tools/build/proto_test/post_office.grpc.pb.h"
#include "fraktor/tools/build/proto_test/post_office.pb.h"

namespace fraktor::tools::build::proto_test {
namespace {

class StreetPostOffice final : public PostOffice::Service {
 public:
  grpc::Status Send(grpc::ServerContext* /*context*/, const Letter* letter, Receipt* receipt) override {
    if (letter->to().number() == 0) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "a letter needs a house number");
    }
    *receipt->mutable_delivered_to() = letter->to();
    receipt->set_written_seconds(letter->written().seconds());
    return grpc::Status::OK;
  }
};

class GrpcLibrary : public testing::Test {
 protected:
  GrpcLibrary() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&office_);
    server_ = builder.BuildAndStart();
    stub_ = PostOffice::NewStub(server_->InProcessChannel(grpc::ChannelArguments()));
  }

  StreetPostOffice office_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<PostOffice::Stub> stub_;
};

TEST_F(GrpcLibrary, CallsThroughTheGeneratedStub) {
  Letter letter;
  letter.mutable_to()->set_street("Rue de Fleurus");
  letter.mutable_to()->set_number(27);
  letter.mutable_written()->set_seconds(1922);

  grpc::ClientContext context;
  Receipt receipt;
  const grpc::Status status = stub_->Send(&context, letter, &receipt);

  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(receipt.delivered_to().street(), "Rue de Fleurus");
  EXPECT_EQ(receipt.delivered_to().number(), 27u);
  EXPECT_EQ(receipt.written_seconds(), 1922);
}

TEST_F(GrpcLibrary, CarriesTheStatusOfTheService) {
  grpc::ClientContext context;
  Receipt receipt;
  const grpc::Status status = stub_->Send(&context, Letter(), &receipt);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "a letter needs a house number");
}

TEST(ProtoLibrary, NamesFilesByTheirIncludePrefix) {
  EXPECT_EQ(std::string(Letter::descriptor()->file()->name()), "fraktor/tools/build/proto_test/letter.proto");
  EXPECT_EQ(Letter::descriptor()->file()->dependency(0), Address::descriptor()->file());
}

TEST(ProtoLibrary, KeepsMessagesThroughTheirBytes) {
  Letter written;
  written.mutable_to()->set_street("Grand-Rue");
  written.mutable_written()->set_nanos(5);
  written.set_text("à bientôt");

  Letter read;
  ASSERT_TRUE(read.ParseFromString(written.SerializeAsString()));
  EXPECT_EQ(read.to().street(), "Grand-Rue");
  EXPECT_EQ(read.written().nanos(), 5);
  EXPECT_EQ(read.text(), "à bientôt");
}

}  // namespace
}  // namespace fraktor::tools::build::proto_test
