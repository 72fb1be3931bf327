// The router on a fake clock, with a fake parent and recorded streams of children.
#include "services/relay/files/share_router.h"

#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/file_ops.h"
#include "services/common/errors/shares.h"
#include "services/relay/files/share_errors.h"
#include "services/relay/files/share_test_util.h"
#include "services/relay/testing/recorded_link.h"
#include "services/relay/topology/topology.h"

namespace muster {
namespace {

using Calls = std::vector<std::string>;

class ShareRouterTest : public ::testing::Test {
 protected:
  ShareRouterTest() {
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
    const ShareParts parts{*store_, tree_, clock_, kShareFleet, is_root, peers_, signer_};
    const PostTask run = [this](absl::AnyInvocable<void()> task) {
      tasks_.push_back(std::move(task));
      return true;
    };
    router_ = std::make_unique<ShareRouter>(
        parts, ShareRouter::Times(),
        ShareRouter::Environment{parent_, register_, run, run, clock_, disk_});
  }

  v1::SharedFile File(const std::string& id, const std::string& body) {
    return signer_.Sign(UnsignedFile(id, body, clock_.Now()), clock_.Now());
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

  std::string State(const v1::SharedFile& file) { return StateOf(*store_, file); }

  void Offer(const v1::SharedFile& file) {
    v1::ShareOffers offers;
    *offers.add_files() = file;
    router_->HandleOffers(offers);
  }

  FakeClock clock_;
  std::string folder_ = ::testing::TempDir() + "/router_XXXXXX";
  Executor disk_{{"disk", 1, 64}};
  Metrics metrics_;
  FileSigner signer_{clock_.Now()};
  NoPeers peers_;
  FakeRegister register_;
  Topology tree_{{"r1", false}, clock_};
  std::unique_ptr<ShareStore> store_;
  FakeParent parent_;
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
  v1::ShareKey absent = file.key();
  absent.set_id("absent");
  *offers.add_removed() = absent;
  offers.add_removed()->set_id("of no node");
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
  register_.joined = errors::TargetNeverJoined("n2");
  const auto file = File("f", "abc");
  Store(file, "abc");
  Tick();
  EXPECT_EQ(State(file), "ended REFUSED");
}

TEST_F(ShareRouterTest, RefusalOfARevokedTargetStatesTheCause) {
  Restart(/*is_root=*/true);
  clock_.Advance(absl::Minutes(1));
  register_.joined = errors::TargetRevoked("n2");
  const auto file = File("f", "abc");
  Store(file, "abc");
  Tick();
  EXPECT_EQ(State(file), "ended REFUSED");
  EXPECT_EQ(store_->Find(file.key())->share.reason(), "TARGET_UNKNOWN: node \"n2\" was revoked");
}

// With Start, ticks run on timers.
class StartedShareRouterTest : public ShareRouterTest {
 protected:
  // Advances the clock in steps and runs what that starts.
  void Advance(absl::Duration by) {
    for (absl::Duration done; done < by; done += absl::Milliseconds(10)) {
      clock_.Advance(absl::Milliseconds(10));
      disk_.AwaitIdle();
      while (!tasks_.empty()) {
        auto task = std::move(tasks_.front());
        tasks_.pop_front();
        task();
      }
    }
  }
};

TEST_F(StartedShareRouterTest, NothingIsDoneBeforeTheStart) {
  Store(File("f", "abc"), "abc");
  router_->Wake();
  Advance(absl::Seconds(2));
  EXPECT_EQ(parent_.Calls(), Calls());
}

TEST_F(StartedShareRouterTest, RequestsShareATickSoon) {
  router_->Start();
  Advance(absl::Milliseconds(100));
  Store(File("f", "abc"), "abc");
  for (int i = 0; i < 5; ++i) router_->Wake();
  Advance(absl::Milliseconds(20));
  EXPECT_EQ(parent_.Calls(), Calls{"send f"});
}

TEST_F(StartedShareRouterTest, RepeatedRequestsDoNotDelayATick) {
  router_->Start();
  Advance(absl::Milliseconds(100));
  Store(File("f", "abc"), "abc");
  for (int i = 0; i < 4; ++i) {
    router_->Wake();
    Advance(absl::Milliseconds(10));
  }
  EXPECT_EQ(parent_.Calls(), Calls{"send f"});
}

TEST_F(StartedShareRouterTest, FileIsSentWithoutARequestWithinATick) {
  router_->Start();
  Advance(absl::Milliseconds(100));
  Store(File("f", "abc"), "abc");
  Advance(absl::Seconds(1));
  EXPECT_EQ(parent_.Calls(), Calls{"send f"});
}

TEST_F(StartedShareRouterTest, NothingIsDoneAfterTheStop) {
  router_->Start();
  Advance(absl::Milliseconds(100));
  router_->Stop();
  Store(File("f", "abc"), "abc");
  router_->Wake();
  Advance(absl::Seconds(2));
  EXPECT_EQ(parent_.Calls(), Calls());
}

}  // namespace
}  // namespace muster
