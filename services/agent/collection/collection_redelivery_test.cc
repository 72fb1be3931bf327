// Kept results that the fleet requests again.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "services/agent/collection/testing/runner_fixture.h"
#include "services/client/attempt_state.h"
#include "services/common/errors/relay.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

namespace fs = std::filesystem;

class CollectionRedeliveryTest : public CollectionRunnerTest {
 protected:
  // Returns a request of the fleet for the result of plugin "facts".
  v1::CollectionOffer Redelivery() {
    v1::CollectionOffer offer = OfferOf(fleet_.run, {"facts"}, "");
    offer.mutable_plugins(0)->clear_definition_yaml();
    offer.set_redelivery(true);
    return offer;
  }

  std::string KeptFolder() const {
    return absl::StrCat(folder_, "/kept/", client::StateName(fleet_.run, "facts", "n1"));
  }
  std::string KeptFile() const { return KeptFolder() + "/result"; }

  // Collects, and waits until the result was moved.
  void CollectAndKeep(const std::string& script = kSayHello) {
    Collect(Offer(script));
    ASSERT_TRUE(testing::Await([&] { return fs::exists(KeptFile()); }));
  }

  // Requests the result again, and waits until it has arrived.
  bool Redelivered() {
    peer_.Forget();
    runner_->Offer(Redelivery(), peer_.target());
    return testing::Await([&] { return peer_.committed().has_value(); });
  }
};

TEST_F(CollectionRedeliveryTest, CommittedResultIsKeptAndDeliveredAgain) {
  CollectAndKeep();
  const client::TestPeer::Committed first = *peer_.committed();
  const std::string results = absl::StrCat(
      folder_, "/collections/", client::StateName(fleet_.run, "facts", "n1"), "/results");
  EXPECT_TRUE(testing::Await([&] { return !fs::exists(results); }));
  ASSERT_TRUE(Redelivered());
  const client::TestPeer::Committed again = *peer_.committed();
  EXPECT_EQ(again.body, "hello\n");
  EXPECT_EQ(again.description.file_name(), first.description.file_name());
  EXPECT_EQ(again.description.media_type(), first.description.media_type());
  EXPECT_TRUE(peer_.declines().empty());
}

TEST_F(CollectionRedeliveryTest, RestartedAgentDeliversAgain) {
  CollectAndKeep();
  Begin();
  ASSERT_TRUE(Redelivered());
  EXPECT_EQ(peer_.committed()->body, "hello\n");
}

TEST_F(CollectionRedeliveryTest, RepeatedRequestWaits) {
  CollectAndKeep();
  ASSERT_TRUE(Redelivered());
  peer_.Forget();
  clock_.Advance(Redeliveries::kPause - absl::Seconds(1));
  runner_->Offer(Redelivery(), peer_.target());
  EXPECT_FALSE(peer_.committed().has_value());
  clock_.Advance(absl::Seconds(1));
  runner_->Offer(Redelivery(), peer_.target());
  EXPECT_TRUE(testing::Await([&] { return peer_.committed().has_value(); }));

  peer_.Forget();
  clock_.Advance(2 * Redeliveries::kPause - absl::Seconds(1));
  runner_->Offer(Redelivery(), peer_.target());
  EXPECT_FALSE(peer_.committed().has_value());
}

TEST_F(CollectionRedeliveryTest, ResultThatIsNotKeptIsDeclined) {
  CollectAndKeep();
  fs::remove_all(KeptFolder());
  Begin();
  runner_->Offer(Redelivery(), peer_.target());
  ASSERT_TRUE(testing::Await([&] { return !peer_.declines().empty(); }));
  EXPECT_THAT(peer_.declines(), ElementsAre(StartsWith("RESULT_NOT_KEPT: ")));
}

TEST_F(CollectionRedeliveryTest, ResultIsNotKeptWithoutALimit) {
  options_.max_kept_bytes = 0;
  Begin();
  Collect(Offer(kSayHello));
  runner_->Offer(Redelivery(), peer_.target());
  ASSERT_TRUE(testing::Await([&] { return !peer_.declines().empty(); }));
  EXPECT_FALSE(fs::exists(KeptFile()));
}

// The plugin keeps another name of its file, and writes to it later.
TEST_F(CollectionRedeliveryTest, FileThatWasChangedIsDeclinedAndRemoved) {
  const std::string other = folder_ + "/other-name";
  CollectAndKeep(absl::StrCat(kSayHello, "; ln $RESULTS_DIR/out.txt ", other));
  std::ofstream(other) << "jello\n";
  runner_->Offer(Redelivery(), peer_.target());
  ASSERT_TRUE(testing::Await([&] { return !peer_.declines().empty(); }));
  EXPECT_THAT(peer_.declines(), ElementsAre(StartsWith("KEPT_RESULT_CHANGED: ")));
  EXPECT_EQ(peer_.committed()->body, "hello\n");
  EXPECT_FALSE(fs::exists(KeptFile()));
  EXPECT_TRUE(fs::exists(other));
}

TEST_F(CollectionRedeliveryTest, LinkInPlaceOfAFileIsNotFollowed) {
  CollectAndKeep();
  fs::remove(KeptFile());
  Write("secret", "hello\n");
  fs::create_symlink(folder_ + "/secret", KeptFile());
  runner_->Offer(Redelivery(), peer_.target());
  ASSERT_TRUE(testing::Await([&] { return !peer_.declines().empty(); }));
  EXPECT_THAT(peer_.declines(), ElementsAre(StartsWith("KEPT_RESULT_CHANGED: ")));
}

TEST_F(CollectionRedeliveryTest, RequestForAnotherNodeIsIgnored) {
  CollectAndKeep();
  peer_.Forget();
  v1::CollectionOffer other = Redelivery();
  other.clear_nodes();
  other.add_nodes("n2");
  runner_->Offer(other, peer_.target());
  v1::CollectionOffer invalid = Redelivery();
  invalid.mutable_plugins(0)->set_name("../facts");
  runner_->Offer(invalid, peer_.target());
  runner_->Offer(Redelivery(), peer_.target());
  EXPECT_TRUE(testing::Await([&] { return peer_.committed().has_value(); }));
  EXPECT_TRUE(peer_.declines().empty());
}

TEST_F(CollectionRedeliveryTest, KeptResultIsRemovedAnHourAfterTheEndOfItsRun) {
  CollectAndKeep();
  v1::CollectionEnded ended;
  ended.set_run(fleet_.run);
  runner_->End(ended);
  clock_.Advance(KeptResults::kKeptAfterEnd - absl::Seconds(1));
  ASSERT_TRUE(Redelivered());
  clock_.Advance(absl::Seconds(10));  // the next trim
  EXPECT_TRUE(testing::Await([&] { return !fs::exists(KeptFile()); }));
}

TEST_F(CollectionRedeliveryTest, DeliveryThatFailsIsTriedAgain) {
  CollectAndKeep();
  peer_.Forget();
  std::atomic<int> calls = 0;
  peer_.judge = [&calls]() -> absl::Status {
    return ++calls == 1 ? errors::NotAttached("n1") : absl::OkStatus();
  };
  runner_->Offer(Redelivery(), peer_.target());
  ASSERT_TRUE(testing::Await([&] { return calls > 0; }));
  EXPECT_TRUE(testing::Await([&] {
    clock_.Advance(Redeliveries::kPause);
    runner_->Offer(Redelivery(), peer_.target());  // wakes the thread, which waits by real time
    return peer_.committed().has_value();
  }));
}

}  // namespace
}  // namespace muster
