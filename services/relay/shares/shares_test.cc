// Files that nodes share, over real relays with real TLS.
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/string_source.h"
#include "services/common/blob/blob_test_util.h"
#include "services/relay/shares/share_rig.h"

namespace muster {
namespace {

using testing::ShareFleet;
using testing::TestNode;
using testing::TestRelay;

// At one relay.
class OneRelayTest : public ::testing::Test {
 protected:
  OneRelayTest() : relay_(fleet_, "root", nullptr), n1_(fleet_, "n1"), n2_(fleet_, "n2") {
    n1_.Attach(relay_);
    n2_.Attach(relay_);
  }

  // The reason for which a file is not taken.
  std::string Refusal(const TestNode& node, const v1::SharedFile& file,
                      const std::string& body = "abc") {
    const auto sent = node.Relay().Send(
        file, false, [&](int64_t offset) -> absl::StatusOr<std::unique_ptr<ByteSource>> {
          return std::make_unique<StringSource>(body, static_cast<size_t>(offset));
        });
    return sent.ok() ? "" : ReasonOf(sent.status());
  }

  ShareFleet fleet_;
  TestRelay relay_;
  TestNode n1_;
  TestNode n2_;
};

TEST_F(OneRelayTest, TheTargetReadsWhatTheSourceShared) {
  const std::string body = Pattern(3'000'000);
  const auto shared = n1_.Share("n2", "facts.json", body);
  ASSERT_TRUE(shared.ok()) << shared.status();
  ASSERT_TRUE(n2_.Await("n1", "n2", "facts.json", "delivered at root"));
  EXPECT_EQ(n2_.Read("n1", "facts.json"), body);
  v1::ListSharesRequest list;
  EXPECT_EQ(n2_.Relay().List(list)->shares_size(), 1);
  EXPECT_FALSE(n2_.Relay().List(list)->shares(0).file().has_expire_time());
  // Nothing is sent that is there.
  const auto again = n1_.Relay().Send(n1_.File("n2", "facts.json", body), false,
                                      [](int64_t) -> absl::StatusOr<std::unique_ptr<ByteSource>> {
                                        return absl::InternalError("it was asked for");
                                      });
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->bytes, 0);
  EXPECT_EQ(again->share.state(), v1::SHARE_STATE_DELIVERED);
}

TEST_F(OneRelayTest, AnotherNodeSeesNothingOfIt) {
  TestNode n3(fleet_, "n3");
  n3.Attach(relay_);
  const v1::SharedFile file = n1_.File("n2", "f", "abc");
  ASSERT_TRUE(n1_.Share("n2", "f", "abc").ok());
  EXPECT_EQ(ReasonOf(n3.Relay().Get(file.key()).status()), "NOT_YOURS");
  char buffer[8];
  EXPECT_EQ(ReasonOf(n3.Relay().Open(file, 0)->Read(buffer).status()), "NOT_YOURS");
  EXPECT_EQ(ReasonOf(n3.Relay().Remove(file.key())), "NOT_YOURS");
  EXPECT_EQ(n3.Relay().List({})->shares_size(), 0);
  // What it says of others as if it were them.
  EXPECT_EQ(Refusal(n3, file), "NOT_YOURS");
  // The source may look and remove, and need not read.
  EXPECT_EQ(ReasonOf(n1_.Relay().Open(file, 0)->Read(buffer).status()), "NOT_YOURS");
  EXPECT_TRUE(n1_.Relay().Remove(file.key()).ok());
  EXPECT_EQ(n2_.Outcome("n1", "n2", "f"), "removed");
}

TEST_F(OneRelayTest, IdsThatClimbAreRefused) {
  for (const std::string& id :
       {std::string(), std::string("."), std::string(".."), std::string("../../etc/passwd"),
        std::string("a/b"), std::string("%2e%2e%2f"), std::string("-x"), std::string(4096, 'a'),
        std::string("a\nb"), std::string(".metadata")}) {
    EXPECT_EQ(Refusal(n1_, n1_.File("n2", id, "abc")), "INVALID_SHARE") << id;
  }
  EXPECT_EQ(Refusal(n1_, n1_.File("../n2", "f", "abc")), "INVALID_SHARE");
}

TEST_F(OneRelayTest, WhatIsNotAsSignedIsRefused) {
  v1::SharedFile file = n1_.File("n2", "f", "abc");
  file.set_size(4);
  EXPECT_EQ(Refusal(n1_, file), "INVALID_SIGNATURE");
  // A good signature over other bytes than those that come.
  EXPECT_EQ(Refusal(n1_, n1_.File("n2", "f", "abd")), "DIGEST_MISMATCH");
  EXPECT_EQ(Refusal(n1_, n1_.File("n2", "f", "abcd")), "SIZE_MISMATCH");
  EXPECT_EQ(Refusal(n1_, n1_.File("n2", "f", "ab")), "SIZE_MISMATCH");
  v1::SharedFile old = n1_.File("n2", "f", "abc");
  old.mutable_sign_time()->set_seconds(old.sign_time().seconds() - 7200);
  ASSERT_TRUE(n1_.Sign(&old).ok());
  EXPECT_EQ(Refusal(n1_, old), "INVALID_SIGNATURE");
  EXPECT_EQ(n1_.Outcome("n1", "n2", "f"), "SHARE_NOT_FOUND");
}

TEST_F(OneRelayTest, WhatHasExpiredIsNotServed) {
  v1::SharedFile late = n1_.File("n2", "late", "abc");
  late.mutable_expire_time()->set_seconds(late.sign_time().seconds() - 1);
  ASSERT_TRUE(n1_.Sign(&late).ok());
  EXPECT_EQ(Refusal(n1_, late), "SHARE_EXPIRED");
  ASSERT_TRUE(n1_.Share("n2", "f", "abc", absl::Seconds(2)).ok());
  ASSERT_TRUE(n1_.Await("n1", "n2", "f", "expired"));
  char buffer[8];
  const auto read = n2_.Relay().Open(n1_.File("n2", "f", "abc"), 0)->Read(buffer);
  EXPECT_EQ(ReasonOf(read.status()), "SHARE_NOT_FOUND");
}

TEST_F(OneRelayTest, ANodeThatIsNotAttachedHereSharesNothingHere) {
  n1_.Detach();
  std::string refusal;
  for (int i = 0; i < 500 && refusal != "NOT_ATTACHED"; ++i) {
    refusal = Refusal(n1_, n1_.File("n2", absl::StrCat("f", i), "abc"));
  }
  EXPECT_EQ(refusal, "NOT_ATTACHED");
}

TEST_F(OneRelayTest, AFullRelaySaysSo) {
  relay_.Stop();
  relay_.config.shares.quota = 1 << 20;
  relay_.Start();
  n1_.Attach(relay_);
  EXPECT_EQ(Refusal(n1_, n1_.File("n2", "f", std::string((1 << 20) + 1, 'x'))), "SHARE_QUOTA");
}

TEST_F(OneRelayTest, TheSourceLearnsThatNobodyKnowsTheTarget) {
  // Right after its start the root waits for who comes back.
  const auto shared = n1_.Share("nobody", "f", "abc");
  if (shared.ok()) {
    EXPECT_TRUE(n1_.Await("n1", "nobody", "f", "refused at root: TARGET_UNKNOWN"));
  }
  EXPECT_EQ(Refusal(n1_, n1_.File("nobody", "g", "abc")), "TARGET_UNKNOWN");
}

// A root, two relays below it, and one below one of these.
class BranchesTest : public ::testing::Test {
 protected:
  BranchesTest()
      : root_(fleet_, "root", nullptr),
        east_(fleet_, "east", &root_),
        west_(fleet_, "west", &root_),
        far_(fleet_, "far", &west_),
        n1_(fleet_, "n1"),
        n2_(fleet_, "n2") {
    n1_.Attach(east_);
    n2_.Attach(far_);
  }

