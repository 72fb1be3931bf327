#include "services/relay/files/child_offers.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"
#include "services/relay/testing/recorded_link.h"
#include "services/relay/topology/topology.h"

namespace muster {
namespace {

class ChildOffersTest : public ::testing::Test {
 protected:
  ChildOffersTest() { Attach(); }

  void Attach() {
    link_ = std::make_shared<RecordedLink>();
    ASSERT_TRUE(tree_.Attach(AttachedEntry("r1", "root", clock_.Now(), true), link_).ok());
  }

  static ShareRecord Record(const std::string& id) {
    ShareRecord record;
    record.id = id;
    record.child = "r1";
    record.share.mutable_file()->mutable_key()->set_id(id);
    return record;
  }

  void Offer(const std::string& id) {
    offers_.Offer(Record(id), "r1", [&]() -> absl::StatusOr<v1::SharedFile> {
      ++reads_;
      return Record(id).share.file();
    });
  }

  // Sends what is due; returns "files/removals" of each message.
  std::string Send() {
    offers_.Send();
    std::string sent;
    for (const v1::AttachResponse& message : link_->Take()) {
      absl::StrAppend(&sent, message.shares().files_size(), "/", message.shares().removed_size(),
                      " ");
    }
    return sent;
  }

  FakeClock clock_;
  Topology tree_{{"root"}, clock_};
  std::shared_ptr<RecordedLink> link_;
  ChildOffers offers_{tree_, clock_, absl::Seconds(10)};
  int reads_ = 0;
};

TEST_F(ChildOffersTest, OfferIsSentOnceUntilItIsDueAgain) {
  Offer("a");
  EXPECT_EQ(Send(), "1/0 ");
  Offer("a");
  EXPECT_EQ(Send(), "");
  EXPECT_EQ(reads_, 1);
  clock_.Advance(absl::Seconds(10));
  Offer("a");
  EXPECT_EQ(Send(), "1/0 ");
}

TEST_F(ChildOffersTest, OfferIsSentAgainToAChildThatAttachedAgain) {
  Offer("a");
  EXPECT_EQ(Send(), "1/0 ");
  Attach();
  Offer("a");
  EXPECT_EQ(Send(), "1/0 ");
}

TEST_F(ChildOffersTest, OffersAndRemovalsOfAChildShareAMessage) {
  Offer("a");
  Offer("b");
  offers_.RequestRemoval(Record("a"));
  EXPECT_EQ(Send(), "2/1 ");
}

TEST_F(ChildOffersTest, OffersBeyondAMessageFollowInTheNextOne) {
  for (int i = 0; i < 120; ++i) Offer(absl::StrCat("f", i));
  EXPECT_EQ(Send(), "100/0 ");
  for (int i = 0; i < 120; ++i) Offer(absl::StrCat("f", i));
  EXPECT_EQ(Send(), "20/0 ");
}

TEST_F(ChildOffersTest, ForgottenOfferIsDueAgain) {
  Offer("a");
  Offer("b");
  EXPECT_EQ(Send(), "2/0 ");
  offers_.Retain([](const std::string& id) { return id == "b"; });
  Offer("a");
  Offer("b");
  EXPECT_EQ(Send(), "1/0 ");
}

TEST_F(ChildOffersTest, UnreachableChildGetsNothing) {
  tree_.Detach("r1", link_.get());
  Offer("a");
  EXPECT_EQ(Send(), "");
  EXPECT_EQ(reads_, 0);
}

}  // namespace
}  // namespace muster
