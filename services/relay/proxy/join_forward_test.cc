// Joins through a relay that stops, to an aggregator that does not answer.
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <string>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "muster/v1/join.grpc.pb.h"
#include "muster/v1/runs.grpc.pb.h"
#include "services/relay/testing/proxy_fixture.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/test_fleet.h"

namespace muster {
namespace {

using testing::Await;
using testing::ProxyFixture;
using testing::TestFleet;
using testing::TestIdentity;

// Answers when the test releases it, or when the call is cancelled.
class SlowJoinService final : public v1::JoinService::Service {
 public:
  grpc::Status Join(grpc::ServerContext* context, const v1::JoinRequest*,
                    v1::NodeCertificate*) override {
    std::call_once(once_, [this] { begun_.set_value(); });
    const bool cancelled =
        !Await([&] { return answer_.load() || context->IsCancelled(); }) || context->IsCancelled();
    ended_ = true;
    return cancelled ? grpc::Status::CANCELLED : grpc::Status::OK;
  }

  void AwaitCall() { begun_.get_future().get(); }
  void Answer() { answer_ = true; }
  bool ended() const { return ended_; }

 private:
  std::once_flag once_;
  std::promise<void> begun_;
  std::atomic<bool> answer_ = false;
  std::atomic<bool> ended_ = false;
};

class JoinForwardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    builder.RegisterService(&aggregator_);
    server_ = builder.BuildAndStart();
    relay_.upstream().Attach("n1", node_);
    relay_.upstream().Connect(server_->InProcessChannel({}), nullptr);
    relay_.Start();
    join_ = std::async(std::launch::async, [channel = relay_.ConnectToJoin()] {
      v1::NodeCertificate certificate;
      grpc::ClientContext context;
      return v1::JoinService::NewStub(channel)->Join(&context, {}, &certificate);
    });
    aggregator_.AwaitCall();
  }

  SlowJoinService aggregator_;
  std::unique_ptr<grpc::Server> server_;
  TestFleet fleet_;
  const TestIdentity node_ = fleet_.Issue(NodeIdentity{"n1"});
  ProxyFixture relay_{fleet_};
  std::future<grpc::Status> join_;
};

TEST_F(JoinForwardTest, JoinInProgressIsCancelledAtTheEndOfTheDrain) {
  relay_.Stop();
  EXPECT_FALSE(join_.get().ok());
  EXPECT_TRUE(Await([&] { return aggregator_.ended(); }));
}

TEST_F(JoinForwardTest, CallersOfOneAddressLeaveRoomForOthers) {
  aggregator_.Answer();
  EXPECT_TRUE(join_.get().ok());
  const auto join = [](const std::shared_ptr<grpc::Channel>& channel) {
    v1::NodeCertificate certificate;
    grpc::ClientContext context;
    return v1::JoinService::NewStub(channel)->Join(&context, {}, &certificate).error_code();
  };
  const auto stranger = relay_.ConnectToJoin();
  int calls = 0;
  while (calls < 1000 && join(stranger) != grpc::StatusCode::RESOURCE_EXHAUSTED) ++calls;
  EXPECT_LT(calls, 1000);
  EXPECT_GT(calls, 100) << "a rack that is switched on";
  const TestIdentity child = fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "r2"});
  EXPECT_EQ(join(relay_.Connect(child)), grpc::StatusCode::OK);
}

TEST_F(JoinForwardTest, StopRejectsOtherCallsWhileAJoinIsInProgress) {
  const auto stub = v1::RunService::NewStub(relay_.Connect(node_));
  const auto get_run = [&] {
    v1::Run run;
    grpc::ClientContext context;
    return stub->GetRun(&context, {}, &run).error_code();
  };
  EXPECT_NE(get_run(), grpc::StatusCode::UNAVAILABLE);
  auto stopped = std::async(std::launch::async, [&] { relay_.Stop(/*drain=*/absl::Hours(1)); });
  EXPECT_TRUE(Await([&] { return get_run() == grpc::StatusCode::UNAVAILABLE; }));
  EXPECT_FALSE(aggregator_.ended());
  aggregator_.Answer();
  stopped.get();
  EXPECT_TRUE(join_.get().ok());
}

}  // namespace
}  // namespace muster
