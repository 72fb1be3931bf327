// Opens by senders that do not prove that the owner of the pair named the attempt.
#include <gtest/gtest.h>

#include <string>

#include "services/aggregator/testing/uploads_fixture.h"
#include "services/aggregator/uploads/uploads.h"
#include "services/common/base/error.h"
#include "services/common/base/sha256.h"

namespace muster {
namespace {

using testing::kFleet;
using testing::kPeer;
using testing::TestState;

constexpr char kRelayUri[] = "spiffe://f.muster/service/relay/r1";
const UploadPeer kRelayed = {kPeer.identity,
                             Identity{kFleet, ServiceIdentity{ServiceRole::kRelay, "r1"}}};

using UploadProofTest = testing::UploadsFixture;

// A relay with an attach statement of the node.
TEST_F(UploadProofTest, AttemptThatARelayNamesDoesNotExcludeTheNode) {
  UploadRecord forged = Of("n1");
  forged.attempt = absl::ToUnixNanos(state_.clock.Now());
  forged.delivery.vouched_by = kRelayUri;
  ASSERT_TRUE(TestState::OpenAndWait(*uploads_, forged, kRelayed).ok());
  const auto direct = Open(Of("n1"));
  ASSERT_TRUE(direct.ok()) << direct.status();
  Append(*Attach(*direct), *direct, "hello");
}

// While the node itself delivers, also with the attempt of its upload.
TEST_F(UploadProofTest, RelayDoesNotTakeOverTheStreamOfTheNode) {
  const auto direct = *Open(Of("n1"));
  const auto session = Attach(direct);
  Append(*session, direct, "hello");
  UploadRecord forged = Of("n1");
  forged.delivery.vouched_by = kRelayUri;
  for (const int64_t attempt : {forged.attempt, absl::ToUnixNanos(state_.clock.Now())}) {
    forged.attempt = attempt;
    EXPECT_EQ(ReasonOf(TestState::OpenAndWait(*uploads_, forged, kRelayed).status()),
              "UPLOAD_IN_USE");
  }
  EXPECT_TRUE(ended_.ok());
  // The node may continue through the relay.
  Detach(direct);
  forged.attempt = Of("n1").attempt;
  const auto continued = TestState::OpenAndWait(*uploads_, forged, kRelayed);
  ASSERT_TRUE(continued.ok()) << continued.status();
  EXPECT_EQ(continued->id, direct.id);
}

// The relay opened the attempt first, with other bytes.
TEST_F(UploadProofTest, BytesAndSizeOfARelayDoNotSpoilTheUploadOfTheNode) {
  UploadRecord forged = Of("n1");
  forged.delivery.vouched_by = kRelayUri;
  forged.size = 100;
  UploadRecord genuine = Of("n1");
  genuine.size = 5;
  genuine.sha256 = DigestBytes(Sha256::Of("hello"));
  // Returns where the node has to start.
  const auto spoil = [&](const std::string& bytes) {
    const auto opened = *TestState::OpenAndWait(*uploads_, forged, kRelayed);
    Append(*Attach(opened, kRelayed), opened, bytes);
    Detach(opened);
    return Open(genuine);
  };
  // More than the node has to send.
  auto opened = spoil("longer");
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->offset, 0);
  EXPECT_EQ(uploads_->quota().staged(), 0);
  // The node opened the upload before: bytes that came between are not continued.
  opened = spoil("evil");
  EXPECT_EQ(opened->offset, 0);
  const auto session = Attach(*opened);
  Append(*session, *opened, "hello");
  EXPECT_EQ(Complete(*session, *opened, "hello"), absl::OkStatus());
}

TEST_F(UploadProofTest, NodeContinuesTheUploadThatItsRelayBegan) {
  UploadRecord upload = Of("n1");
  upload.delivery.vouched_by = kRelayUri;
  const auto first = *TestState::OpenAndWait(*uploads_, upload, kRelayed);
  Append(*Attach(first, kRelayed), first, "hell");
  Detach(first);
  auto opened = *Open(Of("n1"));
  EXPECT_EQ(opened.offset, 4);
  auto session = Attach(opened);
  Append(*session, opened, "?");
  // The sender does not know who sent the bytes that differ.
  EXPECT_EQ(ReasonOf(Complete(*session, opened, "hello")), "UPLOAD_NOT_FOUND");
  opened = *Open(Of("n1"));
  EXPECT_EQ(opened.offset, 0);
  session = Attach(opened);
  Append(*session, opened, "hello");
  EXPECT_EQ(Complete(*session, opened, "hello"), absl::OkStatus());
}

// The node delivers the first half, loses its connection, and returns later.
TEST_F(UploadProofTest, BytesOfTheNodeRemainAfterOpensOfItsRelay) {
  UploadRecord forged = Of("n1");
  forged.delivery.vouched_by = kRelayUri;
  UploadRecord genuine = Of("n1");
  genuine.size = 5;
  const auto direct = *Open(genuine);
  Append(*Attach(direct), direct, "hel");
  Detach(direct);
  forged.size = 1;
  EXPECT_EQ(ReasonOf(TestState::OpenAndWait(*uploads_, forged, kRelayed).status()),
            "SIZE_MISMATCH");
  forged.size = 100;
  auto opened = *TestState::OpenAndWait(*uploads_, forged, kRelayed);
  EXPECT_EQ(opened.offset, 3);
  Append(*Attach(opened, kRelayed), opened, "evil");
  Detach(opened);
  // The relay has stored more than the node announces, and then it announces less.
  forged.size = 4;
  EXPECT_EQ(TestState::OpenAndWait(*uploads_, forged, kRelayed)->offset, 3);
  opened = *Open(genuine);
  EXPECT_EQ(opened.id, direct.id);
  EXPECT_EQ(opened.offset, 3);
  const auto session = Attach(opened);
  Append(*session, opened, "lo");
  EXPECT_EQ(Complete(*session, opened, "hello"), absl::OkStatus());
}

TEST_F(UploadProofTest, NodeStartsAgainIfARestartHasForgottenWhichBytesAreIts) {
  UploadRecord relayed = Of("n1");
  relayed.delivery.vouched_by = kRelayUri;
  const auto direct = *Open(Of("n1"));
  Append(*Attach(direct), direct, "hel");
  Detach(direct);
  const auto forged = *TestState::OpenAndWait(*uploads_, relayed, kRelayed);
  Append(*Attach(forged, kRelayed), forged, "evil");
  Detach(forged);
  Begin();
  EXPECT_EQ(Open(Of("n1"))->offset, 0);
}

// Each digest that a relay invents makes another record, up to the quota of the actor.
TEST_F(UploadProofTest, ConflictOfARelayedOpenHasTheRelayAsActor) {
  state_.Apply(Genuine(KeyOf("n1"), "content", kCreated));
  UploadRecord forged = Of("n1");
  forged.sha256 = std::string(32, 'z');
  const auto last = [&] { return state_.store().Audit({.run = kRun}, "", 100)->items.back(); };
  EXPECT_EQ(ReasonOf(Open(forged).status()), "RESULT_CONFLICT");
  EXPECT_EQ(last().kind, AuditKind::kConflict);
  EXPECT_EQ(last().actor, forged.delivery.uri);
  forged.delivery.vouched_by = kRelayUri;
  EXPECT_EQ(ReasonOf(TestState::OpenAndWait(*uploads_, forged, kRelayed).status()),
            "RESULT_CONFLICT");
  EXPECT_EQ(last().actor, kRelayUri);
}

TEST_F(UploadProofTest, AttemptOfACredentialForAnyNodeDoesNotExcludeTheNode) {
  UploadRecord other = Of("n1");
  other.attempt = absl::ToUnixNanos(state_.clock.Now());
  other.delivery = {.uri = "spiffe://00.f.muster/plugin/facts", .node_unproven = true};
  ASSERT_TRUE(Open(other).ok());
  EXPECT_TRUE(Open(Of("n1")).ok());
}

}  // namespace
}  // namespace muster
