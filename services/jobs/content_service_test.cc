// Contents from the upload of an operator to the read of a node, over mutual TLS.
#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/contents.grpc.pb.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/sha256.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/identity/certificate.h"
#include "services/common/rpc/forwarding.h"
#include "services/common/rpc/status.h"
#include "services/jobs/testing/jobs_fixture.h"
#include "testing/fixtures/test_call.h"

namespace muster {
namespace {

using testing::CallUnary;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::TestIdentity;

class ContentServiceTest : public testing::JobsFixture {
 protected:
  absl::StatusOr<v1::UploadContentResponse> Upload(int64_t offset, const std::string& data) {
    v1::UploadContentRequest request;
    request.set_sha256(sha256_);
    request.set_size(static_cast<int64_t>(bytes_.size()));
    request.set_offset(offset);
    request.set_data(data);
    request.set_crc32c(Crc32c(data));
    return CallUnary<v1::ContentService>(Connect(fleet_.admin()),
                                         &v1::ContentService::Stub::UploadContent, request);
  }
  absl::StatusOr<v1::FindContentsResponse> Find(const std::string& sha256) {
    v1::FindContentsRequest request;
    request.add_sha256(sha256);
    return CallUnary<v1::ContentService>(Connect(fleet_.admin()),
                                         &v1::ContentService::Stub::FindContents, request);
  }
  v1::ReadContentRequest ReadRequest(const std::string& deployment) const {
    v1::ReadContentRequest request;
    request.set_deployment(deployment);
    request.set_sha256(sha256_);
    return request;
  }
  absl::StatusOr<v1::ReadContentResponse> ReadAs(const TestIdentity& caller,
                                                 const v1::ReadContentRequest& request) {
    return CallUnary<v1::ContentService>(Connect(caller), &v1::ContentService::Stub::ReadContent,
                                         request);
  }
  // Creates a deployment for n1 with a file of this content.
  absl::StatusOr<v1::Deployment> Deploy(int64_t size) {
    EXPECT_TRUE(CreateType(absl::StrCat(TypeDocument("2.0.0"), "adHoc: true\n")).ok());
    v1::PlanDeploymentRequest wanted;
    wanted.set_type("greet@2.0.0");
    wanted.set_parameters(R"({"name": "Ada"})");
    v1::Command::File& file = *wanted.add_files();
    file.set_path("data");
    file.set_sha256(sha256_);
    file.set_size(size);
    const auto plan = Plan(wanted);
    if (!plan.ok()) return plan.status();
    v1::Command command = CommandOf(Request({"n1"}));
    v1::Command::Deployment& content = *command.mutable_container()->mutable_deployment();
    const std::string id = content.deployment();
    content = plan->deployment();
    content.set_deployment(id);
    return Create(SignedRequest(command, {"n1"}));
  }

  const std::string bytes_ = "the content of a large file";
  const std::string sha256_ = DigestBytes(Sha256::Of(bytes_));
};

TEST_F(ContentServiceTest, DeploymentNeedsItsContentsAndItsNodesReadThem) {
  const auto size = static_cast<int64_t>(bytes_.size());
  EXPECT_EQ(ReasonOf(Deploy(size).status()), "CONTENT_MISSING");
  EXPECT_EQ(Upload(0, bytes_.substr(0, 10))->offset(), 10);
  EXPECT_EQ(ReasonOf(Deploy(size).status()), "CONTENT_MISSING");
  EXPECT_EQ(Find(sha256_)->missing_size(), 1);
  StopService();
  StartService();
  EXPECT_EQ(Upload(0, "")->offset(), 10);
  EXPECT_TRUE(Upload(10, bytes_.substr(10))->stored());
  EXPECT_EQ(Find(sha256_)->missing_size(), 0);
  EXPECT_EQ(ReasonOf(Deploy(size + 1).status()), "CONTENT_MISSING");
  const auto created = Deploy(size);
  ASSERT_TRUE(created.ok()) << created.status();
  ASSERT_EQ(created->files_size(), 1);
  EXPECT_EQ(created->files(0).size(), size);
  EXPECT_EQ(created->files(0).sha256(), sha256_);

  v1::ReadContentRequest request = ReadRequest(created->deployment());
  const auto read = ReadAs(fleet_.Issue(NodeIdentity{"n1"}), request);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->data(), bytes_);
  EXPECT_EQ(read->size(), size);
  EXPECT_EQ(read->crc32c(), Crc32c(bytes_));
  request.set_offset(4);
  request.set_max_size(7);
  EXPECT_EQ(ReadAs(fleet_.Issue(NodeIdentity{"n1"}), request)->data(), "content");
  request.set_offset(size);
  EXPECT_EQ(ReadAs(fleet_.Issue(NodeIdentity{"n1"}), request)->data(), "");
  EXPECT_EQ(ReasonOf(ReadAs(fleet_.Issue(NodeIdentity{"n2"}), request).status()),
            "CONTENT_NOT_FOUND");
}

TEST_F(ContentServiceTest, RelayReadsOnlyForANodeWhoseStatementItHas) {
  ASSERT_TRUE(Upload(0, bytes_)->stored());
  const auto created = Deploy(static_cast<int64_t>(bytes_.size()));
  ASSERT_TRUE(created.ok()) << created.status();
  const TestIdentity relay = fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "r1"});
  const v1::ReadContentRequest request = ReadRequest(created->deployment());
  // Refused before the handlers: the reason begins the message.
  EXPECT_THAT(std::string(ReadAs(relay, request).status().message()),
              StartsWith("ROLE_NOT_ALLOWED"));
  const auto read_for = [&](const std::string& claimed, const std::string& signer) {
    const TestIdentity node = fleet_.Issue(NodeIdentity{signer});
    const Certificate of_relay = *Certificate::FromPem(relay.chain_pem);
    const auto statement =
        SignAttachStatement(*PrivateKey::FromPem(node.key_pem), node.chain_pem,
                            *Certificate::FromPem(node.chain_pem)->Uri(), *of_relay.Uri(),
                            *of_relay.Key()->Sha256(), absl::Now() + absl::Minutes(30));
    grpc::ClientContext context;
    context.AddMetadata(kForwardedIdentity,
                        absl::StrCat("spiffe://", fleet_.name(), "/node/", claimed));
    context.AddMetadata(kAttachStatement, statement->SerializeAsString());
    v1::ReadContentResponse response;
    const absl::Status status = FromGrpc(
        v1::ContentService::NewStub(Connect(relay))->ReadContent(&context, request, &response));
    return status.ok() ? response.data() : std::string(status.message());
  };
  EXPECT_EQ(read_for("n1", "n1"), bytes_);
  EXPECT_THAT(read_for("n2", "n2"), HasSubstr("not found for this node"));
  EXPECT_THAT(read_for("n1", "n2"), StartsWith("IDENTITY_NOT_FORWARDABLE"));
}

TEST_F(ContentServiceTest, InvalidCallsAreRefused) {
  EXPECT_EQ(ReasonOf(Find("short").status()), "INVALID_CONTENT");
  v1::ReadContentRequest request = ReadRequest("d1");
  const TestIdentity node = fleet_.Issue(NodeIdentity{"n1"});
  request.set_max_size(-1);
  EXPECT_EQ(ReasonOf(ReadAs(node, request).status()), "INVALID_CONTENT");
  request.set_sha256("");
  EXPECT_EQ(ReasonOf(ReadAs(node, request).status()), "INVALID_CONTENT");
}

}  // namespace
}  // namespace muster