  // What lies in the folder of a relay for shared files, in bytes of content.
  int64_t BytesAt(const TestRelay& relay) const {
    int64_t bytes = 0;
    const std::string folder = relay.config.state_folder + "/shares/blobs/blobs";
    std::error_code none;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, none)) {
      if (entry.is_regular_file()) bytes += static_cast<int64_t>(entry.file_size());
    }
    return bytes;
  }

  ShareFleet fleet_;
  TestRelay root_;
  TestRelay east_;
  TestRelay west_;
  TestRelay far_;
  TestNode n1_;
  TestNode n2_;
};

TEST_F(BranchesTest, AFileGoesOverTheRootToTheRelayOfItsTarget) {
  const std::string body = Pattern(2'500'000);
  const auto shared = n1_.Share("n2", "f", body);
  ASSERT_TRUE(shared.ok()) << shared.status();
  // The source learns of it where it left it.
  ASSERT_TRUE(n1_.Await("n1", "n2", "f", "delivered at far"));
  EXPECT_EQ(n2_.Read("n1", "f"), body);
  // Who passed it on has let go of it.
  EXPECT_EQ(BytesAt(east_), 0);
  EXPECT_EQ(BytesAt(root_), 0);
  EXPECT_EQ(BytesAt(west_), 0);
  EXPECT_EQ(BytesAt(far_), 2'500'000);
  // Nothing is sent that is there, however far that is.
  const auto again = n1_.Relay().Send(n1_.File("n2", "f", body), false,
                                      [](int64_t) -> absl::StatusOr<std::unique_ptr<ByteSource>> {
                                        return absl::InternalError("it was asked for");
                                      });
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->share.relay(), "far");
  // And its removal finds it.
  ASSERT_TRUE(n1_.Relay().Remove(n1_.File("n2", "f", body).key()).ok());
  ASSERT_TRUE(n2_.Await("n1", "n2", "f", "removed"));
  EXPECT_TRUE(n1_.Await("n1", "n2", "f", "removed"));
  EXPECT_EQ(BytesAt(far_), 0);
}

