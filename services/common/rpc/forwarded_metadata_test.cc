#include "services/common/rpc/forwarded_metadata.h"

#include <grpcpp/test/client_context_test_peer.h>
#include <gtest/gtest.h>

#include <string>

#include "services/common/base/error.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/rpc/forwarding.h"
#include "services/common/rpc/limits.h"

namespace muster {
namespace {

using grpc::testing::ClientContextTestPeer;

TEST(ForwardedMetadataTest, LargestStatementFitsIntoACall) {
  grpc::ClientContext context;
  const std::string uri(500, 'u');
  const std::string statement(kMaxAttachStatement, 's');
  EXPECT_TRUE(
      AddMetadata(context, {{kForwardedIdentity, uri}, {kAttachStatement, statement}}).ok());
  EXPECT_EQ(ClientContextTestPeer(&context).GetSendInitialMetadata().size(), 2u);
  EXPECT_LT(kMaxForwardedMetadata + 512, size_t{kMaxMetadataBytes} + 1);
}

TEST(ForwardedMetadataTest, NothingIsAddedThatExceedsTheLimit) {
  grpc::ClientContext context;
  const std::string statement(kMaxForwardedMetadata * 3 / 4, 's');
  const absl::Status refused =
      AddMetadata(context, {{kForwardedIdentity, "u"}, {kAttachStatement, statement}});
  EXPECT_EQ(ReasonOf(refused), "IDENTITY_NOT_FORWARDABLE") << refused;
  EXPECT_TRUE(ClientContextTestPeer(&context).GetSendInitialMetadata().empty());
}

}  // namespace
}  // namespace muster
