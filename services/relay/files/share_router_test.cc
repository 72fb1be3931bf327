// The router on a fake clock, with a fake parent and recorded streams of children.
#include "services/relay/files/share_router.h"

#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/sha256.h"
#include "services/common/blob/blob_test_util.h"
#include "services/common/errors/shares.h"
#include "services/common/identity/authority.h"
#include "services/common/identity/share_signature.h"
#include "services/relay/files/share_errors.h"
#include "services/relay/testing/recorded_link.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-00112233.muster";

// A parent that has files and answers what the test says.
class FakeParent : public ShareParent {
 public:
  uint64_t connection() override { return connected_to; }

  absl::StatusOr<ShareTransfer::Sent> Send(const v1::SharedFile& file, bool only_if_elsewhere,
                                           const ShareTransfer::OpenSource& open) override {
    calls.push_back(
        absl::StrCat(only_if_elsewhere ? "send-if-elsewhere " : "send ", file.key().id()));
    if (!send_result.ok()) return send_result;
    ShareTransfer::Sent sent;
    sent.retain = retain;
    if (retain) return sent;
    received = ReadAll(**open(0));
    sent.share.set_relay("parent");
    return sent;
  }

  absl::Status Report(const v1::Share& share) override {
    calls.push_back(absl::StrCat("report ", share.file().key().id(), " ",
                                 v1::ShareState_Name(share.state()).substr(12)));
    return report_result;
  }

  absl::Status Read(const v1::SharedFile& file, int64_t offset, Sink sink) override {
    calls.push_back(absl::StrCat("read ", file.key().id(), " from ", offset));
    if (!read_result.ok()) return read_result;
    return sink(std::string_view(bodies[file.key().id()]).substr(static_cast<size_t>(offset)));
  }

  void Stop() override {}

  std::vector<std::string> Calls() { return std::exchange(calls, {}); }

  uint64_t connected_to = 1;
  absl::Status send_result;
  absl::Status report_result;
  absl::Status read_result;
  bool retain = false;
  std::map<std::string, std::string> bodies;
  std::string received;
  std::vector<std::string> calls;
};

using Calls = std::vector<std::string>;

class ShareRouterTest : public ::testing::Test {
 protected:
  ShareRouterTest()
      : root_(*FleetRoot::Create(kFleet, *PrivateKey::Generate(), clock_.Now())),
        key_(*PrivateKey::Generate()),
        intermediate_(*Intermediate::Load(kFleet, key_,
                                          *root_.SignIntermediate(key_.public_key(), clock_.Now()),
                                          root_.certificate())) {
    if (mkdtemp(folder_.data()) == nullptr) std::abort();
    auto store = ShareStore::Open({.folder = folder_, .relay = "r1"}, disk_, clock_, metrics_);
    if (!store.ok()) std::abort();
    store_ = *std::move(store);
    Restart(/*is_root=*/false);
  }

  ~ShareRouterTest() override {
    disk_.Drain(absl::Seconds(30)).IgnoreError();
    store_.reset();
    RemoveTree(PosixFileOps(), folder_).IgnoreError();
  }

  void Restart(bool is_root) {
    router_.reset();
    const ShareParts parts{*store_,
                           tree_,
                           clock_,
                           kFleet,
                           is_root,
                           nullptr,
                           nullptr,
                           [this] { return std::vector<Certificate>{root_.certificate()}; },
                           [](const std::string&) { return false; }};
    const PostTask run = [this](absl::AnyInvocable<void()> task) {
      tasks_.push_back(std::move(task));
      return true;
    };
    router_ = std::make_unique<ShareRouter>(
        parts, ShareRouter::Times(),
        ShareRouter::Environment{parent_, [this](const std::string&) { return joined_; }, run, run,
                                 [] {}});
  }

  v1::SharedFile File(const std::string& id, const std::string& body) {
    v1::SharedFile file;
    file.mutable_key()->set_source("n1");
    file.mutable_key()->set_target("n2");
    file.mutable_key()->set_id(id);
    file.set_size(static_cast<int64_t>(body.size()));
    file.set_sha256(DigestBytes(Sha256::Of(body)));
    file.mutable_sign_time()->set_seconds(absl::ToUnixSeconds(clock_.Now()));
    const Certificate leaf = *intermediate_.Issue(NodeIdentity{"n1"}, key_.public_key(), {},
                                                  clock_.Now(), clock_.Now() + absl::Hours(24));
    const std::string chain = absl::StrCat(leaf.ToPem(), intermediate_.certificate().ToPem());
    EXPECT_TRUE(SignSharedFile(key_, chain, &file).ok());
    return file;
  }

  void Store(const v1::SharedFile& file, const std::string& body) {
    const absl::Status stored = store_->Receive(
        file, false, NodeOpener("n1"), [&](int64_t, ShareStore::Sink sink) { return sink(body); });
    ASSERT_TRUE(stored.ok()) << stored;
  }

