#include "services/common/rpc/connection_limits.h"

#include "gtest/gtest.h"
#include "services/common/rpc/limits.h"

namespace muster {
namespace {

TEST(ConnectionLimitsTest, EachRoleHasThoseThatItsMethodsNeed) {
  const auto expect = [](std::string_view uri, int message_bytes, int streams) {
    const ConnectionLimits limits = ConnectionLimitsOf(uri);
    EXPECT_EQ(limits.message_bytes, message_bytes) << uri;
    EXPECT_EQ(limits.streams, streams) << uri;
  };
  for (const std::string_view uri : {"spiffe://fleet-0badcafe.muster/user/ann",
                                     "spiffe://fleet-0badcafe.muster/service/relay/r1",
                                     "spiffe://fleet-0badcafe.muster/service/gateway/g",
                                     "spiffe://fleet-0badcafe.muster/service/jobs/j",
                                     "spiffe://fleet-0badcafe.muster/service/status/s",
                                     "spiffe://fleet-0badcafe.muster/service/aggregator/a"}) {
    expect(uri, kMaxMessageBytes, kMaxStreamsPerConnection);
  }
  expect("spiffe://fleet-0badcafe.muster/node/n1", kMaxSourceMessageBytes, kMaxStreamsOfNode);
  expect("spiffe://0123456789abcdef.fleet-0badcafe.muster/plugin/p/node/n1", kMaxSourceMessageBytes,
         kMaxStreamsOfNode);
  expect("spiffe://0123456789abcdef.fleet-0badcafe.muster/plugin/p", kMaxSourceMessageBytes,
         kMaxStreamsPerConnection);
  expect("spiffe://0123456789abcdef.fleet-0badcafe.muster/viewer", kMaxViewerMessageBytes,
         kMaxStreamsOfNode);
}

TEST(ConnectionLimitsTest, UriWithoutARoleHasTheSmallest) {
  for (const std::string_view uri : {"", "spiffe://", "spiffe://fleet", "https://fleet/user/ann",
                                     "spiffe://fleet-0badcafe.muster/king/ann"}) {
    EXPECT_EQ(ConnectionLimitsOf(uri).message_bytes, kMaxViewerMessageBytes) << uri;
  }
}

}  // namespace
}  // namespace muster
