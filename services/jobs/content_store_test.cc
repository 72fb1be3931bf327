#include "services/jobs/content_store.h"

#include <atomic>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/deployments.pb.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/sha256.h"
#include "services/common/blob/blob_test_util.h"
#include "services/common/store/sqlite/query_plan.h"
#include "services/jobs/deployment_store.h"
#include "services/jobs/jobs_schema.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using sqlite::Connection;

std::string DigestOf(const std::string& bytes) { return DigestBytes(Sha256::Of(bytes)); }

class ContentStoreTest : public ::testing::Test {
 protected:
  ContentStoreTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    limits_.quota = int64_t{8} << 20;
    Open();
  }
  ~ContentStoreTest() override {
    store_.reset();
    fs::remove_all(folder_);
  }

  // Opens the store as a new process does.
  void Open() {
    store_.reset();
    database_.reset();
    database_ = sqlite::LocalDatabase::Open(folder_ + "/jobs.db", kJobsSchema).value();
    auto store = ContentStore::Open(*database_, folder_ + "/contents", limits_, clock_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  static ContentPart PartOf(const std::string& bytes, size_t offset, size_t size,
                            const std::string& creator = "ann") {
    ContentPart part;
    part.content = {DigestOf(bytes), static_cast<int64_t>(bytes.size()), creator};
    part.offset = static_cast<int64_t>(offset);
    part.data = bytes.substr(offset, size);
    part.crc32c = Crc32c(part.data);
    return part;
  }
  // Uploads all parts that are missing.
  absl::Status Put(const std::string& bytes, const std::string& creator = "ann") {
    auto progress = store_->Upload(PartOf(bytes, 0, 0, creator));
    while (progress.ok() && !progress->stored) {
      progress = store_->Upload(
          PartOf(bytes, static_cast<size_t>(progress->offset), kMaxContentPart, creator));
    }
    return progress.status();
  }
  bool IsStored(const std::string& bytes) {
    return store_->FindMissing({DigestOf(bytes)}).value().empty();
  }
  // Stores a deployment for n1 that names the content. Returns the error.
  absl::Status Deploy(const std::string& id, const std::string& bytes,
                      DeploymentStore* deployments = nullptr) {
    v1::Command command;
    v1::Command::File& file = *command.mutable_container()->mutable_deployment()->add_files();
    file.set_path("data");
    file.set_sha256(DigestOf(bytes));
    file.set_size(static_cast<int64_t>(bytes.size()));
    v1::CreateDeploymentRequest request;
    request.mutable_command()->set_command(command.SerializeAsString());
    request.add_nodes("n1");
    v1::Deployment message;
    message.set_deployment(id);
    message.set_job("job-" + id);
    message.set_created_by("ann");
    DeploymentStore own(*database_);
    return (deployments == nullptr ? own : *deployments).Create(message, request).status();
  }
  std::string ReadBytes(const std::string& deployment, const std::string& node,
                        const std::string& bytes) {
    std::string all;
    for (;;) {
      const auto part = store_->Read(deployment, node, DigestOf(bytes),
                                     static_cast<int64_t>(all.size()), kMaxContentPart);
      if (!part.ok()) return ReasonOf(part.status());
      EXPECT_EQ(part->size, static_cast<int64_t>(bytes.size()));
      if (part->data.empty()) return all;
      all += part->data;
    }
  }
  size_t Files() const {
    size_t files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ + "/contents")) {
      if (entry.is_regular_file() && entry.path().filename() != "lock") ++files;
    }
    return files;
  }
  void Change(absl::FunctionRef<void(Connection&)> change) {
    ASSERT_TRUE(database_
                    ->Write([&](Connection& db) {
                      change(db);
                      return absl::OkStatus();
                    })
                    .ok());
  }

  const std::string folder_ = ::testing::TempDir() + "/content-store";
  FakeClock clock_{absl::FromUnixSeconds(1'900'000'000)};
  ContentLimits limits_;
  std::unique_ptr<sqlite::LocalDatabase> database_;
  std::unique_ptr<ContentStore> store_;
};

TEST_F(ContentStoreTest, ContentIsStoredInPartsAndReadByItsNodesOnly) {
  const std::string bytes = Pattern(1'500'000);
  EXPECT_EQ(ReasonOf(Deploy("d1", bytes)), "CONTENT_MISSING");
  ASSERT_TRUE(Put(bytes).ok());
  EXPECT_TRUE(IsStored(bytes));
  ASSERT_TRUE(Deploy("d1", bytes).ok());
  EXPECT_EQ(ReadBytes("d1", "n1", bytes), bytes);
  EXPECT_EQ(ReadBytes("d1", "n2", bytes), "CONTENT_NOT_FOUND");
  EXPECT_EQ(ReadBytes("d2", "n1", bytes), "CONTENT_NOT_FOUND");
  const std::string other = Pattern(10, 2);
  ASSERT_TRUE(Put(other).ok());
  EXPECT_EQ(ReadBytes("d1", "n1", other), "CONTENT_NOT_FOUND");
  EXPECT_EQ(ReasonOf(store_->Read("d1", "n1", DigestOf(bytes), 1'500'001, 1).status()),
            "OFFSET_TOO_HIGH");
}

// The request may be much larger than a part.
TEST_F(ContentStoreTest, RequestIsReadForTheFirstPartAlone) {
  const std::string bytes = Pattern(1'000);
  ASSERT_TRUE(Put(bytes).ok());
  ASSERT_TRUE(Deploy("d1", bytes).ok());
  const auto read = [&](const std::string& node) {
    return ReasonOf(store_->Read("d1", node, DigestOf(bytes), 0, 100).status());
  };
  EXPECT_EQ(read("n1"), "");
  Change([](Connection& db) { db.Run("UPDATE deployments SET request = ''"); });
  EXPECT_EQ(read("n1"), "");
  EXPECT_EQ(read("n2"), "CONTENT_NOT_FOUND");
  Change([](Connection& db) { db.Run("DELETE FROM deployments"); });
  EXPECT_EQ(read("n1"), "CONTENT_NOT_FOUND");
}

TEST_F(ContentStoreTest, UploadIsResumedAfterARestartAndIgnoresOtherParts) {
  const std::string bytes = Pattern(1'000'000);
  EXPECT_EQ(store_->Upload(PartOf(bytes, 0, 300'000))->offset, 300'000);
  Open();
  EXPECT_EQ(store_->Upload(PartOf(bytes, 0, 0))->offset, 300'000);
  EXPECT_EQ(store_->Upload(PartOf(bytes, 0, 400'000))->offset, 300'000);
  EXPECT_EQ(store_->Upload(PartOf(bytes, 500'000, 500'000))->offset, 300'000);
  // The upload of another operator has no bytes.
  EXPECT_EQ(store_->Upload(PartOf(bytes, 0, 0, "bob"))->offset, 0);
  ASSERT_TRUE(Put(bytes).ok());
  EXPECT_TRUE(store_->Upload(PartOf(bytes, 0, 0, "bob"))->stored);
  ASSERT_TRUE(Deploy("d1", bytes).ok());
  EXPECT_EQ(ReadBytes("d1", "n1", bytes), bytes);
}

TEST_F(ContentStoreTest, BytesOfAnotherDigestAreRefusedAndRemoved) {
  ContentPart part = PartOf("right", 0, 5);
  part.data = "wrong";
  EXPECT_EQ(ReasonOf(store_->Upload(part).status()), "CRC_MISMATCH");
  part.crc32c = Crc32c(part.data);
  EXPECT_EQ(ReasonOf(store_->Upload(part).status()), "DIGEST_MISMATCH");
  EXPECT_FALSE(IsStored("right"));
  EXPECT_EQ(Files(), 0u);
  EXPECT_TRUE(Put("right").ok());
}

TEST_F(ContentStoreTest, InvalidPartsAreRefused) {
  const std::string bytes = Pattern(100);
  ContentPart part = PartOf(bytes, 50, 50);
  part.offset = 51;
  EXPECT_EQ(ReasonOf(store_->Upload(part).status()), "INVALID_CONTENT");
  part.offset = 0;
  part.content.size = int64_t{1} << 20;
  part.data = Pattern(kMaxContentPart + 1);
  part.crc32c = Crc32c(part.data);
  EXPECT_EQ(ReasonOf(store_->Upload(part).status()), "INVALID_CONTENT");
  part = PartOf(bytes, 0, 0);
  part.offset = -1;
  EXPECT_EQ(ReasonOf(store_->Upload(part).status()), "INVALID_CONTENT");
  part = PartOf(bytes, 0, 0);
  part.content.size = 0;
  EXPECT_EQ(ReasonOf(store_->Upload(part).status()), "INVALID_CONTENT");
  part.content.size = kMaxContentSize + 1;
  EXPECT_EQ(ReasonOf(store_->Upload(part).status()), "INVALID_CONTENT");
  ASSERT_TRUE(Put(bytes).ok());
  part.content.size = 99;
  EXPECT_EQ(ReasonOf(store_->Upload(part).status()), "INVALID_CONTENT");
}

TEST_F(ContentStoreTest, QuotaHoldsForOneOperatorAndInAll) {
  const auto begin = [this](unsigned seed, size_t size, const std::string& creator) {
    return ReasonOf(store_->Upload(PartOf(Pattern(size, seed), 0, 0, creator)).status());
  };
  EXPECT_EQ(begin(1, size_t{3} << 20, "ann"), "");
  EXPECT_EQ(begin(2, size_t{2} << 20, "ann"), "CONTENT_QUOTA");
  EXPECT_EQ(begin(3, size_t{4} << 20, "bob"), "");
  EXPECT_EQ(begin(4, size_t{2} << 20, "eve"), "CONTENT_QUOTA");
  limits_.max_contents = 2;
  Open();
  EXPECT_EQ(begin(5, 10, "eve"), "CONTENT_QUOTA");
  EXPECT_EQ(begin(1, size_t{3} << 20, "ann"), "");  // it is counted already
}

TEST_F(ContentStoreTest, OpenUploadsAreBoundedUntilTheyAreIdle) {
  limits_.max_open = 2;
  Open();
  const auto begin = [this](unsigned seed, const std::string& creator) {
    return ReasonOf(store_->Upload(PartOf(Pattern(10, seed), 0, 5, creator)).status());
  };
  EXPECT_EQ(begin(1, "ann"), "");
  EXPECT_EQ(begin(2, "ann"), "TOO_MANY_UPLOADS");  // one operator has half
  EXPECT_EQ(begin(2, "bob"), "");
  EXPECT_EQ(begin(3, "eve"), "TOO_MANY_UPLOADS");
  clock_.Advance(absl::Minutes(1));
  store_->Sweep();
  EXPECT_EQ(begin(2, "ann"), "");
  EXPECT_EQ(store_->Upload(PartOf(Pattern(10, 2), 5, 5))->offset, 10);
  EXPECT_EQ(begin(3, "eve"), "");
}

TEST_F(ContentStoreTest, UnusedContentsAndUploadsExpireAfterADay) {
  ASSERT_TRUE(Put("used").ok());
  ASSERT_TRUE(Put("unused").ok());
  ASSERT_TRUE(Put("renewed").ok());
  ASSERT_TRUE(Deploy("d1", "used").ok());
  EXPECT_TRUE(store_->Upload(PartOf("not complete", 0, 3)).ok());
  clock_.Advance(absl::Hours(23));
  EXPECT_TRUE(IsStored("renewed"));
  clock_.Advance(absl::Hours(2));
  store_->Sweep();
  const std::vector<std::string> all = {DigestOf("used"), DigestOf("unused"), DigestOf("renewed")};
  EXPECT_EQ(*store_->FindMissing(all), std::vector<std::string>{DigestOf("unused")});
  EXPECT_EQ(store_->Upload(PartOf("not complete", 0, 0))->offset, 0);
  EXPECT_EQ(ReadBytes("d1", "n1", "used"), "used");
}

// An upload is complete after up to a gigabyte was hashed. Here it waits for the disk instead.
TEST_F(ContentStoreTest, SweepDoesNotWaitForAnUpload) {
  std::atomic<bool> writes = false;
  std::atomic<bool> released = false;
  std::thread writer([&] {
    Change([&](Connection&) {
      writes = true;
      EXPECT_TRUE(testing::Await([&] { return released.load(); }));
    });
  });
  EXPECT_TRUE(testing::Await([&] { return writes.load(); }));
  std::thread upload([&] { EXPECT_TRUE(store_->Upload(PartOf("bytes", 0, 5))->stored); });
  EXPECT_TRUE(testing::Await([&] { return database_->waiting() > 0; }));
  std::atomic<bool> swept = false;
  std::thread sweep([&] {
    store_->Sweep();
    swept = true;
  });
  EXPECT_TRUE(testing::Await([&] { return swept.load(); }, absl::Seconds(20)));
  released = true;
  for (std::thread* each : {&writer, &upload, &sweep}) each->join();
  EXPECT_TRUE(IsStored("bytes"));
}

// They follow from all changes of the rows.
TEST_F(ContentStoreTest, UsageIsThatOfTheContentsAndUploads) {
  ASSERT_TRUE(Put("stored").ok());
  ASSERT_TRUE(Put("stored", "bob").ok());
  EXPECT_TRUE(store_->Upload(PartOf("uploading", 0, 3)).ok());
  EXPECT_TRUE(store_->Upload(PartOf("uploading", 0, 3)).ok());
  EXPECT_TRUE(store_->Upload(PartOf("uploading", 0, 3, "bob")).ok());
  const auto usage = [&](const std::string& creator) {
    ContentUsage found;
    Change([&](Connection& db) { found = ReadContentUsage(db, creator); });
    return std::vector<int64_t>{found.count, found.bytes, found.bytes_of_creator};
  };
  EXPECT_EQ(usage("ann"), (std::vector<int64_t>{3, 24, 15}));
  EXPECT_EQ(usage("bob"), (std::vector<int64_t>{3, 24, 9}));
  ASSERT_TRUE(Put("uploading").ok());
  EXPECT_EQ(usage("ann"), (std::vector<int64_t>{3, 24, 15}));
  clock_.Advance(absl::Hours(25));
  store_->Sweep();  // closes the files of the idle upload
  store_->Sweep();
  EXPECT_EQ(usage("ann"), (std::vector<int64_t>{0, 0, 0}));
}

TEST_F(ContentStoreTest, ContentsThatAreNotKeptAreFoundByAnIndex) {
  store_->Sweep();
  std::string plan;
  ASSERT_TRUE(database_
                  ->Read([&](Connection& db) {
                    plan = sqlite::QueryPlan(db, "FROM contents c");
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_THAT(plan, ::testing::HasSubstr("INDEX contents_kept_until (kept_until<?)"));
}

TEST_F(ContentStoreTest, EarlierDatabaseHasTheUsageOfItsContents) {
  const std::string path = folder_ + "/old.db";
  {
    const auto old = sqlite::LocalDatabase::Open(path, std::span(kJobsSchema).first(9)).value();
    ASSERT_TRUE(old->Write([](Connection& db) {
                     WriteContent(db, {"1", 10, "ann"}, absl::UnixEpoch());
                     WriteContent(db, {"2", 20, "bob"}, absl::UnixEpoch());
                     WriteUpload(db, {"u", {"3", 5, "ann"}}, absl::UnixEpoch());
                     return absl::OkStatus();
                   })
                    .ok());
  }
  const auto database = sqlite::LocalDatabase::Open(path, kJobsSchema).value();
  ContentUsage usage;
  ASSERT_TRUE(database
                  ->Read([&](Connection& db) {
                    usage = ReadContentUsage(db, "ann");
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(usage.count, 3);
  EXPECT_EQ(usage.bytes, 35);
  EXPECT_EQ(usage.bytes_of_creator, 15);
}

TEST_F(ContentStoreTest, ContentOfARemovedDeploymentIsRemovedUnlessAnotherOneNamesIt) {
  ASSERT_TRUE(Put("one").ok());
  ASSERT_TRUE(Put("both").ok());
  DeploymentStore deployments(*database_, {.max_ended = 0});
  ASSERT_TRUE(Deploy("d1", "one", &deployments).ok());
  ASSERT_TRUE(deployments.Fail("d1", "", true, clock_.Now()).ok());
  ASSERT_TRUE(Deploy("d2", "both", &deployments).ok());  // replaces d1
  clock_.Advance(absl::Hours(25));
  store_->Sweep();
  EXPECT_FALSE(IsStored("one"));
  EXPECT_TRUE(IsStored("both"));
  EXPECT_EQ(Files(), 1u);
}

// A kill between two steps leaves these states on the disk.
TEST_F(ContentStoreTest, RowsAndBytesAgreeAfterACrashAtAnyStep) {
  const ContentRow content = {DigestOf("bytes"), 5, "ann"};
  // Published, and not recorded.
  ASSERT_TRUE(Put("bytes").ok());
  Change([&](Connection& db) {
    DeleteContent(db, content.sha256);
    WriteUpload(db, {"u1", content}, clock_.Now() + absl::Hours(1));
  });
  Open();
  EXPECT_TRUE(IsStored("bytes"));
  // The upload is recorded and has no bytes.
  Change([&](Connection& db) {
    WriteUpload(db, {"u2", {DigestOf("none"), 4, "ann"}}, clock_.Now() + absl::Hours(1));
  });
  Open();
  EXPECT_EQ(store_->Usage().count, 1);
  // The row was deleted before the bytes.
  Change([&](Connection& db) { DeleteContent(db, content.sha256); });
  Open();
  EXPECT_EQ(Files(), 0u);
  EXPECT_FALSE(IsStored("bytes"));
  // The bytes are lost.
  ASSERT_TRUE(Put("bytes").ok());
  store_.reset();
  fs::remove_all(folder_ + "/contents");
  Open();
  EXPECT_FALSE(IsStored("bytes"));
  EXPECT_TRUE(Put("bytes").ok());
  // Staged bytes whose row was deleted.
  EXPECT_TRUE(store_->Upload(PartOf("other", 0, 3)).ok());
  Change([&](Connection& db) {
    for (const ContentUploadRow& upload : ReadUploads(db)) DeleteUpload(db, upload.upload);
  });
  Open();
  EXPECT_EQ(Files(), 1u);
}

}  // namespace
}  // namespace muster
