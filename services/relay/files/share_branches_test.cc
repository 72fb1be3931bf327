// Files that nodes of different branches share, over real relays with real TLS.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/shares.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/blob/blob_test_util.h"
#include "services/common/rpc/status.h"
#include "services/relay/files/share_errors.h"
#include "services/relay/testing/relay_fixture.h"

namespace muster {
namespace {

using testing::ChannelTo;
using testing::RelayTestFleet;
using testing::TestNode;
using testing::TestRelay;

// A root relay, two child relays, and a child of one of these.
class BranchesTest : public ::testing::Test {
 protected:
  BranchesTest()
      : root_(fleet_, "root", nullptr),
        east_(fleet_, "east", &root_),
        west_(fleet_, "west", &root_),
        far_(fleet_, "far", &west_),
        n1_(fleet_, "n1"),
        n2_(fleet_, "n2"),
        alice_(fleet_, "alice") {
    n1_.Attach(east_);
    n2_.Attach(far_);
  }

  // Returns the bytes of the blobs of shared files at a relay.
  int64_t BytesAt(const TestRelay& relay) const {
    int64_t bytes = 0;
    const std::string folder = relay.config.state_folder + "/shares/blobs/blobs";
    std::error_code none;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, none)) {
      if (entry.is_regular_file()) bytes += static_cast<int64_t>(entry.file_size());
    }
    return bytes;
  }

  RelayTestFleet fleet_;
  TestRelay root_;
  TestRelay east_;
  TestRelay west_;
  TestRelay far_;
  TestNode n1_;
  TestNode n2_;
  testing::TestOperator alice_;
};

TEST_F(BranchesTest, FileMovesOverTheRootToTheParentOfItsTarget) {
  const std::string body = Pattern(2'500'000);
  const auto shared = n1_.Share("n2", "f", body);
  ASSERT_TRUE(shared.ok()) << shared.status();
  // The source asks its own relay.
  ASSERT_TRUE(n1_.Await("n1", "n2", "f", "delivered at far"));
  EXPECT_EQ(n2_.Read("n1", "f"), body);
  // The relays on the route deleted their copies.
  EXPECT_EQ(BytesAt(east_), 0);
  EXPECT_EQ(BytesAt(root_), 0);
  EXPECT_EQ(BytesAt(west_), 0);
  EXPECT_EQ(BytesAt(far_), 2'500'000);
  // The same content is not sent again.
  const auto again = n1_.Relay().Send(n1_.File("n2", "f", body), false,
                                      [](int64_t) -> absl::StatusOr<std::unique_ptr<ByteSource>> {
                                        return absl::InternalError("it was asked for");
                                      });
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->share.relay(), "far");
  // The removal reaches the last relay.
  ASSERT_TRUE(n1_.Relay().Remove(n1_.File("n2", "f", body).key()).ok());
  ASSERT_TRUE(n2_.Await("n1", "n2", "f", "removed"));
  EXPECT_TRUE(n1_.Await("n1", "n2", "f", "removed"));
  EXPECT_EQ(BytesAt(far_), 0);
}

TEST_F(BranchesTest, SourceRemovesAFileThatItsRelayHasForgotten) {
  east_.Stop();
  east_.config.shares.max_files = 2;  // so it remembers four files of one source
  east_.Start();
  n1_.Attach(east_);
  for (const std::string id : {"f0", "f1", "f2", "f3", "f4"}) {
    ASSERT_TRUE(n1_.Share("n2", id, "abc").ok());
    ASSERT_TRUE(n1_.Await("n1", "n2", id, "delivered at far"));
  }
  ASSERT_TRUE(n1_.Relay().Remove(n1_.File("n2", "f0", "abc").key()).ok());
  EXPECT_TRUE(n2_.Await("n1", "n2", "f0", "removed"));
}