  std::shared_ptr<RecordedLink> Attach(const std::string& name, bool is_relay) {
    auto link = std::make_shared<RecordedLink>();
    EXPECT_TRUE(tree_.Attach(AttachedEntry(name, "r1", clock_.Now(), is_relay), link).ok());
    return link;
  }

  // Runs ticks until nothing is left to do now.
  void Tick() {
    router_->Tick();
    while (!tasks_.empty()) {
      while (!tasks_.empty()) {
        auto task = std::move(tasks_.front());
        tasks_.pop_front();
        task();
      }
      router_->Tick();
    }
  }

  // "STAGE STATE", or "" without a record.
  std::string State(const v1::SharedFile& file) {
    const auto found = store_->Find(file.key());
    if (!found) return "";
    const std::map<ShareStage, std::string> stages = {{ShareStage::kHeld, "held"},
                                                      {ShareStage::kPassedUp, "up"},
                                                      {ShareStage::kPassedDown, "down"},
                                                      {ShareStage::kEnded, "ended"}};
    return absl::StrCat(stages.at(found->stage), " ",
                        v1::ShareState_Name(found->share.state()).substr(12));
  }

  void Offer(const v1::SharedFile& file) {
    v1::ShareOffers offers;
    *offers.add_files() = file;
    router_->HandleOffers(offers);
  }

  FakeClock clock_;
  std::string folder_ = ::testing::TempDir() + "/router_XXXXXX";
  Executor disk_{{"disk", 1, 64}};
  Metrics metrics_;
  const FleetRoot root_;
  const PrivateKey key_;
  const Intermediate intermediate_;
  Topology tree_{{"r1", false}, clock_};
  std::unique_ptr<ShareStore> store_;
  FakeParent parent_;
  absl::Status joined_;
  std::deque<absl::AnyInvocable<void()>> tasks_;
  std::unique_ptr<ShareRouter> router_;
};

TEST_F(ShareRouterTest, FileForAnUnknownTargetIsSentToTheParent) {
  const auto file = File("f", "abc");
  Store(file, "abc");
  Tick();
  EXPECT_EQ(parent_.Calls(), Calls{"send f"});
  EXPECT_EQ(parent_.received, "abc");
  EXPECT_EQ(State(file), "up IN_TRANSIT");
}

TEST_F(ShareRouterTest, SendIsTriedAgainAfterItsBackoff) {
  const auto file = File("f", "abc");
  Store(file, "abc");
  parent_.send_result = absl::UnavailableError("down");
  Tick();
  EXPECT_EQ(parent_.Calls().size(), 1u);
  Tick();
  EXPECT_EQ(parent_.Calls().size(), 0u);
  clock_.Advance(absl::Seconds(2));
  parent_.send_result = absl::OkStatus();
  Tick();
  EXPECT_EQ(State(file), "up IN_TRANSIT");
}

TEST_F(ShareRouterTest, NewParentEndsTheBackoff) {
  Store(File("f", "abc"), "abc");
  parent_.send_result = absl::UnavailableError("down");
  Tick();
  EXPECT_EQ(parent_.Calls().size(), 1u);
  parent_.connected_to = 2;
  Tick();
  EXPECT_EQ(parent_.Calls().size(), 1u);
}

TEST_F(ShareRouterTest, NothingIsSentWithoutAParent) {
  const auto file = File("f", "abc");
  Store(file, "abc");
  parent_.connected_to = 0;
  Tick();
  EXPECT_EQ(parent_.Calls(), Calls());
  EXPECT_EQ(State(file), "held IN_TRANSIT");
}

TEST_F(ShareRouterTest, RefusalOfTheParentEndsTheFile) {
  const auto file = File("f", "abc");
  Store(file, "abc");
  parent_.send_result = errors::TargetUnknown("n2");
  Tick();
  EXPECT_EQ(State(file), "ended REFUSED");
}

TEST_F(ShareRouterTest, FileForAnAttachedNodeIsDelivered) {
  Attach("n2", false);
  const auto file = File("f", "abc");
  Store(file, "abc");
  Tick();
  EXPECT_EQ(State(file), "held DELIVERED");
  EXPECT_EQ(parent_.Calls(), Calls());
}

TEST_F(ShareRouterTest, DeliveredFileFollowsATargetThatLeft) {
  const auto link = Attach("n2", false);
  const auto file = File("f", "abc");
  Store(file, "abc");
  Tick();
  tree_.Detach("n2", link.get());
  Tick();
  EXPECT_EQ(parent_.Calls(), Calls());
  clock_.Advance(absl::Minutes(2));
  parent_.retain = true;
  Tick();
  EXPECT_EQ(parent_.Calls(), Calls{"send-if-elsewhere f"});
  EXPECT_EQ(State(file), "held DELIVERED");
  clock_.Advance(absl::Minutes(2));
  parent_.retain = false;
  Tick();
  EXPECT_EQ(State(file), "up IN_TRANSIT");
}

