// What every RPC of the status service has to keep, whatever it does.
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/heartbeats.pb.h"
#include "muster/v1/status.pb.h"
#include "muster/v1/verdicts.pb.h"
#include "services/common/identity/policy.h"
#include "services/status/testing/test_status.h"

namespace muster {
namespace {

using testing::TestFleet;
using testing::TestIdentity;
using testing::TestStatus;

// Every method of every service that the status service's binary describes by reflection.
std::vector<const google::protobuf::MethodDescriptor*> Methods() {
  std::vector<const google::protobuf::MethodDescriptor*> methods;
  for (const auto* file :
       {v1::RunStatus::descriptor()->file(), v1::BeatRequest::descriptor()->file(),
        v1::Verdict::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        methods.push_back(file->service(i)->method(j));
      }
    }
  }
  return methods;
}

std::string Path(const google::protobuf::MethodDescriptor& method) {
  return absl::StrCat("/", method.service()->full_name(), "/", method.name());
}

// Calls any method with one empty request and waits for its status, or its first message (OK then).
grpc::Status CallEmpty(const std::shared_ptr<grpc::Channel>& channel, const std::string& path) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  bool ok = false;
  const auto step = [&] { return queue.Next(&tag, &ok) && ok; };
  const auto call = stub.PrepareCall(&context, path, &queue);
  call->StartCall(nullptr);
  step();
  const grpc::Slice none;
  call->WriteLast(grpc::ByteBuffer(&none, 1), grpc::WriteOptions(), nullptr);
  step();
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  const bool answered = step();
  if (answered) context.TryCancel();  // it may be a stream that goes on
  grpc::Status status;
  call->Finish(&status, nullptr);
  queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return answered ? grpc::Status::OK : status;
}

class StatusRpcTest : public ::testing::Test {
 protected:
  TestFleet fleet_;
  TestStatus status_{fleet_};
};

TEST_F(StatusRpcTest, EveryMethodIsServedHasARowAndIsRefusedToWhoHasNoRole) {
  std::set<std::string> rows;
  for (const std::string_view row : PolicyMethods()) rows.emplace(row);
  const auto channel =
      status_.Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kStatus, "other"}));
  ASSERT_GE(Methods().size(), 8u);
  for (const auto* method : Methods()) {
    const std::string path = Path(*method);
    SCOPED_TRACE(path);
    EXPECT_TRUE(rows.contains(path));
    const grpc::Status status = CallEmpty(channel, path);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << status.error_message();
  }
}

TEST_F(StatusRpcTest, NoHandlerForgetsToAskAndNoneIsMissing) {
  fleet_.CreateRun({"hostfacts"}, {"n1"});
  const TestIdentity callers[] = {fleet_.admin(), fleet_.Issue(NodeIdentity{"n1"}),
                                  fleet_.Issue(ServiceIdentity{ServiceRole::kAggregator, "other"})};
  for (const auto* method : Methods()) {
    SCOPED_TRACE(Path(*method));
    for (const TestIdentity& caller : callers) {
      const grpc::Status status = CallEmpty(status_.Connect(caller), Path(*method));
      EXPECT_EQ(status.error_message().find("did not ask"), std::string::npos)
          << status.error_message();
      EXPECT_NE(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
      EXPECT_NE(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    }
  }
}

TEST_F(StatusRpcTest, VerdictsAreForTheAggregatorItself) {
  const auto path = "/muster.v1.VerdictService/FollowVerdicts";
  EXPECT_TRUE(
      CallEmpty(status_.Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kAggregator, "other"})),
                path)
          .ok());
  EXPECT_EQ(CallEmpty(status_.Connect(fleet_.admin()), path).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

}  // namespace
}  // namespace muster
