// Headers that gRPC has for itself, from a peer, over real TLS.
#include "services/common/rpc/header_guard.h"

#include <grpcpp/client_context.h>

#include <list>
#include <string>
#include <string_view>

#include "gtest/gtest.h"
#include "muster/v1/shares.grpc.pb.h"
#include "services/common/rpc/status.h"
#include "services/common/rpc/testing/raw_http2_client.h"
#include "services/common/rpc/testing/stream_fixture.h"

namespace muster::testing {
namespace {

constexpr char kOpenShare[] = "/muster.v1.ShareService/OpenShare";

// The keys that gRPC 1.51 parses.
constexpr std::string_view kKeys[] = {
    ":path",
    ":authority",
    ":method",
    ":status",
    ":scheme",
    "content-type",
    "te",
    "grpc-encoding",
    "grpc-internal-encoding-request",
    "grpc-accept-encoding",
    "grpc-status",
    "grpc-timeout",
    "grpc-previous-rpc-attempts",
    "grpc-retry-pushback-ms",
    "user-agent",
    "grpc-message",
    "host",
    "endpoint-load-metrics-bin",
    "grpc-server-stats-bin",
    "grpc-trace-bin",
    "grpc-tags-bin",
    "grpclb_client_stats",
    "lb-cost-bin",
    "lb-token",
};

TEST(HeaderGuardTest, NoHeaderOfAPeerEndsTheServer) {
  ASSERT_EQ(GuardHeaders(), absl::OkStatus());
  StreamServer server(64, {});
  server.open_share = [&](grpc::CallbackServerContext* context, const auto* request,
                          auto* response) {
    return Answer(server.runtime(), context, kOpenShare, {*request, response},
                  [](Call& call) { return call.Authorize(Resource::Own()); });
  };
  const auto credential = server.IssueNode("n1");
  std::list<RawHttp2Client> clients;  // connected until the last call
  for (const std::string_view key : kKeys) {
    for (const std::string_view value : {"", "x", "-1", "AAAAAAAAAAA", "99999999999999999999"}) {
      SCOPED_TRACE(std::string(key) + ": " + std::string(value));
      RawHttp2Client& client =
          clients.emplace_back(server.port(), credential.chain, credential.key);
      ASSERT_TRUE(client.AckSettings());
      ASSERT_TRUE(client.Send(
          client.NextHeaders(kOpenShare, kEndHeaders, LiteralHeader(key, value)) +
          Http2Frame(FrameType::kData, kEndStream, client.stream(), std::string(5, '\0'))));
    }
  }
  const auto stub = v1::ShareService::NewStub(server.ConnectNode("n1"));
  grpc::ClientContext context;
  v1::OpenShareResponse response;
  EXPECT_EQ(FromGrpc(stub->OpenShare(&context, {}, &response)), absl::OkStatus());
  clients.clear();
  server.Stop();
}

}  // namespace
}  // namespace muster::testing