TEST_F(BranchesTest, FileWaitsAtEachRelayWithoutANextHop) {
  const std::string body = Pattern(1'000'000);
  // Now the root relay knows the target.
  ASSERT_TRUE(n1_.Share("n2", "first", "abc").ok());
  ASSERT_TRUE(n1_.Await("n1", "n2", "first", "delivered at far"));
  far_.Stop();
  west_.Stop();
  root_.Stop();
  ASSERT_TRUE(n1_.Share("n2", "f", body).ok());
  EXPECT_EQ(n1_.Outcome("n1", "n2", "f"), "on the way at east");
  // The relay that stored it restarts, too.
  east_.Stop();
  east_.Start();
  EXPECT_EQ(BytesAt(east_), 1'000'000);
  root_.Start();
  n1_.Attach(east_);
  ASSERT_TRUE(n1_.Await("n1", "n2", "f", "on the way at root"));
  west_.Start();
  root_.Stop();
  root_.Start();
  far_.Start();
  n2_.Attach(far_);
  ASSERT_TRUE(n1_.Await("n1", "n2", "f", "delivered at far"));
  EXPECT_EQ(n2_.Read("n1", "f"), body);
}

TEST_F(BranchesTest, FileFollowsATargetThatMoved) {
  ASSERT_TRUE(n1_.Share("n2", "f", "abc").ok());
  ASSERT_TRUE(n1_.Await("n1", "n2", "f", "delivered at far"));
  n2_.Attach(west_);
  ASSERT_TRUE(n2_.Await("n1", "n2", "f", "delivered at west"));
  EXPECT_EQ(n2_.Read("n1", "f"), "abc");
}

TEST_F(BranchesTest, RefusalDownstreamIsReportedToTheSource) {
  far_.Stop();
  far_.config.shares.max_size = 100;
  far_.Start();
  n2_.Attach(far_);
  ASSERT_TRUE(n1_.Share("n2", "f", std::string(101, 'x')).ok());
  EXPECT_TRUE(n1_.Await("n1", "n2", "f", "refused at far: SHARE_TOO_LARGE"));
}

// A child with a wrong program, or with the key of a thief.
TEST_F(BranchesTest, ReportOfAChildIsBounded) {
  ASSERT_TRUE(n1_.Share("n2", "f", "abc").ok());
  ASSERT_TRUE(n1_.Await("n1", "n2", "f", "delivered at far"));
  const auto west = ChannelTo(
      root_.target(), fleet_.WriteIdentity(ServiceIdentity{ServiceRole::kRelay, "west"}, "thief"));
  const auto root = v1::ShareService::NewStub(west);
  v1::ReportShareRequest request;
  *request.mutable_share()->mutable_file() = n1_.File("n2", "f", "abc");
  request.mutable_share()->set_state(v1::SHARE_STATE_REFUSED);
  request.mutable_share()->set_reason(std::string(size_t{1} << 20, 'x'));
  request.mutable_share()->set_relay(std::string(size_t{1} << 20, 'r'));
  v1::ReportShareResponse response;
  grpc::ClientContext first;
  EXPECT_EQ(ReasonOf(FromGrpc(root->ReportShare(&first, request, &response))), "INVALID_NAME");
  request.mutable_share()->set_relay("far");
  grpc::ClientContext second;
  ASSERT_TRUE(root->ReportShare(&second, request, &response).ok());
  EXPECT_EQ(n1_.Outcome("n1", "n2", "f"),
            absl::StrCat("refused at far: ", std::string(kMaxShareReason, 'x')));
}

TEST_F(BranchesTest, RefusalAtTheRootIsReportedToTheSource) {
  ASSERT_TRUE(n1_.Share("nobody", "f", "abc").ok());
  EXPECT_TRUE(n1_.Await("n1", "nobody", "f", "refused at "));
  EXPECT_TRUE(absl::StrContains(n1_.Outcome("n1", "nobody", "f"), "TARGET_UNKNOWN"));
}

