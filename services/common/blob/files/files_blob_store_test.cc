#include "services/common/blob/files/files_blob_store.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>

#include "services/common/base/error.h"
#include "services/common/base/simulated_disk.h"
#include "services/common/blob/blob_store_contract.h"

namespace muster {
namespace {

class RealDisk final : public BlobStoreHarness {
 public:
  RealDisk() : folder_(::testing::TempDir() + "blobs_XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  ~RealDisk() override { EXPECT_TRUE(RemoveTree(PosixFileOps(), folder_).ok()); }
  absl::StatusOr<std::unique_ptr<BlobStore>> Open() override {
    return OpenFilesBlobStore({.root = folder_ + "/deep/root", .sync_every = 100'000});
  }

 private:
  std::string folder_;
};

class Simulated final : public BlobStoreHarness {
 public:
  absl::StatusOr<std::unique_ptr<BlobStore>> Open() override {
    return OpenFilesBlobStore({.root = "/blobs"}, disk_);
  }

 private:
  SimulatedDisk disk_;
};

INSTANTIATE_TEST_SUITE_P(Files, BlobStoreContract,
                         ::testing::Values([] { return std::make_unique<RealDisk>(); },
                                           [] { return std::make_unique<Simulated>(); }),
                         [](const auto& info) { return info.index == 0 ? "Real" : "Simulated"; });

TEST(FilesBlobStoreTest, SecondProcessIsRefused) {
  SimulatedDisk disk;
  auto first = OpenFilesBlobStore({.root = "/blobs"}, disk);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenFilesBlobStore({.root = "/blobs"}, disk).status()));
  first->reset();
  EXPECT_TRUE(OpenFilesBlobStore({.root = "/blobs"}, disk).ok());
}

// MakeFolders permits existing folders that cannot be synced.
TEST(FilesBlobStoreTest, StartFailsIfItsFolderCannotBeSynced) {
  SimulatedDisk disk;
  ASSERT_TRUE(OpenFilesBlobStore({.root = "/blobs"}, disk).ok());
  constexpr int kSyncsOfMakeFolders = 5;
  disk.FailAt(SimulatedDisk::Call::kSyncFolder, kSyncsOfMakeFolders + 1, EROFS);
  EXPECT_EQ(ReasonOf(OpenFilesBlobStore({.root = "/blobs"}, disk).status()),
            "FILE_SYSTEM_NOT_WRITABLE");
  EXPECT_TRUE(OpenFilesBlobStore({.root = "/blobs"}, disk).ok());
}

// A start reads the size of each blob that a record names.
TEST(FilesBlobStoreTest, SizeDoesNotSync) {
  SimulatedDisk disk;
  auto store = *OpenFilesBlobStore({.root = "/blobs"}, disk);
  ASSERT_TRUE((*store->Stage("a", 0))->Publish("runs/a").ok());
  disk.FailAt(SimulatedDisk::Call::kSyncFolder, 1, EIO);
  EXPECT_EQ(*store->Size("runs/a"), 0);
  EXPECT_FALSE(store->SyncName("runs/a").ok());
  EXPECT_TRUE(store->SyncName("runs/a").ok());
}

// A damaged file system becomes read-only before the rename is durable.
TEST(FilesBlobStoreTest, PublishFailsIfItsFolderCannotBeSynced) {
  SimulatedDisk disk;
  auto store = *OpenFilesBlobStore({.root = "/blobs"}, disk);
  ASSERT_TRUE((*store->Stage("a", 0))->Publish("runs/a").ok());
  ASSERT_TRUE(store->Remove("runs/a").ok());  // its folder remains: only the rename is synced
  disk.FailAt(SimulatedDisk::Call::kSyncFolder, 1, EROFS);
  EXPECT_EQ(ReasonOf((*store->Stage("b", 0))->Publish("runs/a")), "SYNC_FAILED");
  EXPECT_TRUE(store->ListPublished()->empty());
}

// As when a run is deleted while its blobs are listed.
TEST(FilesBlobStoreTest, FolderThatIsRemovedMeanwhileIsListedAsEmpty) {
  SimulatedDisk disk;
  auto store = *OpenFilesBlobStore({.root = "/blobs"}, disk);
  ASSERT_TRUE((*store->Stage("a", 0))->Publish("runs/a/x").ok());
  ASSERT_TRUE((*store->Stage("b", 0))->Publish("runs/b/x").ok());
  disk.FailAt(SimulatedDisk::Call::kList, 3, ENOENT);  // that of a run
  EXPECT_EQ(store->ListPublished()->size(), 1U);
  EXPECT_EQ(store->ListPublished()->size(), 2U);
  disk.FailAt(SimulatedDisk::Call::kList, 1, EIO);
  EXPECT_FALSE(store->ListPublished().ok());
}

TEST(FilesBlobStoreTest, ReserveIsNotUsed) {
  SimulatedDisk disk(1'000'000);
  auto store = *OpenFilesBlobStore({.root = "/blobs", .reserve_bytes = 1 << 30}, disk);
  EXPECT_EQ(*store->Available(), 950'000);  // at most 5 %
  auto blob = *store->Stage("a", -1);
  const std::string chunk = Pattern(100'000);
  absl::Status last;
  for (int i = 0; i < 10 && last.ok(); ++i) last = blob->Append(chunk, ExtendCrc32c(0, chunk));
  EXPECT_TRUE(absl::IsResourceExhausted(last)) << last;
  const int64_t kept = blob->written();
  EXPECT_GE(kept, 800'000);
  blob.reset();
  EXPECT_EQ((*store->Resume("a"))->written(), kept);
}

TEST(FilesBlobStoreTest, SpaceIsReservedInStepsAndGivenBackWithoutAnOwner) {
  constexpr int64_t kCapacity = int64_t{100} << 20;
  SimulatedDisk disk(kCapacity);
  const auto used = [&] { return kCapacity - disk.Space("/")->available; };
  auto store = *OpenFilesBlobStore({.root = "/blobs"}, disk);
  EXPECT_TRUE(absl::IsResourceExhausted(store->Stage("a", kCapacity).status()));
  auto blob = *store->Stage("b", int64_t{60} << 20);
  EXPECT_LT(used(), 1 << 20) << "an announced size takes no space";
  const std::string chunk = Pattern(100'000);
  ASSERT_TRUE(blob->Append(chunk, ExtendCrc32c(0, chunk)).ok());
  EXPECT_GE(used(), 16 << 20);
  EXPECT_LT(used(), 17 << 20);
  blob.reset();
  EXPECT_LT(used(), 1 << 20);
  blob = *store->Resume("b");
  ASSERT_TRUE(blob->Append(chunk, ExtendCrc32c(0, chunk)).ok());
  EXPECT_GE(used(), 16 << 20);
  ASSERT_TRUE(blob->Publish("c").ok());
  EXPECT_LT(used(), 1 << 20);
}

TEST(FilesBlobStoreTest, LogStaysSmall) {
  SimulatedDisk disk;
  auto store = *OpenFilesBlobStore({.root = "/blobs", .sync_every = 1000}, disk);
  auto blob = *store->Stage("a", -1);
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(blob->Append("x", ExtendCrc32c(0, "x")).ok());
  EXPECT_LE(disk.Stat("/blobs/staged/a.log")->size, 1024 + 1000 * 32);
  blob.reset();
  EXPECT_EQ((*store->Resume("a"))->written(), 5000);
}

}  // namespace
}  // namespace muster