TEST_F(BranchesTest, WaitsAtEachRelayThatCannotReachTheNext) {
  const std::string body = Pattern(1'000'000);
  // By then the root has heard of the target.
  ASSERT_TRUE(n1_.Share("n2", "first", "abc").ok());
  ASSERT_TRUE(n1_.Await("n1", "n2", "first", "delivered at far"));
  far_.Stop();
  west_.Stop();
  root_.Stop();
  ASSERT_TRUE(n1_.Share("n2", "f", body).ok());
  EXPECT_EQ(n1_.Outcome("n1", "n2", "f"), "on the way at east");
  // The relay that took it is lost and comes back, too.
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

TEST_F(BranchesTest, FollowsATargetThatMoved) {
  ASSERT_TRUE(n1_.Share("n2", "f", "abc").ok());
  ASSERT_TRUE(n1_.Await("n1", "n2", "f", "delivered at far"));
  n2_.Attach(west_);
  ASSERT_TRUE(n2_.Await("n1", "n2", "f", "delivered at west"));
  EXPECT_EQ(n2_.Read("n1", "f"), "abc");
}

TEST_F(BranchesTest, ARefusalFurtherDownComesBackToTheSource) {
  far_.Stop();
  far_.config.shares.max_size = 100;
  far_.Start();
  n2_.Attach(far_);
  ASSERT_TRUE(n1_.Share("n2", "f", std::string(101, 'x')).ok());
  EXPECT_TRUE(n1_.Await("n1", "n2", "f", "refused at far: SHARE_TOO_LARGE"));
}

TEST_F(BranchesTest, ARefusalAtTheRootComesBackToTheSource) {
  ASSERT_TRUE(n1_.Share("nobody", "f", "abc").ok());
  EXPECT_TRUE(n1_.Await("n1", "nobody", "f", "refused at "));
  EXPECT_TRUE(absl::StrContains(n1_.Outcome("n1", "nobody", "f"), "TARGET_UNKNOWN"));
}

}  // namespace
}  // namespace muster