TEST_F(ShareRouterTest, FileForANodeDownstreamIsOfferedToItsRelay) {
  const auto link = Attach("r2", true);
  ASSERT_TRUE(
      tree_.ApplyUpdate("r2", {AttachedEntry("n2", "r2", clock_.Now())}, {}, /*complete=*/true)
          .ok());
  Store(File("f", "abc"), "abc");
  Tick();
  const auto sent = link->Take();
  ASSERT_EQ(sent.size(), 1u);
  ASSERT_EQ(sent[0].shares().files_size(), 1);
  EXPECT_FALSE(sent[0].shares().files(0).signature().empty());
  Tick();
  EXPECT_EQ(link->Take().size(), 0u);
}

TEST_F(ShareRouterTest, OfferedFileIsFetchedDeliveredAndReported) {
  Attach("n2", false);
  const auto file = File("f", "abc");
  parent_.bodies["f"] = "abc";
  Offer(file);
  Tick();
  EXPECT_EQ(State(file), "held DELIVERED");
  EXPECT_EQ(parent_.Calls(), (Calls{"read f from 0", "report f IN_TRANSIT"}));
  clock_.Advance(absl::Seconds(1));
  Tick();
  EXPECT_EQ(parent_.Calls(), Calls{"report f DELIVERED"});
  clock_.Advance(absl::Minutes(1));
  Tick();
  EXPECT_EQ(parent_.Calls(), Calls());
}

TEST_F(ShareRouterTest, FetchIsTriedAgainAndRefusedAfterThreeMismatches) {
  const auto file = File("f", "abc");
  parent_.bodies["f"] = "abX";
  Offer(file);
  for (int i = 0; i < 3; ++i) {
    Tick();
    clock_.Advance(absl::Minutes(1));
  }
  EXPECT_EQ(parent_.Calls(),
            (Calls{"read f from 0", "read f from 0", "read f from 0", "report f REFUSED"}));
  Tick();
  EXPECT_EQ(parent_.Calls(), Calls());
  EXPECT_EQ(State(file), "");
}

TEST_F(ShareRouterTest, WithdrawnOfferIsForgotten) {
  const auto file = File("f", "abc");
  parent_.read_result = errors::ShareNotFound(file.key());
  Offer(file);
  Tick();
  clock_.Advance(absl::Minutes(1));
  Tick();
  EXPECT_EQ(parent_.Calls(), Calls{"read f from 0"});
}

TEST_F(ShareRouterTest, FailedReportIsTriedAgain) {
  Attach("n2", false);
  parent_.bodies["f"] = "abc";
  parent_.report_result = absl::UnavailableError("down");
  Offer(File("f", "abc"));
  Tick();
  parent_.Calls();
  parent_.report_result = absl::OkStatus();
  clock_.Advance(absl::Minutes(1));
  Tick();
  EXPECT_EQ(parent_.Calls(), Calls{"report f DELIVERED"});
}

TEST_F(ShareRouterTest, RemovalByTheParentIsReported) {
  const auto file = File("f", "abc");
  Store(file, "abc");
  parent_.connected_to = 0;
  Tick();
  parent_.connected_to = 1;
  v1::ShareOffers offers;
  *offers.add_removed() = file.key();
  offers.add_removed()->set_id("absent");
  router_->HandleOffers(offers);
  Tick();
  EXPECT_EQ(State(file), "ended REMOVED");
  EXPECT_EQ(parent_.Calls(), (Calls{"report absent REMOVED", "report f REMOVED"}));
}

TEST_F(ShareRouterTest, RootLooksUpATargetUntilItIsSettled) {
  Restart(/*is_root=*/true);
  const auto file = File("f", "abc");
  Store(file, "abc");
  Tick();
  EXPECT_EQ(State(file), "held IN_TRANSIT");
  clock_.Advance(absl::Seconds(44));
  EXPECT_FALSE(router_->settled());
  Tick();
  EXPECT_EQ(State(file), "held IN_TRANSIT");
  clock_.Advance(absl::Seconds(1));
  Tick();
  EXPECT_EQ(State(file), "ended REFUSED");
}

TEST_F(ShareRouterTest, RootRefusesATargetThatNeverJoined) {
  Restart(/*is_root=*/true);
  joined_ = errors::TargetNeverJoined("n2");
  const auto file = File("f", "abc");
  Store(file, "abc");
  Tick();
  EXPECT_EQ(State(file), "ended REFUSED");
}

}  // namespace
}  // namespace muster
