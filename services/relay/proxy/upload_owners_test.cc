#include "services/relay/proxy/upload_owners.h"

#include <gtest/gtest.h>

#include "services/common/base/error.h"

namespace muster {
namespace {

class UploadOwnersTest : public ::testing::Test {
 protected:
  // Acquires upload "u"; `taken_over` counts how often it is taken over.
  absl::StatusOr<UploadOwners::Ownership> Acquire(int64_t epoch, int* taken_over,
                                                  const std::string& caller = "n1") {
    return owners_.Acquire(caller, "u", epoch, [taken_over] { ++*taken_over; });
  }

  UploadOwners owners_;
  int first_ = 0;
  int second_ = 0;
};

TEST_F(UploadOwnersTest, LaterStreamTakesOverOnce) {
  const auto first = Acquire(1, &first_);
  const auto second = Acquire(1, &second_);
  EXPECT_EQ(first_, 1);
  EXPECT_TRUE(Acquire(2, &first_).ok());
  EXPECT_EQ(first_, 1);
  EXPECT_EQ(second_, 1);
}

TEST_F(UploadOwnersTest, StreamWithALowerEpochIsRefused) {
  const auto first = Acquire(2, &first_);
  EXPECT_EQ(ReasonOf(Acquire(1, &second_).status()), "TAKEN_OVER");
  EXPECT_EQ(first_, 0);
}

TEST_F(UploadOwnersTest, AnotherCallerDoesNotTakeOver) {
  const auto first = Acquire(1, &first_);
  const auto second = Acquire(2, &second_, "n2");
  EXPECT_TRUE(second.ok());
  EXPECT_EQ(first_, 0);
}

TEST_F(UploadOwnersTest, EndOfAnEarlierOwnerChangesNothing) {
  auto first = Acquire(1, &first_);
  const auto second = Acquire(1, &second_);
  first->reset();
  EXPECT_TRUE(Acquire(1, &first_).ok());
  EXPECT_EQ(second_, 1);
}

TEST_F(UploadOwnersTest, EndedOwnerIsForgotten) {
  Acquire(2, &first_)->reset();
  EXPECT_TRUE(Acquire(1, &second_).ok());
  EXPECT_EQ(first_, 0);
}

}  // namespace
}  // namespace muster
