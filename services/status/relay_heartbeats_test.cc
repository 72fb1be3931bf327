// Streams of heartbeats that an ancestor forwards for a relay, over real mutual TLS.
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/heartbeats.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/rpc/forwarding.h"
#include "services/common/rpc/statement_budget.h"
#include "services/common/rpc/status.h"
#include "services/status/testing/heartbeat_fixture.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using testing::TestIdentity;

FleetName Relay(const std::string& name) { return ServiceIdentity{ServiceRole::kRelay, name}; }

// A stream of relay r2 that another relay forwards. Its first message was answered.
class ForwardedStream {
 public:
  ForwardedStream(const std::shared_ptr<grpc::Channel>& channel,
                  const v1::AttachStatement& statement)
      : stub_(v1::HeartbeatService::NewStub(channel)) {
    context_.AddMetadata(kRelayStatement, statement.SerializeAsString());
    stream_ = stub_->RelayHeartbeats(&context_);
    v1::RelayHeartbeatsRequest hello;
    hello.set_relay("r2");
    stream_->Write(hello);
    v1::RelayHeartbeatsResponse response;
    EXPECT_TRUE(stream_->Read(&response));
  }
  ~ForwardedStream() {
    if (stream_ == nullptr) return;
    context_.TryCancel();
    stream_->Finish();
  }

  void Write(const v1::RelayHeartbeatsRequest& message) { EXPECT_TRUE(stream_->Write(message)); }
  // Returns the ids of the senders that the next message refuses.
  std::vector<int32_t> ReadRefused() {
    v1::RelayHeartbeatsResponse response;
    EXPECT_TRUE(stream_->Read(&response));
    std::vector<int32_t> ids;
    for (const auto& refused : response.refused()) ids.push_back(refused.id());
    return ids;
  }
  // Sends a message. Returns false if the stream has ended.
  bool Send(const v1::RelayHeartbeatsRequest& message = {}) {
    v1::RelayHeartbeatsResponse response;
    return stream_->Write(message) && stream_->Read(&response);
  }
  absl::Status End() {
    v1::RelayHeartbeatsResponse unread;
    while (stream_->Read(&unread)) {
    }
    const absl::Status status = FromGrpc(stream_->Finish());
    stream_.reset();
    return status;
  }

 private:
  grpc::ClientContext context_;
  const std::unique_ptr<v1::HeartbeatService::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse>>
      stream_;
};

class RelayHeartbeatsTest : public testing::HeartbeatFixture {
 protected:
  // Returns the statement of `child` for the relay `parent`.
  static v1::AttachStatement Sign(const TestIdentity& child, const TestIdentity& parent,
                                  absl::Duration validity) {
    const Certificate relay = *Certificate::FromPem(parent.chain_pem);
    return *SignAttachStatement(*PrivateKey::FromPem(child.key_pem), child.chain_pem, UriOf(child),
                                UriOf(parent), *relay.Key()->Sha256(), absl::Now() + validity);
  }
  static std::string UriOf(const TestIdentity& identity) {
    return *Certificate::FromPem(identity.chain_pem)->Uri();
  }

  std::unique_ptr<ForwardedStream> Open(const TestIdentity& ancestor,
                                        const v1::AttachStatement& statement) {
    return std::make_unique<ForwardedStream>(status_.Connect(ancestor), statement);
  }
  void AwaitEnd(ForwardedStream& stream) {
    Await("the end of the stream", [&] { return !stream.Send(); });
    EXPECT_EQ(ReasonOf(stream.End()), "NOT_ATTACHED");
  }
  void AwaitDoubt() {
    Await("doubt", [&] {
      return absl::StrContains(status_.Get(run_)->doubt(), "relay r2 is not connected");
    });
  }

  const TestIdentity r1_ = fleet_.Issue(Relay("r1"));
  const TestIdentity r2_ = fleet_.Issue(Relay("r2"));
  const TestIdentity r3_ = fleet_.Issue(Relay("r3"));
};

TEST_F(RelayHeartbeatsTest, ForwardedStreamEndsWithTheStatementOfItsRelay) {
  const auto stream = Open(r1_, Sign(r2_, r1_, absl::Seconds(3)));
  AwaitEnd(*stream);
  AwaitDoubt();
}

TEST_F(RelayHeartbeatsTest, RenewedStatementOfASenderKeepsTheStream) {
  const TestIdentity node = fleet_.Issue(NodeIdentity{"n1"});
  const auto statement = Sign(r2_, r1_, absl::Seconds(3));
  const auto stream = Open(r1_, statement);
  v1::RelayHeartbeatsRequest message;
  v1::RelayHeartbeatsRequest::Sender& sender = *message.add_senders();
  sender.set_id(1);
  sender.set_uri(UriOf(node));
  sender.set_attach_statement(Sign(node, r2_, absl::Minutes(30)).SerializeAsString());
  ASSERT_TRUE(stream->Send(message));
  // The service has the same clock.
  Await("the end of the statement",
        [&] { return absl::Now() > absl::FromUnixSeconds(statement.expire_time().seconds()); });
  EXPECT_TRUE(stream->Send());
}

