#include "services/relay/spool/spool_storage.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "gtest/gtest.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/simulated_disk.h"
#include "services/common/blob/blob_test_util.h"
#include "services/common/errors/relay.h"
#include "services/common/errors/store.h"
#include "services/common/store/sqlite/fault_vfs.h"

namespace muster {
namespace {

class SpoolStorageTest : public ::testing::Test {
 protected:
  SpoolStorageTest() {
    if (mkdtemp(folder_.data()) == nullptr) std::abort();
    auto storage = SpoolStorage::Open(folder_ + "/spool", {}, disk_);
    if (!storage.ok()) std::abort();
    storage_ = *std::move(storage);
  }
  ~SpoolStorageTest() override {
    storage_.reset();
    RemoveTree(PosixFileOps(), folder_).IgnoreError();
  }

  // Stores a complete result.
  SpoolEntry Store(const std::string& id, const std::string& body) {
    SpoolEntry entry;
    entry.id = id;
    entry.description.mutable_key()->set_run("0123456789abcdef");
    entry.size = static_cast<int64_t>(body.size());
    header_.mutable_spooled()->set_size(entry.size);
    header_.set_crc32c(Crc32c(body));
    const bool is_small = body.size() <= kSmallSize;
    EXPECT_TRUE(storage_->table().AddUpload(id, header_).ok());
    EXPECT_TRUE(storage_->table().Complete(id, header_, is_small ? body : "").ok());
    if (is_small) return entry;
    auto staged = storage_->blobs().Stage(id, entry.size);
    EXPECT_TRUE((*staged)->Append(body, Crc32c(body)).ok());
    EXPECT_TRUE((*staged)->Publish(entry.blob()).ok());
    return entry;
  }

  size_t Rows() { return storage_->table().Load()->rows.size(); }
  size_t Blobs() { return storage_->blobs().ListPublished()->size(); }

  static constexpr size_t kSmallSize = 64 * 1024;

  sqlite::FaultVfs vfs_;
  std::string folder_ = ::testing::TempDir() + "/storage_XXXXXX";
  SimulatedDisk disk_;
  std::unique_ptr<SpoolStorage> storage_;
  v1::SubmitResultRequest header_;  // of the last Store
  const std::string small_ = Pattern(1000);
  const std::string large_ = Pattern(200'000);
};

TEST_F(SpoolStorageTest, ResultIsReadFromAnOffset) {
  const SpoolEntry small = Store("a1", small_);
  EXPECT_EQ(ReadAll(**storage_->Read(small, header_, 990)), small_.substr(990));
  EXPECT_EQ(storage_->Read(small, header_, 1001).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(storage_->CheckContent(small, header_).ok());
  const SpoolEntry large = Store("a2", large_);
  EXPECT_TRUE(ReadAll(**storage_->Read(large, header_, 150'000)) == large_.substr(150'000));
  EXPECT_TRUE(storage_->CheckSize(large, header_).ok());
  EXPECT_TRUE(storage_->CheckContent(large, header_).ok());
}

TEST_F(SpoolStorageTest, OtherContentIsAProvenLoss) {
  const SpoolEntry large = Store("a1", large_);
  header_.set_crc32c(header_.crc32c() + 1);
  EXPECT_TRUE(storage_->CheckSize(large, header_).ok());
  EXPECT_TRUE(IsProvenLoss(storage_->CheckContent(large, header_)));
  ASSERT_TRUE(storage_->blobs().Remove(large.blob()).ok());
  EXPECT_TRUE(IsProvenLoss(storage_->CheckSize(large, header_)));
}

TEST(IsProvenLossTest, OnlyAbsentOrDamagedBytesAreLost) {
  EXPECT_TRUE(IsProvenLoss(absl::NotFoundError("no blob")));
  EXPECT_TRUE(IsProvenLoss(errors::SpoolDamaged("spool.db", "entry a1")));
  EXPECT_FALSE(IsProvenLoss(errors::StoreCorrupt("spool.db: malformed")));
  EXPECT_FALSE(IsProvenLoss(absl::UnavailableError("no file descriptor")));
  EXPECT_FALSE(IsProvenLoss(absl::OkStatus()));
}

TEST_F(SpoolStorageTest, RemovedEntryLeavesNothing) {
  const SpoolEntry small = Store("a1", small_);
  const SpoolEntry large = Store("a2", large_);
  EXPECT_TRUE(storage_->Remove(small));
  EXPECT_TRUE(storage_->Remove(large));
  EXPECT_EQ(Rows(), 0u);
  EXPECT_EQ(Blobs(), 0u);
  EXPECT_TRUE(storage_->RetryRemovals().empty());
}

TEST_F(SpoolStorageTest, RemovalOnAFullDiskIsRepeated) {
  const SpoolEntry small = Store("a1", small_);
  const SpoolEntry large = Store("a2", large_);
  vfs_.FailAt(sqlite::Fault::kFullDisk, 1, /*for_good=*/true);
  EXPECT_FALSE(storage_->Remove(small));
  EXPECT_FALSE(storage_->Remove(large));
  EXPECT_TRUE(storage_->RetryRemovals().empty());
  EXPECT_EQ(Rows(), 2u);
  EXPECT_EQ(Blobs(), 1u);
  vfs_.Clear();
  EXPECT_EQ(storage_->RetryRemovals(), (std::vector<std::string>{"a1", "a2"}));
  EXPECT_EQ(Rows(), 0u);
  EXPECT_EQ(Blobs(), 0u);
  EXPECT_TRUE(storage_->RetryRemovals().empty());
}

TEST_F(SpoolStorageTest, BytesWithoutARowAreRemoved) {
  Store("a1", large_);
  Store("a2", large_);
  ASSERT_TRUE(storage_->blobs().Stage("a3", 10).ok());
  ASSERT_TRUE(storage_->blobs().Stage("a4", 10).ok());
  ASSERT_TRUE(storage_
                  ->RemoveUnknownBytes([](const std::string& id) { return id == "a3"; },
                                       [](const std::string& id) { return id == "a1"; })
                  .ok());
  EXPECT_EQ(Blobs(), 1u);
  EXPECT_EQ(*storage_->blobs().ListStaged(), std::vector<std::string>{"a3"});
}

}  // namespace
}  // namespace muster
