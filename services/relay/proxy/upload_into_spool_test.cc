// Upload streams into the spool of a disconnected relay, over real mutual TLS.
#include "services/relay/proxy/upload_into_spool.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/blob/blob_test_util.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/rpc/forwarding.h"
#include "services/common/rpc/limits.h"
#include "services/relay/testing/proxy_fixture.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/test_fleet.h"
#include "testing/fixtures/test_upload.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::OpenTestUpload;
using testing::ProxyFixture;
using testing::SignTestResult;
using testing::TakeOverTestUpload;
using testing::TestFleet;
using testing::TestIdentity;
using testing::TestMetadata;
using testing::TestUploadStream;

constexpr char kRun[] = "0123456789abcdef";
constexpr char kPlugin[] = "hostfacts";

class UploadIntoSpoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    relay_.upstream().Attach("n1", node_);
    relay_.Start();
  }

  v1::OpenUploadResponse Open(const std::shared_ptr<grpc::Channel>& channel,
                              const std::string& plugin = kPlugin) {
    const auto opened = OpenTestUpload(channel, kRun, plugin, "n1");
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.value_or(v1::OpenUploadResponse());
  }

  // Delivers what is left of the body on `stream`, which has `offset` of it.
  absl::Status Deliver(TestUploadStream& stream, int64_t offset) {
    stream.SendChunk(offset, body_.substr(static_cast<size_t>(offset)));
    stream.SendFinish(body_, SignTestResult(node_, kRun, kPlugin, "n1", body_));
    ASSIGN_OR_RETURN(const auto last, stream.End());
    return last.has_spooled() ? absl::OkStatus() : absl::UnknownError("not spooled");
  }

  TestFleet fleet_;
  const TestIdentity node_ = fleet_.Issue(NodeIdentity{"n1"});
  ProxyFixture relay_{fleet_};
  const std::string body_ = Pattern(200'000);
};

TEST_F(UploadIntoSpoolTest, SecondStreamOfTheSameEpochTakesOver) {
  const auto channel = relay_.Connect(node_);
  const v1::OpenUploadResponse opened = Open(channel);
  const auto second = TakeOverTestUpload(channel, opened, body_);
  EXPECT_EQ(Deliver(*second, 150'000), absl::OkStatus());
  EXPECT_THAT(relay_.metrics().Text(), HasSubstr("muster_relay_spool_taken_total 1\n"));
}

// The relay does not know yet that the connection of the earlier streams is lost.
TEST_F(UploadIntoSpoolTest, StreamAtTheLimitOfItsNodeTakesOverItsUpload) {
  const auto channel = relay_.Connect(node_);
  const v1::OpenUploadResponse opened = Open(channel);
  TestUploadStream first(channel, opened);
  first.SendChunk(0, body_.substr(0, 1000));
  ASSERT_TRUE(first.AwaitWritten(1000)) << first.End().status();
  std::vector<std::unique_ptr<TestUploadStream>> streams;
  for (int i = 1; i < kUploadStreamsOfNode; ++i) {
    const std::string plugin = absl::StrCat("p", i);
    streams.push_back(std::make_unique<TestUploadStream>(channel, Open(channel, plugin)));
    streams.back()->SendChunk(0, "hello");
    ASSERT_TRUE(streams.back()->AwaitWritten(5)) << streams.back()->End().status();
  }
  TestUploadStream other(channel, Open(channel, "other"));
  EXPECT_EQ(ReasonOf(other.End().status()), "TOO_MANY_STREAMS_OF_CALLER");
  TestUploadStream again(channel, opened);
  EXPECT_EQ(ReasonOf(first.End().status()), "TAKEN_OVER");
  EXPECT_EQ(Deliver(again, 1000), absl::OkStatus());
}

TEST_F(UploadIntoSpoolTest, CompleteUploadIsAnsweredAgain) {
  const auto channel = relay_.Connect(node_);
  const v1::OpenUploadResponse opened = Open(channel);
  TestUploadStream stream(channel, opened);
  ASSERT_EQ(Deliver(stream, 0), absl::OkStatus());
  TestUploadStream again(channel, opened);
  again.SendFinish(body_);
  const auto answer = again.End();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->has_spooled());
  TestUploadStream more(channel, opened);
  more.SendChunk(0, body_);
  EXPECT_EQ(ReasonOf(more.End().status()), "INVALID_CHUNK");
}

TEST_F(UploadIntoSpoolTest, StreamsOfACompleteUploadAreCounted) {
  const auto channel = relay_.Connect(node_);
  const v1::OpenUploadResponse opened = Open(channel);
  TestUploadStream stream(channel, opened);
  ASSERT_EQ(Deliver(stream, 0), absl::OkStatus());
  std::vector<std::unique_ptr<TestUploadStream>> idle;
  std::atomic<bool> refused = false;
  std::vector<std::jthread> threads;
  for (int i = 0; i <= kUploadStreamsOfNode; ++i) {
    TestUploadStream& open =
        *idle.emplace_back(std::make_unique<TestUploadStream>(channel, opened));
    threads.emplace_back([&] {
      if (ReasonOf(open.End().status()) == "TOO_MANY_STREAMS_OF_CALLER") refused = true;
    });
  }
  EXPECT_TRUE(testing::Await([&] { return refused.load(); }));
  for (const auto& open : idle) open->Cancel();
}

TEST_F(UploadIntoSpoolTest, StreamOfAnotherCallerIsRefused) {
  const auto channel = relay_.Connect(node_);
  const v1::OpenUploadResponse opened = Open(channel);
  // A relay downstream that holds the node's statement as well.
  const auto node_uri = absl::StrCat("spiffe://", fleet_.name(), "/node/n1");
  const auto statement =
      SignAttachStatement(*PrivateKey::FromPem(node_.key_pem), node_.chain_pem, node_uri,
                          absl::StrCat("spiffe://", fleet_.name(), "/service/relay/r2"),
                          std::string(32, 'k'), absl::Now() + absl::Minutes(30));
  const TestMetadata forwarded = {{kForwardedIdentity, node_uri},
                                  {kAttachStatement, statement->SerializeAsString()}};
  TestUploadStream stranger(
      relay_.Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "r2"})), opened, forwarded);
  EXPECT_EQ(ReasonOf(Deliver(stranger, 0)), "UPLOAD_NOT_FOUND");
  TestUploadStream own(channel, opened);
  EXPECT_EQ(Deliver(own, 0), absl::OkStatus());
}

}  // namespace
}  // namespace muster
