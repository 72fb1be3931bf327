#include "services/relay/spool/spool_index.h"

#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/upload/testing/unused_sessions.h"

namespace muster {
namespace {

class SpoolIndexTest : public ::testing::Test {
 protected:
  static v1::OpenUploadRequest Request(const std::string& plugin, int64_t attempt = 1) {
    v1::OpenUploadRequest request;
    request.mutable_description()->mutable_key()->set_run("r");
    request.mutable_description()->mutable_key()->set_plugin(plugin);
    request.mutable_description()->mutable_key()->set_node("n1");
    request.mutable_description()->set_attempt(attempt);
    return request;
  }

  SpoolEntry Upload(const std::string& id, const v1::OpenUploadRequest& request) {
    SpoolEntry entry;
    entry.id = id;
    entry.description = request.description();
    entry.opened = clock_.MonotonicNow();
    entry.session = sessions_.Make(id);
    return entry;
  }

  FakeClock clock_;
  testing::UnusedSessions sessions_{clock_};
  SpoolIndex index_;
};

TEST_F(SpoolIndexTest, AttemptHasOneEntryWhoseEpochRises) {
  EXPECT_FALSE(*index_.Reopen(Request("p"), clock_.MonotonicNow()));
  EXPECT_TRUE(index_.Insert(Upload("a", Request("p"))));
  EXPECT_FALSE(index_.Insert(Upload("b", Request("p"))));
  EXPECT_TRUE(index_.Insert(Upload("c", Request("p", 2))));
  EXPECT_EQ((*index_.Reopen(Request("p"), clock_.MonotonicNow()))->epoch, 1);
  EXPECT_EQ((*index_.Reopen(Request("p"), clock_.MonotonicNow()))->epoch, 2);
  EXPECT_EQ((*index_.Reopen(Request("p"), clock_.MonotonicNow()))->id, "a");
  EXPECT_FALSE(index_.Find("b"));
}

TEST_F(SpoolIndexTest, UploadIsCommittedOnce) {
  index_.Insert(Upload("a", Request("p")));
  EXPECT_TRUE(index_.BeginCommit("a"));
  EXPECT_FALSE(index_.BeginCommit("a"));
  index_.CancelCommit("a");
  EXPECT_TRUE(index_.BeginCommit("a"));
  EXPECT_FALSE(index_.HasDeliverable(Request("p").description()));
  index_.EndCommit("a", 3, "digest", clock_.Now());
  EXPECT_FALSE(index_.BeginCommit("a"));
  EXPECT_TRUE(index_.HasDeliverable(Request("p").description()));
}

TEST_F(SpoolIndexTest, UploadThatIsBeingCommittedIsNotRemoved) {
  index_.Insert(Upload("a", Request("p")));
  ASSERT_TRUE(index_.BeginCommit("a"));
  clock_.Advance(absl::Hours(2));
  EXPECT_FALSE(index_.RemoveUpload(Request("p").description()));
  EXPECT_TRUE(index_.RemoveIdleUploads(clock_.MonotonicNow()).empty());
  index_.CancelCommit("a");
  EXPECT_EQ(index_.RemoveIdleUploads(clock_.MonotonicNow()).size(), 1u);
  EXPECT_FALSE(index_.Find("a"));
}

TEST_F(SpoolIndexTest, CompleteResultStaysUntilItsDeliveryEnds) {
  index_.Insert(Upload("a", Request("p")));
  index_.RemoveResult("a");
  EXPECT_TRUE(index_.Find("a"));
  ASSERT_TRUE(index_.BeginCommit("a"));
  index_.EndCommit("a", 3, "digest", clock_.Now());
  EXPECT_FALSE(index_.RemoveUpload(Request("p").description()));
  index_.RemoveResult("a");
  EXPECT_FALSE(index_.Find("a"));
  EXPECT_TRUE(index_.Insert(Upload("b", Request("p"))));
}

TEST_F(SpoolIndexTest, CompleteResultRejectsOtherContent) {
  index_.Insert(Upload("a", Request("p")));
  ASSERT_TRUE(index_.BeginCommit("a"));
  index_.EndCommit("a", 3, "digest", clock_.Now());
  auto request = Request("p");
  EXPECT_TRUE((*index_.Reopen(request, clock_.MonotonicNow()))->complete());
  request.set_size(4);
  EXPECT_EQ(ReasonOf(index_.Reopen(request, clock_.MonotonicNow()).status()), "TAKEN_OVER");
  request.set_size(3);
  request.set_sha256("other");
  EXPECT_EQ(ReasonOf(index_.Reopen(request, clock_.MonotonicNow()).status()), "TAKEN_OVER");
}

}  // namespace
}  // namespace muster
