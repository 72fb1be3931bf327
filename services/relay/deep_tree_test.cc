// Trees of real relays of the maximum depth.
#include <grpcpp/client_context.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/v1/attachment.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/blob/blob_test_util.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/status.h"
#include "services/relay/testing/relay_fixture.h"
#include "services/relay/topology/topology.h"

namespace muster {
namespace {

using testing::kRelayTestFleet;
using testing::RelayTestFleet;
using testing::TestNode;
using testing::TestRelay;

// Attaches a relay to another; returns the reason of the rejection, "" if the relay is welcomed.
std::string AttachRelay(const RelayTestFleet& fleet, const std::string& name,
                        const TestRelay& parent) {
  const ServiceIdentity self{ServiceRole::kRelay, name};
  const std::string folder = fleet.WriteIdentity(self, name + "/attaches");
  const auto stub = v1::AttachService::NewStub(MakeChannel(
      parent.target(), MakeChannelCredentials(ChannelIdentityFolder{kRelayTestFleet, folder},
                                              {ServiceRole::kRelay})));
  grpc::ClientContext context;
  const auto stream = stub->Attach(&context);
  v1::AttachResponse response;
  EXPECT_TRUE(stream->Read(&response) && response.has_greeting());
  v1::AttachRequest request;
  v1::AttachRequest::Hello& hello = *request.mutable_hello();
  const auto key = PrivateKey::FromPem(ReadSecretFile(folder + "/key.pem").value());
  *hello.mutable_statement() =
      SignAttachStatement(*key, ReadSecretFile(folder + "/cert.pem").value(),
                          ToUri({kRelayTestFleet, self}).value(), response.greeting().relay(),
                          response.greeting().key_sha256(), absl::Now() + absl::Minutes(5))
          .value();
  hello.set_instance_id("one");
  hello.set_version("test");
  hello.set_is_relay(true);
  EXPECT_TRUE(stream->Write(request));
  while (stream->Read(&response)) {
    if (!response.has_welcome()) continue;
    context.TryCancel();
    return "";
  }
  return ReasonOf(FromGrpc(stream->Finish()));
}

TEST(DeepTreeTest, FilesPassTwentyRelaysAndAnotherRelayIsRejected) {
  const RelayTestFleet fleet;
  std::vector<std::unique_ptr<TestRelay>> relays;
  relays.push_back(std::make_unique<TestRelay>(fleet, "root", nullptr));
  while (relays.size() < kMaxDepth) {
    const std::string name = absl::StrCat("r", relays.size() + 1);
    relays.push_back(std::make_unique<TestRelay>(fleet, name, relays.back().get()));
  }
  TestNode leaf(fleet, "leaf");
  leaf.Attach(*relays.back());
  TestNode top(fleet, "top");
  top.Attach(*relays.front());
  const std::string body = Pattern(300'000);
  ASSERT_TRUE(leaf.Share("top", "f", body).ok());
  ASSERT_TRUE(leaf.Await("leaf", "top", "f", "delivered at root"));
  EXPECT_EQ(top.Read("leaf", "f"), body);
  ASSERT_TRUE(top.Share("leaf", "g", body).ok());
  ASSERT_TRUE(top.Await("top", "leaf", "g", "delivered at r20"));
  EXPECT_EQ(leaf.Read("top", "g"), body);
  EXPECT_EQ(AttachRelay(fleet, "r21", *relays.back()), "RELAY_TOO_DEEP");
  EXPECT_EQ(AttachRelay(fleet, "other", *relays[kMaxDepth - 2]), "") << "it is the twentieth";
  EXPECT_EQ(AttachRelay(fleet, "r5", *relays.back()), "RELAY_LOOP");
}

}  // namespace
}  // namespace muster