// The far relay loses its list of nodes: the file waits there, and is not sent back and forth.
TEST_F(BranchesTest, FileStaysAtTheLastParentOfItsTarget) {
  ASSERT_TRUE(n1_.Share("n2", "first", "abc").ok());
  ASSERT_TRUE(n1_.Await("n1", "n2", "first", "delivered at far"));
  n2_.Detach();
  far_.Stop();
  std::filesystem::remove(far_.config.state_folder + "/known-nodes");
  ASSERT_TRUE(n1_.Share("n2", "f", "abc").ok());
  far_.Start();
  EXPECT_TRUE(n1_.Await("n1", "n2", "f", "delivered at far"));
  EXPECT_EQ(BytesAt(west_), 0);
  n2_.Attach(far_);
  EXPECT_EQ(n2_.Read("n1", "f"), "abc");
}

TEST_F(BranchesTest, DamagedFileIsRefusedAfterThreeAttempts) {
  ASSERT_TRUE(n1_.Share("n2", "first", "abc").ok());
  ASSERT_TRUE(n1_.Await("n1", "n2", "first", "delivered at far"));
  west_.Stop();
  ASSERT_TRUE(n1_.Share("n2", "f", Pattern(100'000)).ok());
  ASSERT_TRUE(n1_.Await("n1", "n2", "f", "on the way at root"));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root_.config.state_folder +
                                                                         "/shares/blobs/blobs")) {
    if (entry.is_regular_file()) std::ofstream(entry.path()) << std::string(100'000, 'X');
  }
  west_.Start();
  EXPECT_TRUE(n1_.Await("n1", "n2", "f", "refused at west: DIGEST_MISMATCH"));
}

TEST_F(BranchesTest, OperatorQueriesAnyRelayAtTheRoot) {
  TestNode n3(fleet_, "n3");
  n3.Attach(far_);
  // This file stays in its branch.
  ASSERT_TRUE(n3.Share("n2", "f", "abc").ok());
  ASSERT_TRUE(n3.Await("n3", "n2", "f", "delivered at far"));
  ShareTransfer root = alice_.At(root_);
  // Now the root relay knows the nodes of the branch.
  ASSERT_TRUE(n1_.Share("n2", "first", "abc").ok());
  ASSERT_TRUE(n1_.Await("n1", "n2", "first", "delivered at far"));
  v1::ListSharesRequest list;
  const auto here = root.List(list);
  ASSERT_TRUE(here.ok()) << here.status();
  EXPECT_EQ(here->shares_size(), 0);
  EXPECT_EQ(here->usage().relay(), "root");
  list.set_relay("far");
  const auto listed = root.List(list);
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->shares_size(), 2);
  EXPECT_EQ(listed->shares(1).relay(), "far");
  EXPECT_EQ(listed->usage().relay(), "far");
  EXPECT_EQ(listed->usage().bytes(), 6);
  EXPECT_EQ(static_cast<uint64_t>(listed->usage().quota()), far_.config.shares.quota);
  const v1::ShareKey key = listed->shares(1).file().key();
  EXPECT_EQ(root.Get(key, "far")->state(), v1::SHARE_STATE_DELIVERED);
  EXPECT_EQ(root.Get(key)->relay(), "far");
  EXPECT_EQ(ReasonOf(root.Get(key, "west").status()), "SHARE_NOT_FOUND");
  EXPECT_EQ(ReasonOf(root.Get(key, "nowhere").status()), "RELAY_NOT_FOUND");
  list.set_page_token("x");
  EXPECT_EQ(ReasonOf(root.List(list).status()), "INVALID_PAGE_TOKEN");
  // Without an audit log nothing is removed.
  EXPECT_EQ(ReasonOf(root.Remove(key)), "NOT_RECORDED");
  EXPECT_EQ(n2_.Read("n3", "f"), "abc");
  // At other relays operators see only the files of that relay.
  EXPECT_EQ(alice_.At(west_).List({})->usage().relay(), "west");
  EXPECT_EQ(ReasonOf(alice_.At(west_).Get(key, "far").status()), "NOT_THE_ROOT");
  EXPECT_EQ(ReasonOf(alice_.At(far_).Remove(key)), "NOT_THE_ROOT");
  west_.Stop();
  EXPECT_EQ(ReasonOf(root.Get(key).status()), "RELAY_NOT_REACHED");
}

}  // namespace
}  // namespace muster