TEST_F(RelayHeartbeatsTest, FormerAncestorDoesNotKeepAMovedRelayConnected) {
  const auto former = Open(r1_, Sign(r2_, r1_, absl::Minutes(30)));
  {
    const auto present = Open(r3_, Sign(r2_, r3_, absl::Minutes(50)));
    AwaitEnd(*former);
    EXPECT_TRUE(present->Send());
  }
  AwaitDoubt();
}

TEST_F(RelayHeartbeatsTest, ForgedStatementsInAForwardedStreamAreChargedToTheForwarder) {
  const std::string node = UriOf(fleet_.Issue(NodeIdentity{"n1"}));
  v1::RelayHeartbeatsRequest forged;
  for (int id = 1; id <= 1000; ++id) {
    v1::RelayHeartbeatsRequest::Sender& sender = *forged.add_senders();
    sender.set_id(id);
    sender.set_uri(node);
    sender.set_attach_statement("forged");
  }
  const auto former = Open(r1_, Sign(r2_, r1_, absl::Minutes(30)));
  Await("the end of the stream", [&] { return !former->Send(forged); });
  const absl::Status end = former->End();
  EXPECT_EQ(ReasonOf(end), "TOO_MANY_INVALID_STATEMENTS");
  EXPECT_TRUE(absl::StrContains(end.message(), "relay r1 with the stream of relay r2")) << end;
  const auto present = Open(r3_, Sign(r2_, r3_, absl::Minutes(50)));
  forged.mutable_senders()->DeleteSubrange(1, 999);
  EXPECT_TRUE(present->Send(forged));
  EXPECT_TRUE(present->Send());
}

TEST_F(RelayHeartbeatsTest, SenderWithAnExpiredStatementIsRefusedOnce) {
  const TestIdentity node = fleet_.Issue(NodeIdentity{"n1"});
  const auto statement = Sign(node, r2_, absl::Seconds(3));
  const auto stream = Open(r1_, Sign(r2_, r1_, absl::Minutes(30)));
  v1::RelayHeartbeatsRequest message;
  v1::RelayHeartbeatsRequest::Sender& sender = *message.add_senders();
  sender.set_id(1);
  sender.set_uri(UriOf(node));
  sender.set_attach_statement(statement.SerializeAsString());
  sender.mutable_beat()->set_instance_id("i1");
  ASSERT_TRUE(stream->Send(message));
  Await("the end of the statement",
        [&] { return absl::Now() > absl::FromUnixSeconds(statement.expire_time().seconds()); });
  v1::RelayHeartbeatsRequest repeated;
  for (int i = 0; i < 100'000; ++i) repeated.add_heard_ids(1);
  stream->Write(repeated);
  sender.set_id(2);  // still with the expired statement
  stream->Write(message);
  std::vector<int32_t> refused;
  while (refused.empty() || refused.back() != 2) {
    for (const int32_t id : stream->ReadRefused()) refused.push_back(id);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_THAT(refused, ElementsAre(1, 2));
}

TEST_F(RelayHeartbeatsTest, RelayThatTakesNoAnswersIsNotRead) {
  constexpr int kMessages = 600;
  const auto stream = Open(r1_, Sign(r2_, r1_, absl::Minutes(30)));
  // As many as are handled without a turn of others; each answer is large.
  v1::RelayHeartbeatsRequest message;
  for (int id = 1; id <= kStatementsOfTurn; ++id) {
    v1::RelayHeartbeatsRequest::Sender& sender = *message.add_senders();
    sender.set_id(id);
    sender.set_uri(std::string(2000, '\x01'));  // no name, so that it is refused
  }
  std::atomic<int> written = 0;
  const std::jthread writer([&] {
    for (int i = 0; i < kMessages; ++i) {
      stream->Write(message);
      ++written;
    }
  });
  EXPECT_FALSE(testing::Await([&] { return written == kMessages; }, absl::Seconds(2)));
  for (int refused = 0; refused < kMessages * kStatementsOfTurn;) {
    refused += static_cast<int>(stream->ReadRefused().size());
    ASSERT_FALSE(HasFailure());
  }
}

// The statement of a sender names the relay, but not the parent of the relay.
TEST_F(RelayHeartbeatsTest, StatementOfASenderDoesNotConnectItsRelay) {
  const TestIdentity node = fleet_.Issue(NodeIdentity{"n1"});
  const auto stream = Open(r1_, Sign(r3_, r1_, absl::Minutes(30)));
  v1::RelayHeartbeatsRequest message;
  v1::RelayHeartbeatsRequest::Sender& sender = *message.add_senders();
  sender.set_id(1);
  sender.set_uri(UriOf(node));
  sender.set_attach_statement(Sign(node, r2_, absl::Minutes(30)).SerializeAsString());
  sender.mutable_beat()->set_node("n1");
  sender.mutable_beat()->set_instance_id("i1");
  sender.mutable_beat()->set_sequence(1);
  ASSERT_TRUE(stream->Send(message));
  AwaitPresence("n1", v1::PRESENCE_ONLINE);
  AwaitDoubt();
}

}  // namespace
}  // namespace muster
