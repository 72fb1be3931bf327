#include "services/relay/files/share_fetcher.h"

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/errors/shares.h"
#include "services/relay/files/share_errors.h"
#include "services/relay/files/share_store_fixture.h"
#include "services/relay/files/share_test_util.h"
#include "services/relay/topology/topology.h"

namespace muster {
namespace {

using Calls = std::vector<std::string>;

class ShareFetcherTest : public ShareStoreFixture {
 protected:
  v1::SharedFile Signed(const std::string& id, const std::string& body) {
    parent_.bodies[id] = body;
    return signer_.Sign(UnsignedFile(id, body, clock_.Now()), clock_.Now());
  }

  void Offer(const v1::SharedFile& file) {
    v1::ShareOffers offers;
    *offers.add_files() = file;
    fetcher_.HandleOffers(offers);
  }

  // Starts the due fetches and runs them.
  void Fetch() {
    fetcher_.StartDue();
    while (!tasks_.empty()) {
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
  }

  FileSigner signer_{clock_.Now()};
  Topology tree_{{"r1", false}, clock_};
  NoPeers peers_;
  FakeRouting routing_;
  FakeParent parent_;
  std::deque<absl::AnyInvocable<void()>> tasks_;
  ShareFetcher fetcher_{{*store_, tree_, clock_, kShareFleet, false, peers_, signer_},
                        parent_,
                        {.first = absl::Seconds(1), .most = absl::Seconds(30)},
                        [this](absl::AnyInvocable<void()> task) {
                          tasks_.push_back(std::move(task));
                          return true;
                        },
                        routing_};
};

TEST_F(ShareFetcherTest, OfferedFileIsStoredOnce) {
  const auto file = Signed("f", body_);
  Offer(file);
  Offer(file);
  Fetch();
  EXPECT_EQ(StateOf(*store_, file), "held IN_TRANSIT");
  EXPECT_TRUE(store_->Find(file.key())->unreported);
  EXPECT_TRUE(Body(file) == body_);
  EXPECT_EQ(routing_.wakes, 1);
  Fetch();
  EXPECT_EQ(parent_.Calls(), Calls{"read f from 0"});
}

TEST_F(ShareFetcherTest, PartialFileIsResumed) {
  const auto file = Signed("f", body_);
  parent_.read_result = absl::UnavailableError("down");
  parent_.read_before_error = 30'000;
  Offer(file);
  Fetch();
  parent_.read_result = absl::OkStatus();
  clock_.Advance(absl::Minutes(1));
  Fetch();
  EXPECT_EQ(parent_.Calls(), (Calls{"read f from 0", "read f from 30000"}));
  EXPECT_TRUE(Body(file) == body_);
}

TEST_F(ShareFetcherTest, FailedFetchWaitsForItsBackoff) {
  const auto file = Signed("f", body_);
  parent_.read_result = absl::UnavailableError("down");
  Offer(file);
  Fetch();
  Fetch();
  EXPECT_EQ(parent_.Calls().size(), 1u);
  fetcher_.ResetBackoff();
  Fetch();
  EXPECT_EQ(parent_.Calls().size(), 1u);
  parent_.read_result = absl::OkStatus();
  clock_.Advance(absl::Minutes(1));
  Fetch();
  EXPECT_EQ(StateOf(*store_, file), "held IN_TRANSIT");
}

TEST_F(ShareFetcherTest, FileWithAWrongSignatureIsRefused) {
  auto file = Signed("f", body_);
  file.set_size(file.size() + 1);
  Offer(file);
  Fetch();
  EXPECT_EQ(parent_.Calls(), Calls{"report f REFUSED"});
  EXPECT_EQ(parent_.reported.reason().find("INVALID_SIGNATURE"), 0u);
  EXPECT_EQ(parent_.reported.relay(), "r1");
  EXPECT_EQ(StateOf(*store_, file), "");
}

TEST_F(ShareFetcherTest, FileOfARevokedNodeIsRefused) {
  const auto file = Signed("f", body_);
  signer_.Revoke();
  Offer(file);
  Fetch();
  EXPECT_EQ(parent_.Calls(), Calls{"report f REFUSED"});
}

TEST_F(ShareFetcherTest, RefusalIsReportedUntilItSucceeds) {
  Offer(Signed("f", body_));
  signer_.Revoke();
  parent_.report_result = absl::UnavailableError("down");
  Fetch();
  clock_.Advance(absl::Minutes(1));
  parent_.report_result = absl::OkStatus();
  Fetch();
  clock_.Advance(absl::Minutes(1));
  Fetch();
  EXPECT_EQ(parent_.Calls(), (Calls{"report f REFUSED", "report f REFUSED"}));
}

// A parent that announces a larger file than it sends, or the reverse, fills no disk.
TEST_F(ShareFetcherTest, OtherBytesThanSignedAreRefusedAfterThreeTries) {
  const auto file = Signed("f", body_);
  parent_.bodies["f"] = body_ + "more";
  Offer(file);
  for (int i = 0; i < 4; ++i) {
    Fetch();
    clock_.Advance(absl::Minutes(1));
  }
  EXPECT_EQ(parent_.Calls().back(), "report f REFUSED");
  EXPECT_EQ(StateOf(*store_, file), "");
}

TEST_F(ShareFetcherTest, WithdrawnOfferIsForgotten) {
  const auto file = Signed("f", body_);
  parent_.read_result = errors::ShareNotFound(file.key());
  Offer(file);
  Fetch();
  clock_.Advance(absl::Minutes(1));
  Fetch();
  EXPECT_EQ(parent_.Calls(), Calls{"read f from 0"});
}

TEST_F(ShareFetcherTest, LaterOfferOfAKeyReplacesTheEarlierOne) {
  Offer(Signed("f", body_));
  clock_.Advance(absl::Seconds(5));
  const auto later = Signed("f", small_);
  Offer(later);
  Fetch();
  EXPECT_EQ(parent_.Calls(), Calls{"read f from 0"});
  EXPECT_EQ(Body(later), small_);
}

TEST_F(ShareFetcherTest, AtMost16FetchesAreInProgress) {
  for (int i = 0; i < 20; ++i) Offer(Signed(absl::StrCat("f", i), small_));
  fetcher_.StartDue();
  EXPECT_EQ(tasks_.size(), 16u);
  Fetch();
  Fetch();
  EXPECT_EQ(store_->files(), 20);
}

}  // namespace
}  // namespace muster
