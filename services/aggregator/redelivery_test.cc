// Damaged results that are requested from their nodes again: the API over mutual TLS.
#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/results.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/sha256.h"
#include "testing/fixtures/test_call.h"
#include "testing/fixtures/test_fleet.h"

namespace muster {
namespace {

using testing::CallUnary;
using testing::TestFleet;
using testing::TestIdentity;

class RedeliveryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fleet_.Stop();
    fleet_.config.verify_rate = 0;  // only reads find damage
    fleet_.Start();
    run_ = fleet_.CreateRun({"hostfacts"}, {"n1", "n2"}).id();
  }

  std::string Deliver(const std::string& node, const std::string& content) {
    const auto uploaded =
        testing::UploadAll(fleet_.Connect(Node(node)), run_, "hostfacts", node, content);
    return ReasonOf(uploaded.status());
  }

  TestIdentity Node(const std::string& name) { return fleet_.Issue(NodeIdentity{name}); }

  v1::ResultKey KeyOf(const std::string& node) {
    v1::ResultKey key;
    key.set_run(run_);
    key.set_plugin("hostfacts");
    key.set_node(node);
    return key;
  }

  // Removes all stored files of results, and reads that of the node.
  void Lose(const std::string& node) {
    const std::string blobs = absl::StrCat(fleet_.config.state_folder, "/blobs/blobs");
    for (const auto& entry : std::filesystem::recursive_directory_iterator(blobs)) {
      if (entry.is_regular_file() && absl::StrContains(entry.path().string(), "/results/")) {
        std::filesystem::remove(entry.path());
      }
    }
    v1::ReadResultRequest request;
    *request.mutable_key() = KeyOf(node);
    grpc::ClientContext context;
    const auto stub = v1::ResultService::NewStub(fleet_.Connect(fleet_.admin()));
    const auto stream = stub->ReadResult(&context, request);
    v1::FileChunk chunk;
    while (stream->Read(&chunk)) continue;
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::DATA_LOSS);
  }

  v1::Result Get(const std::string& node) {
    v1::GetResultRequest request;
    *request.mutable_key() = KeyOf(node);
    return *CallUnary<v1::ResultService>(fleet_.Connect(fleet_.admin()),
                                         &v1::ResultService::Stub::GetResult, request);
  }

  // Declines for `node`; returns the reason of the error.
  std::string Decline(const TestIdentity& caller, const std::string& node,
                      const std::string& reason) {
    v1::DeclineRedeliveryRequest request;
    *request.mutable_key() = KeyOf(node);
    request.set_reason(reason);
    const auto answer = CallUnary<v1::ResultService>(
        fleet_.Connect(caller), &v1::ResultService::Stub::DeclineRedelivery, request);
    const std::string reason_of = ReasonOf(answer.status());
    return reason_of.empty() && !answer.ok() ? std::string(answer.status().message()) : reason_of;
  }

  // Opens an upload of `node` with a digest; returns the id, or the reason of the error.
  std::string Open(const std::string& node, const std::string& content) {
    v1::OpenUploadRequest request;
    *request.mutable_description() =
        testing::SmallResult(run_, "hostfacts", node, "").description();
    request.set_size(static_cast<int64_t>(content.size()));
    request.set_sha256(DigestBytes(Sha256::Of(content)));
    const auto opened = CallUnary<v1::ResultService>(fleet_.Connect(Node(node)),
                                                     &v1::ResultService::Stub::OpenUpload, request);
    return opened.ok() ? opened->upload_id() : ReasonOf(opened.status());
  }

  const std::string content_ = std::string(100'000, 'x');
  TestFleet fleet_;
  std::string run_;
};

TEST_F(RedeliveryTest, OnlyTheNodeOfThePairDeclines) {
  ASSERT_EQ(Deliver("n1", content_), "");
  EXPECT_EQ(Decline(Node("n1"), "n1", "not kept"), "");
  EXPECT_EQ(Get("n1").redelivery(), "");  // it is intact
  Lose("n1");
  EXPECT_EQ(Get("n1").redelivery(), "requested");
  EXPECT_EQ(Decline(Node("n2"), "n1", "not kept"), "NOT_YOURS");
  EXPECT_FALSE(Decline(fleet_.admin(), "n1", "not kept").empty());
  EXPECT_FALSE(
      Decline(fleet_.Credential(run_, "hostfacts", ""), "n1", "not kept").empty());  // any node
  EXPECT_EQ(Decline(Node("n1"), "n1", std::string(257, 'x')), "TEXT_TOO_LONG");
  EXPECT_EQ(Decline(Node("n3"), "n3", "not kept"), "PAIR_NOT_PLANNED");
  EXPECT_EQ(Get("n1").redelivery(), "requested");
  EXPECT_EQ(Decline(Node("n1"), "n1", "not kept"), "");
  EXPECT_EQ(Get("n1").redelivery(), "declined: not kept");
  EXPECT_EQ(Get("n1").damage(), "the stored file is missing");
  // A pair without a result stays without one.
  EXPECT_EQ(Decline(Node("n2"), "n2", "not kept"), "");
  EXPECT_EQ(Get("n2").outcome(), v1::OUTCOME_PENDING);
}

TEST_F(RedeliveryTest, SameContentRestoresADamagedResultAndOtherContentDoesNot) {
  ASSERT_EQ(Deliver("n1", content_), "");
  Lose("n1");
  std::string other = content_;
  other[7] = 'y';
  EXPECT_EQ(Deliver("n1", other), "RESULT_CONFLICT");
  EXPECT_EQ(Get("n1").damage(), "the stored file is missing");
  EXPECT_EQ(Open("n1", other), "RESULT_CONFLICT");
  EXPECT_EQ(Deliver("n1", content_), "");
  EXPECT_EQ(Get("n1").damage(), "");
  EXPECT_EQ(Get("n1").generation(), 1);
}

TEST_F(RedeliveryTest, SealedRunAcceptsItsDamagedContentOnly) {
  ASSERT_EQ(Deliver("n1", content_), "");
  ASSERT_EQ(Deliver("n2", content_ + "2"), "");
  ASSERT_EQ(fleet_.WaitForEnd(run_).state(), v1::RUN_STATE_COMPLETE);
  EXPECT_EQ(Open("n1", content_), "");  // committed
  Lose("n1");
  EXPECT_EQ(Open("n1", content_ + "3"), "RUN_SEALED");
  EXPECT_EQ(Open("n1", content_).size(), 32U);
  EXPECT_EQ(Deliver("n1", content_), "RUN_SEALED");  // without a digest at the open
}

}  // namespace
}  // namespace muster
