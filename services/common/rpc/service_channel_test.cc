#include "services/common/rpc/service_channel.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"

namespace muster {
namespace {

std::chrono::system_clock::time_point Soon() {
  return std::chrono::system_clock::now() + std::chrono::seconds(30);
}

class ServiceChannelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(&nothing_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  std::vector<HostPort> Targets(const std::vector<std::string>& names) const {
    std::vector<HostPort> targets;
    for (const std::string& name : names) targets.push_back({name, static_cast<uint16_t>(port_)});
    return targets;
  }

  // Connects until all targets have failed.
  static bool AwaitFailure(grpc::Channel& channel) {
    for (auto state = channel.GetState(true); state != GRPC_CHANNEL_TRANSIENT_FAILURE;
         state = channel.GetState(true)) {
      if (!channel.WaitForStateChange(state, Soon())) return false;
    }
    return true;
  }

  // Lets the check run that is due.
  void Check() {
    clock_.Advance(absl::Seconds(10));
    std::promise<void> done;
    ASSERT_TRUE(executor_.Post([&] { done.set_value(); }));
    done.get_future().wait();
  }

  std::vector<std::string> Resolve(const std::string& name) {
    ++resolutions_;
    return names_[name];
  }

  std::map<std::string, std::vector<std::string>> names_;
  int resolutions_ = 0;
  int port_ = 0;
  grpc::CallbackGenericService nothing_;
  std::unique_ptr<grpc::Server> server_;
  FakeClock clock_;
  Executor executor_{{"background", 1, 10}};
};

TEST_F(ServiceChannelTest, NameThatMovedIsFoundAgain) {
  names_ = {{"a", {"127.0.0.2"}}, {"b", {"127.0.0.3"}}};  // nothing listens there
  const ServiceChannel channel(Targets({"a", "b"}), grpc::InsecureChannelCredentials(), clock_,
                               executor_, [this](const auto& name) { return Resolve(name); });
  const auto before = channel.Get();
  ASSERT_TRUE(AwaitFailure(*before));
  Check();
  EXPECT_EQ(channel.Get(), before) << "nothing has moved";
  names_["b"] = {"127.0.0.1"};
  Check();
  EXPECT_TRUE(channel.Get()->WaitForConnected(Soon()));
}

TEST_F(ServiceChannelTest, WorkingChannelIsKept) {
  names_ = {{"a", {"127.0.0.2"}}, {"b", {"127.0.0.1"}}};
  const ServiceChannel channel(Targets({"a", "b"}), grpc::InsecureChannelCredentials(), clock_,
                               executor_, [this](const auto& name) { return Resolve(name); });
  const auto before = channel.Get();
  ASSERT_TRUE(before->WaitForConnected(Soon()));
  names_["a"] = {"127.0.0.4"};
  const int resolutions = resolutions_;
  Check();
  EXPECT_EQ(channel.Get(), before);
  EXPECT_EQ(resolutions_, resolutions);
}

TEST_F(ServiceChannelTest, TargetsThatGrpcResolvesAreNotChecked) {
  const ServiceChannel one(Targets({"localhost"}), grpc::InsecureChannelCredentials(), clock_,
                           executor_, [this](const auto& name) { return Resolve(name); });
  const ServiceChannel numeric(Targets({"127.0.0.2", "127.0.0.1"}),
                               grpc::InsecureChannelCredentials(), clock_, executor_,
                               [this](const auto& name) { return Resolve(name); });
  EXPECT_EQ(clock_.waiting_timers(), 0);
  EXPECT_EQ(resolutions_, 0);
  EXPECT_TRUE(numeric.Get()->WaitForConnected(Soon()));
}

}  // namespace
}  // namespace muster
