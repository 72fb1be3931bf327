// Tests the plaintext health port in its own process: gRPC's plug-ins are disabled for the whole
// process after the health server was built, so only the first server of a process can be tested.
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "testing/fixtures/test_fleet.h"

namespace muster {
namespace {

grpc::Status CallEmpty(const std::shared_ptr<grpc::Channel>& channel, const std::string& path) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const grpc::Slice none;
  const auto call = stub.PrepareUnaryCall(&context, path, grpc::ByteBuffer(&none, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status;
}

TEST(HealthPortTest, PortAnswersOnlyHealthChecks) {
  const testing::TestFleet fleet;
  const auto channel = grpc::CreateChannel(absl::StrCat("127.0.0.1:", fleet.health_port()),
                                           grpc::InsecureChannelCredentials());
  EXPECT_TRUE(CallEmpty(channel, "/grpc.health.v1.Health/Check").ok());
  for (const char* path :
       {"/grpc.channelz.v1.Channelz/GetServers", "/muster.v1.RunService/ListRuns"}) {
    EXPECT_EQ(CallEmpty(channel, path).error_code(), grpc::StatusCode::UNIMPLEMENTED) << path;
  }
}

}  // namespace
}  // namespace muster
