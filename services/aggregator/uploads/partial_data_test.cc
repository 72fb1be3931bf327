#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

#include "services/aggregator/testing/uploads_fixture.h"
#include "services/common/base/error.h"
#include "services/common/base/simulated_disk.h"
#include "services/common/blob/blob_test_util.h"
#include "services/common/blob/files/files_blob_store.h"

namespace muster {
namespace {

using PartialDataTest = testing::UploadsFixture;

TEST_F(PartialDataTest, PartialDataIsKeptForEachPair) {
  const auto one = *Open(Of("n1"));
  Append(*Attach(one), one, "half");
  ASSERT_TRUE(Open(Of("n2")).ok());  // brought nothing
  const auto kept = uploads_->KeepPartials(kRun);
  ASSERT_TRUE(kept.ok()) << kept.status();
  ASSERT_EQ(kept->size(), 1u);
  EXPECT_EQ(kept->front().node, "n1");
  EXPECT_EQ(kept->front().size, 4);
  EXPECT_EQ(ReadAll(**state_.blobs().Open(kept->front().blob, 0)), "half");
}

// The caller failed before it stored what was kept.
TEST_F(PartialDataTest, RepeatedKeepReturnsTheSamePartialData) {
  const auto one = *Open(Of("n1"));
  Append(*Attach(one), one, "half");
  const auto kept = uploads_->KeepPartials(kRun);
  ASSERT_TRUE(kept.ok()) << kept.status();
  const auto again = uploads_->KeepPartials(kRun);
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_EQ(again->size(), 1u);
  EXPECT_EQ(again->front().blob, kept->front().blob);
  EXPECT_EQ(again->front().size, 4);
}

// As after a crash between the two calls.
TEST_F(PartialDataTest, PartialDataOfAnUploadThatBeganAnewReplacesTheEarlierOne) {
  auto one = *Open(Of("n1"));
  Append(*Attach(one), one, "half");
  ASSERT_EQ(uploads_->KeepPartials(kRun)->size(), 1u);
  one = *Open(Of("n1"));
  ASSERT_EQ(one.offset, 0);
  Append(*Attach(one), one, "almost all");
  const auto kept = uploads_->KeepPartials(kRun);
  ASSERT_TRUE(kept.ok() && kept->size() == 1u) << kept.status();
  EXPECT_EQ(kept->front().size, 10);
  EXPECT_EQ(ReadAll(**state_.blobs().Open(kept->front().blob, 0)), "almost all");
}

// A run with half an upload of "n1", whose bytes are on a simulated disk.
class PartialDataDiskTest : public PartialDataTest {
 protected:
  void SetUp() override {
    blobs_ = store_.get();
    PartialDataTest::SetUp();
    const auto one = *Open(Of("n1"));
    Append(*Attach(one), one, "half");
    Begin();
  }
  void TearDown() override { uploads_.reset(); }

  // Calls KeepPartials while the disk refuses to open files.
  auto KeepWithoutTheDisk() {
    simulated_.FailAt(SimulatedDisk::Call::kOpen, 1, EIO);
    return uploads_->KeepPartials(kRun);
  }

  SimulatedDisk simulated_;
  std::unique_ptr<BlobStore> store_ = *OpenFilesBlobStore({.root = "/blobs"}, simulated_);
};

TEST_F(PartialDataDiskTest, PartialDataIsKeptAfterATransientIoError) {
  simulated_.FailAt(SimulatedDisk::Call::kSyncFolder, 1, EIO);
  EXPECT_EQ(ReasonOf(uploads_->KeepPartials(kRun).status()), "SYNC_FAILED");
  EXPECT_EQ(ReasonOf(KeepWithoutTheDisk().status()), "IO_ERROR");
  const auto kept = uploads_->KeepPartials(kRun);
  ASSERT_TRUE(kept.ok() && kept->size() == 1u) << kept.status();
  EXPECT_EQ(ReadAll(**blobs_->Open(kept->front().blob, 0)), "half");
}

TEST_F(PartialDataDiskTest, PartialDataIsGivenUpAndRemovedAfterALastingIoError) {
  for (int i = 0; i < 11; ++i) EXPECT_FALSE(KeepWithoutTheDisk().ok());
  const auto kept = KeepWithoutTheDisk();
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE(kept->empty());
  EXPECT_TRUE(blobs_->ListStaged()->empty());
}

}  // namespace
}  // namespace muster
