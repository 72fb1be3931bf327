#include "services/common/rpc/channel_target.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Resolve(const std::string& name) {
  if (name == "both") return {"10.0.0.7", "fd00::7"};
  if (name == "four") return {"10.0.0.4"};
  return {};
}

std::string Target(const std::vector<HostPort>& addresses) {
  return ChannelTarget(addresses, Resolve);
}

TEST(ChannelTargetTest, SingleAddressIsResolvedByGrpc) {
  EXPECT_EQ(Target({{"relay.example", 7445}}), "dns:///relay.example:7445");
  EXPECT_EQ(Target({{"10.0.0.5", 1}}), "dns:///10.0.0.5:1");
  EXPECT_EQ(Target({{"::1", 1}}), "dns:///[::1]:1");
}

TEST(ChannelTargetTest, Ipv4AddressesStayInOrder) {
  EXPECT_EQ(Target({{"10.0.0.5", 1}, {"10.0.0.6", 2}}), "ipv4:10.0.0.5:1,10.0.0.6:2");
}

TEST(ChannelTargetTest, AddressesOfBothFamiliesAreWrittenAsIpv6) {
  EXPECT_EQ(Target({{"10.0.0.5", 1}, {"::1", 2}}), "ipv6:%5B::ffff:10.0.0.5%5D:1,%5B::1%5D:2");
}

TEST(ChannelTargetTest, NamesAmongSeveralAreResolved) {
  EXPECT_EQ(Target({{"four", 1}, {"10.0.0.6", 2}}), "ipv4:10.0.0.4:1,10.0.0.6:2");
  EXPECT_EQ(Target({{"both", 1}, {"10.0.0.6", 2}}),
            "ipv6:%5B::ffff:10.0.0.7%5D:1,%5Bfd00::7%5D:1,%5B::ffff:10.0.0.6%5D:2");
}

TEST(ChannelTargetTest, NameWithoutAddressesIsSkipped) {
  EXPECT_EQ(Target({{"unknown", 1}, {"10.0.0.6", 2}}), "ipv4:10.0.0.6:2");
  EXPECT_EQ(Target({{"unknown", 1}, {"unknown2", 2}}), "dns:///unknown:1");
}

TEST(ChannelTargetTest, TextThatIsNoAddressBecomesAHostWithoutPort) {
  EXPECT_THAT(ParseTargets({"a:1", "[::1]:2", "nonsense"}),
              ElementsAre(HostPort{"a", 1}, HostPort{"::1", 2}, HostPort{"nonsense", 0}));
}

// gRPC accepts each form of target, and connects to the address that listens.
TEST(ChannelTargetTest, ChannelConnectsToTheAddressThatListens) {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  grpc::AsyncGenericService service;
  builder.RegisterAsyncGenericService(&service);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  const auto listening = static_cast<uint16_t>(port);
  // Nothing listens at port 1.
  for (const std::vector<HostPort>& addresses :
       {std::vector<HostPort>{{"127.0.0.1", listening}},
        {{"localhost", listening}},
        {{"127.0.0.1", 1}, {"127.0.0.1", listening}},
        {{"::1", 1}, {"127.0.0.1", listening}},
        {{"localhost", 1}, {"::1", 1}, {"localhost", listening}}}) {
    const auto channel =
        grpc::CreateChannel(ChannelTarget(addresses), grpc::InsecureChannelCredentials());
    EXPECT_TRUE(
        channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(60)))
        << ChannelTarget(addresses);
  }
  server->Shutdown();
  queue->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) {
  }
}

TEST(ParseTargetsTest, TunnelsAreAddressesOfGateways) {
  const std::vector<HostPort> targets = ParseTargets(
      {"relay.example:7445", "wss://gateway.example:8002", "wss://[::1]:1", "wss://x"});
  ASSERT_EQ(targets.size(), 4U);
  EXPECT_FALSE(IsTunnel(targets[0]));
  for (size_t i = 1; i < 4; ++i) EXPECT_TRUE(IsTunnel(targets[i]));
  EXPECT_EQ(targets[1], (HostPort{"wss://gateway.example", 8002}));
  EXPECT_EQ(targets[1].ToString(), "wss://gateway.example:8002");
  EXPECT_EQ(targets[2].ToString(), "wss://[::1]:1");
  EXPECT_EQ(targets[3].port, 0) << "connections to it fail";
}

}  // namespace
}  // namespace muster
