// The contract of every BlobStore driver. A driver's test includes this file and instantiates
// BlobStoreContract with a function that creates its BlobStoreHarness.
#ifndef MUSTER_SERVICES_COMMON_BLOB_BLOB_STORE_CONTRACT_H_
#define MUSTER_SERVICES_COMMON_BLOB_BLOB_STORE_CONTRACT_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/blob/blob_store.h"
#include "services/common/blob/blob_test_util.h"

namespace muster {

// An empty place for blobs, which outlives the stores that open it.
class BlobStoreHarness {
 public:
  virtual ~BlobStoreHarness() = default;
  // Opens a store; the previous one must be destroyed.
  virtual absl::StatusOr<std::unique_ptr<BlobStore>> Open() = 0;
};

class BlobStoreContract
    : public ::testing::TestWithParam<std::function<std::unique_ptr<BlobStoreHarness>()>> {
 protected:
  void SetUp() override { Reopen(); }

  void Reopen() {
    store_.reset();
    auto opened = harness_->Open();
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }

  static absl::Status Append(StagedBlob& blob, std::string_view data) {
    return blob.Append(data, ExtendCrc32c(0, data));
  }

  void Put(std::string_view id, std::string_view name, std::string_view data) {
    auto blob = store_->Stage(id, static_cast<int64_t>(data.size()));
    ASSERT_TRUE(blob.ok()) << blob.status();
    ASSERT_TRUE(Append(**blob, data).ok());
    const absl::Status published = (*blob)->Publish(name);
    ASSERT_TRUE(published.ok()) << published;
  }

  std::string Get(std::string_view name, int64_t offset = 0) {
    auto source = store_->Open(name, offset);
    return source.ok() ? ReadAll(**source) : std::string(source.status().message());
  }

  std::unique_ptr<BlobStoreHarness> harness_ = GetParam()();
  std::unique_ptr<BlobStore> store_;
};

TEST_P(BlobStoreContract, PublishedBlobHasTheAppendedBytes) {
  const std::string data = Pattern(300'000);
  auto blob = store_->Stage("up1", -1);
  ASSERT_TRUE(blob.ok()) << blob.status();
  EXPECT_EQ((*blob)->written(), 0);
  for (size_t at = 0; at < data.size(); at += 70'000) {
    ASSERT_TRUE(Append(**blob, std::string_view(data).substr(at, 70'000)).ok());
  }
  EXPECT_EQ((*blob)->written(), 300'000);
  EXPECT_LE((*blob)->durable(), 300'000);
  EXPECT_EQ((*blob)->crc32c(), ExtendCrc32c(0, data));
  EXPECT_EQ(ReadAll(**(*blob)->Read(0)), data);
  EXPECT_EQ(ReadAll(**(*blob)->Read(7)), data.substr(7));
  EXPECT_EQ((*blob)->Read(static_cast<int64_t>(data.size()) + 1).status().code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(absl::IsNotFound(store_->Size("runs/a/x").status()));
  ASSERT_TRUE((*blob)->Publish("runs/a/x").ok());
  EXPECT_EQ(*store_->Size("runs/a/x"), 300'000);
  EXPECT_EQ(Get("runs/a/x"), data);
  EXPECT_EQ(Get("runs/a/x", 299'990), data.substr(299'990));
  EXPECT_EQ(Get("runs/a/x", 300'000), "");
  EXPECT_TRUE(absl::IsOutOfRange(store_->Open("runs/a/x", 300'001).status()));
  EXPECT_TRUE(absl::IsOutOfRange(store_->Open("runs/a/x", -1).status()));
  EXPECT_TRUE(store_->ListStaged()->empty());
  EXPECT_FALSE(Append(**blob, "more").ok());
  Reopen();
  EXPECT_EQ(Get("runs/a/x"), data);
}

TEST_P(BlobStoreContract, TruncatedBlobContinuesAfterItsRemainingBytes) {
  const std::string data = Pattern(100'000);
  for (const size_t size : {size_t{0}, size_t{60'000}}) {
    const std::string id = absl::StrCat("up", size);
    const std::string kept = data.substr(0, size);
    auto blob = store_->Stage(id, -1);
    ASSERT_TRUE(Append(**blob, kept).ok());
    const uint32_t crc = (*blob)->crc32c();
    ASSERT_TRUE(Append(**blob, std::string(10'000, 'x')).ok());
    EXPECT_TRUE(absl::IsOutOfRange((*blob)->Truncate(80'000, crc)));
    ASSERT_TRUE((*blob)->Truncate(static_cast<int64_t>(size), crc).ok());
    EXPECT_EQ((*blob)->written(), static_cast<int64_t>(size));
    EXPECT_EQ((*blob)->durable(), static_cast<int64_t>(size));
    ASSERT_TRUE(Append(**blob, data.substr(size, 20'000)).ok());
    blob->reset();
    Reopen();
    blob = store_->Resume(id);
    ASSERT_TRUE(blob.ok()) << blob.status();
    EXPECT_EQ((*blob)->written(), static_cast<int64_t>(size) + 20'000);
    ASSERT_TRUE(Append(**blob, data.substr(size + 20'000)).ok());
    EXPECT_EQ((*blob)->crc32c(), ExtendCrc32c(0, data));
    const std::string name = absl::StrCat("runs/a/", size);
    ASSERT_TRUE((*blob)->Publish(name).ok());
    EXPECT_EQ(Get(name), data);
  }
}

TEST_P(BlobStoreContract, EmptyBlobIsPublished) {
  auto blob = store_->Stage("up1", 0);
  ASSERT_TRUE((*blob)->Publish("e").ok());
  EXPECT_EQ(*store_->Size("e"), 0);
  EXPECT_EQ(Get("e"), "");
}

TEST_P(BlobStoreContract, StagedBytesSurviveTheirOwner) {
  const std::string data = Pattern(100'000);
  auto blob = store_->Stage("up1", 200'000);
  ASSERT_TRUE(Append(**blob, data.substr(0, 60'000)).ok());
  ASSERT_TRUE((*blob)->Sync().ok());
  EXPECT_EQ((*blob)->durable(), 60'000);
  ASSERT_TRUE(Append(**blob, data.substr(60'000, 20'000)).ok());
  blob->reset();
  EXPECT_EQ(*store_->ListStaged(), std::vector<std::string>{"up1"});
  Reopen();
  EXPECT_EQ(*store_->ListStaged(), std::vector<std::string>{"up1"});
  EXPECT_TRUE(absl::IsAlreadyExists(store_->Stage("up1", -1).status()));

  blob = store_->Resume("up1");
  ASSERT_TRUE(blob.ok()) << blob.status();
  EXPECT_EQ((*blob)->written(), 80'000);
  EXPECT_EQ((*blob)->crc32c(), ExtendCrc32c(0, data.substr(0, 80'000)));
  EXPECT_EQ(ReadAll(**(*blob)->Read(0)), data.substr(0, 80'000));
  ASSERT_TRUE(Append(**blob, data.substr(80'000)).ok());
  EXPECT_EQ((*blob)->crc32c(), ExtendCrc32c(0, data));
  ASSERT_TRUE((*blob)->Publish("x").ok());
  EXPECT_EQ(Get("x"), data);
  EXPECT_TRUE(absl::IsNotFound(store_->Resume("up1").status()));
}

TEST_P(BlobStoreContract, BytesWithWrongChecksumAreDiscarded) {
  auto blob = store_->Stage("up1", -1);
  ASSERT_TRUE(Append(**blob, "good").ok());
  ASSERT_TRUE((*blob)->Append("bad", 12345).ok());  // as if the disk had changed the bytes
  ASSERT_TRUE(Append(**blob, "after").ok());
  blob->reset();
  blob = store_->Resume("up1");
  ASSERT_TRUE(blob.ok()) << blob.status();
  EXPECT_EQ((*blob)->written(), 4);
  EXPECT_EQ((*blob)->durable(), 4);
  EXPECT_EQ(ReadAll(**(*blob)->Read(0)), "good");
}

TEST_P(BlobStoreContract, DiscardRemovesTheStagedBlob) {
  auto first = store_->Stage("up1", 10);
  auto second = store_->Stage("up2", 10);
  ASSERT_TRUE(Append(**first, "x").ok());
  ASSERT_TRUE((*first)->Discard().ok());
  second->reset();
  EXPECT_TRUE(store_->DiscardStaged("up2").ok());
  EXPECT_TRUE(store_->DiscardStaged("up2").ok());
  EXPECT_TRUE(store_->ListStaged()->empty());
  EXPECT_TRUE(absl::IsNotFound(store_->Resume("up1").status()));
  EXPECT_TRUE(absl::IsNotFound(store_->Resume("up2").status()));
}

TEST_P(BlobStoreContract, RepeatedPublishSucceedsAndNeverReplaces) {
  Put("up1", "x", "content");
  Put("up2", "x", "content");  // the same size: considered a repetition
  auto other = store_->Stage("up3", -1);
  ASSERT_TRUE(Append(**other, "another content").ok());
  EXPECT_TRUE(absl::IsAlreadyExists((*other)->Publish("x")));
  EXPECT_EQ(Get("x"), "content");
  ASSERT_TRUE((*other)->Discard().ok());
}

TEST_P(BlobStoreContract, RemoveAllRemovesOnlyThePrefix) {
  for (int i = 0; i < 20; ++i) {
    Put(absl::StrCat("a", i), absl::StrCat("runs/a/results/", i), "a");
    Put(absl::StrCat("b", i), absl::StrCat("runs/ab/results/", i), "b");
  }
  ASSERT_TRUE(store_->Remove("runs/ab/results/3").ok());
  ASSERT_TRUE(store_->Remove("runs/ab/results/3").ok());
  EXPECT_TRUE(absl::IsNotFound(store_->Open("runs/ab/results/3", 0).status()));
  ASSERT_TRUE(store_->RemoveAll("runs/a/").ok());
  ASSERT_TRUE(store_->RemoveAll("runs/a/").ok());
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(store_->Size(absl::StrCat("runs/a/results/", i)).ok());
    EXPECT_EQ(store_->Size(absl::StrCat("runs/ab/results/", i)).ok(), i != 3);
  }
  Put("again", "runs/a/results/1", "new");
  EXPECT_EQ(Get("runs/a/results/1"), "new");
}

TEST_P(BlobStoreContract, SizeOfAStagedBlobIsKnownWithoutItsOwner) {
  EXPECT_TRUE(absl::IsNotFound(store_->StagedSize("up1").status()));
  auto staged = *store_->Stage("up1", -1);
  ASSERT_TRUE(staged->Append("hello", ExtendCrc32c(0, "hello")).ok());
  staged.reset();
  EXPECT_EQ(*store_->StagedSize("up1"), 5);
  ASSERT_TRUE((*store_->Resume("up1"))->Publish("a").ok());
  EXPECT_TRUE(absl::IsNotFound(store_->StagedSize("up1").status()));
}

TEST_P(BlobStoreContract, ListsPublishedBlobsOfAllFolders) {
  EXPECT_TRUE(store_->ListPublished()->empty());
  Put("up1", "runs/a/results/1", "x");
  Put("up2", "runs/a/results/2", "x");
  Put("up3", "top", "x");
  ASSERT_TRUE(store_->Stage("up4", -1).ok());
  ASSERT_TRUE(store_->Remove("runs/a/results/2").ok());
  auto names = store_->ListPublished();
  ASSERT_TRUE(names.ok()) << names.status();
  std::sort(names->begin(), names->end());
  EXPECT_EQ(*names, (std::vector<std::string>{"runs/a/results/1", "top"}));
}

TEST_P(BlobStoreContract, ListsTheBlobsAndFoldersBelowAPrefix) {
  EXPECT_TRUE(store_->ListBelow("runs/")->empty());
  EXPECT_TRUE(store_->ListFolders("runs/")->empty());
  Put("up1", "runs/a/results/1", "x");
  Put("up2", "runs/ab/results/2", "x");
  Put("up3", "runs/top", "x");
  EXPECT_EQ(*store_->ListBelow("runs/a/"), std::vector<std::string>{"runs/a/results/1"});
  auto folders = *store_->ListFolders("runs/");
  std::sort(folders.begin(), folders.end());
  EXPECT_EQ(folders, (std::vector<std::string>{"a", "ab"}));
  EXPECT_EQ(*store_->ListFolders(""), std::vector<std::string>{"runs"});
  EXPECT_TRUE(absl::IsInvalidArgument(store_->ListBelow("runs").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->ListFolders("../").status()));
}

TEST_P(BlobStoreContract, OddNamesAreRefused) {
  for (const std::string name :
       {"", "/a", "a/", "..", "a/../b", ".a", "a/.b", "a//b", "A", "a b", "a=b"}) {
    auto blob = store_->Stage("up1", -1);
    ASSERT_TRUE(blob.ok()) << blob.status();
    EXPECT_TRUE(absl::IsInvalidArgument((*blob)->Publish(name))) << name;
    EXPECT_TRUE(absl::IsInvalidArgument(store_->Open(name, 0).status())) << name;
    ASSERT_TRUE((*blob)->Discard().ok());
  }
  for (const std::string id : {"", "a/b", "..", "A", "x.log"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(store_->Stage(id, -1).status())) << id;
    EXPECT_TRUE(absl::IsInvalidArgument(store_->Resume(id).status())) << id;
  }
}

TEST_P(BlobStoreContract, TooLargeReservationIsRefused) {
  auto available = store_->Available();
  ASSERT_TRUE(available.ok());
  const absl::Status refused = store_->Stage("up1", *available + 1).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(ReasonOf(refused), "DISK_FULL");
  EXPECT_TRUE(RetryAfterOf(refused).has_value());
  EXPECT_TRUE(store_->ListStaged()->empty());
}

TEST_P(BlobStoreContract, ConcurrentUploadsArePublished) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 10; ++i) {
        const std::string id = absl::StrCat("t", t, "i", i);
        auto blob = store_->Stage(id, -1);
        ASSERT_TRUE(blob.ok()) << blob.status();
        ASSERT_TRUE(Append(**blob, Pattern(5000, t * 100 + i)).ok());
        ASSERT_TRUE((*blob)->Publish("runs/r/" + id).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < 8; ++t) {
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(Get(absl::StrCat("runs/r/t", t, "i", i)), Pattern(5000, t * 100 + i));
    }
  }
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BLOB_BLOB_STORE_CONTRACT_H_
