#include "services/aggregator/verify/store_cursor.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/aggregator/verify/blob_sweep.h"
#include "services/aggregator/verify/read_failures.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/simulated_disk.h"
#include "services/common/blob/blob_test_util.h"
#include "services/common/blob/files/files_blob_store.h"
#include "services/common/store/sqlite/fault_vfs.h"
#include "services/common/store/sqlite/sqlite_harness.h"
#include "services/common/upload/blob_names.h"

namespace muster {
namespace {

constexpr char kActor[] = "spiffe://f.muster/user/ann";
constexpr size_t kLarge = 300'000;

class StoreCursorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(harness_.Open().ok());
    auto blobs = OpenFilesBlobStore({.root = "/blobs"}, disk_);
    ASSERT_TRUE(blobs.ok()) << blobs.status();
    blobs_ = *std::move(blobs);
    ASSERT_TRUE(store()
                    .ApplyAndWait(MakeRun(
                        kRun, {{"facts", "n1"}, {"facts", "n2"}, {"facts", "n3"}, {"facts", "n4"}}))
                    .ok());
  }

  StateStore& store() { return harness_.state(); }

  static CommitResult ResultOf(const std::string& node, const std::string& content) {
    CommitResult command = Genuine(KeyOf(node), content);
    command.result.crc32c = Crc32c(content);
    command.result.sha256 = DigestBytes(Sha256::Of(content));
    return command;
  }

  void PublishBlob(const std::string& id, const std::string& name, const std::string& content) {
    auto staged = blobs_->Stage(id, -1);
    ASSERT_TRUE(staged.ok()) << staged.status();
    ASSERT_TRUE((*staged)->Append(content, Crc32c(content)).ok());
    ASSERT_TRUE((*staged)->Publish(name).ok());
  }

  CommitResult InBlob(const std::string& node, const std::string& id, const std::string& content) {
    CommitResult command = ResultOf(node, content);
    command.result.body.clear();
    command.result.blob = ResultBlobName(kRun, id);
    PublishBlob(id, command.result.blob, content);
    return command;
  }

  void Commit(CommitResult command) {
    const auto committed = store().ApplyAndWait(std::move(command));
    ASSERT_TRUE(committed.ok()) << committed.status();
    ASSERT_EQ(committed->verdict, CommitResult::Verdict::kCommitted);
  }

  void SealWithArchive() {
    for (const char* node : {"n1", "n2", "n3", "n4"}) Commit(ResultOf(node, "small"));
    const std::string archive = Pattern(kLarge, 2);
    PublishBlob("bb01", ArchiveBlobName(kRun, "bb01"), archive);
    ArchiveRecord record;
    record.blob = ArchiveBlobName(kRun, "bb01");
    record.size = static_cast<int64_t>(archive.size());
    record.sha256 = DigestBytes(Sha256::Of(archive));
    const int64_t last_change = (**store().GetRun(kRun)).last_change;
    ASSERT_TRUE(store().ApplyAndWait(SealRun{kRun, record, last_change, 3'000'000})->changed);
  }

  // Returns the path of the only file whose name is `part`.
  std::string Find(const std::string& folder, const std::string& part) {
    const auto entries = disk_.List(folder);
    EXPECT_TRUE(entries.ok()) << entries.status();
    for (const FolderEntry& entry : *entries) {
      const std::string path = absl::StrCat(folder, "/", entry.name);
      if (entry.name == part) return path;
      if (entry.type != FileType::kFolder) continue;
      if (std::string found = Find(path, part); !found.empty()) return found;
    }
    return "";
  }

  StoreCursor Cursor(const std::string& run = "") {
    return {store(), *blobs_, clock_, kActor, run};
  }

  std::vector<DamagedObject> VerifyAll(StoreCursor cursor) {
    std::vector<DamagedObject> damaged;
    while (true) {
      const auto step = cursor.Step(1000);
      EXPECT_TRUE(step.ok()) << step.status();
      if (!step.ok()) return damaged;
      damaged.insert(damaged.end(), step->damaged.begin(), step->damaged.end());
      if (step->end) return damaged;
    }
  }

  ResultRecord Result(const std::string& node) { return **store().GetResult(KeyOf(node)); }

  SimulatedDisk disk_;
  sqlite::FaultVfs vfs_;  // of the store alone
  SqliteHarness harness_;
  std::unique_ptr<BlobStore> blobs_;
  FakeClock clock_;
};

TEST_F(StoreCursorTest, SoundStoreHasNoDamage) {
  Commit(ResultOf("n1", "small"));
  Commit(InBlob("n2", "aa01", Pattern(kLarge)));
  Commit(ResultOf("n3", ""));
  EXPECT_TRUE(VerifyAll(Cursor()).empty());
  EXPECT_TRUE(VerifyAll(Cursor(kRun)).empty());
  EXPECT_EQ(*store().DamagedResults(), 0);
}

TEST_F(StoreCursorTest, DamageIsReportedAndRecorded) {
  Commit(ResultOf("n1", "small"));
  for (const char* node : {"n2", "n3", "n4"}) {
    Commit(InBlob(node, absl::StrCat("aa0", &node[1]), Pattern(kLarge)));
  }
  disk_.FlipBit(Find("/blobs", "aa02"), 200'000);
  ASSERT_TRUE((*disk_.Open(Find("/blobs", "aa03"), OpenMode::kReadWrite))->Truncate(1000).ok());
  ASSERT_TRUE(disk_.Remove(Find("/blobs", "aa04")).ok());

  const auto damaged = VerifyAll(Cursor());
  ASSERT_EQ(damaged.size(), 3u);
  EXPECT_EQ(damaged[0].key, KeyOf("n2"));
  EXPECT_EQ(damaged[0].damage, "the CRC32C differs");
  EXPECT_EQ(damaged[1].damage, "stored are 1000 bytes instead of 300000");
  EXPECT_EQ(damaged[2].damage, "the stored file is missing");
  EXPECT_EQ(Result("n1").damage, "");
  EXPECT_EQ(Result("n2").damage, "the CRC32C differs");
  EXPECT_EQ(*store().DamagedResults(), 3);
  const RunView view = **store().GetRun(kRun);
  EXPECT_EQ(view.run.damaged, 3);
  EXPECT_EQ((*harness_.feed().Read(0, 100)).back().kind, ChangeKind::kRun);
  // A second verification reports it again, and records nothing new.
  EXPECT_EQ(VerifyAll(Cursor()).size(), 3u);
  EXPECT_EQ((**store().GetRun(kRun)).last_change, view.last_change);
}

TEST_F(StoreCursorTest, DamageOfARestoredFileEnds) {
  Commit(InBlob("n2", "aa01", Pattern(kLarge)));
  const std::string path = Find("/blobs", "aa01");
  disk_.FlipBit(path, 7);
  EXPECT_EQ(VerifyAll(Cursor()).size(), 1u);
  disk_.FlipBit(path, 7);
  EXPECT_TRUE(VerifyAll(Cursor()).empty());
  EXPECT_EQ(Result("n2").damage, "");
  EXPECT_EQ((**store().GetRun(kRun)).run.damaged, 0);
}

TEST_F(StoreCursorTest, StepComparesALimitedNumberOfRecords) {
  constexpr char kMany[] = "bbbbbbbbbbbbbbbb";
  constexpr int kRecords = 201;
  std::vector<PlannedPair> pairs;
  for (int i = 0; i < kRecords; ++i) pairs.push_back({"facts", absl::StrCat("m", i)});
  ASSERT_TRUE(store().ApplyAndWait(MakeRun(kMany, std::move(pairs))).ok());
  for (int i = 0; i < kRecords; ++i) {
    CommitResult command = ResultOf(absl::StrCat("m", i), "small");
    command.result.key.run = kMany;
    Commit(std::move(command));
  }
  StoreCursor cursor = Cursor(kMany);
  const auto first = cursor.Step(int64_t{1} << 40);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->objects, 200);
  EXPECT_FALSE(first->end);
  const auto second = cursor.Step(int64_t{1} << 40);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->objects, 1);
  EXPECT_TRUE(second->end);
}

TEST_F(StoreCursorTest, StepEndsAfterItsBytes) {
  Commit(InBlob("n1", "aa01", Pattern(2 * kLarge)));
  StoreCursor cursor = Cursor();
  const auto step = cursor.Step(1000);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_FALSE(step->end);
  EXPECT_LT(step->bytes, static_cast<int64_t>(2 * kLarge));
}

// A failing read may succeed later, so the result is not refused from then on.
TEST_F(StoreCursorTest, FailedReadIsReportedButNotRecorded) {
  Commit(InBlob("n2", "aa01", Pattern(kLarge)));
  disk_.FailAt(SimulatedDisk::Call::kRead, 2, EIO);
  const auto damaged = VerifyAll(Cursor());
  ASSERT_EQ(damaged.size(), 1u);
  EXPECT_NE(damaged[0].damage.find("cannot be read"), std::string::npos) << damaged[0].damage;
  EXPECT_EQ(Result("n2").damage, "");
}

TEST_F(StoreCursorTest, ResultThatCannotBeReadSeveralTimesCountsAsLost) {
  Commit(InBlob("n2", "aa01", Pattern(kLarge)));
  ReadFailures failures(clock_);
  const auto verify = [&] {
    return VerifyAll({store(), *blobs_, clock_, kActor, "", {.read_failures = &failures}});
  };
  disk_.FailAt(SimulatedDisk::Call::kRead, 2, EIO);
  EXPECT_EQ(verify().size(), 1u);
  EXPECT_TRUE(verify().empty());  // the failure does not count any more
  for (int i = 0; i < kMaxReadFailures; ++i) {
    EXPECT_EQ(Result("n2").redelivery, "");
    for (int repeated = 0; repeated < 2; ++repeated) {  // within the spacing it counts as one
      disk_.FailAt(SimulatedDisk::Call::kRead, 2, EIO);
      ASSERT_EQ(verify().size(), 1u);
    }
    clock_.Advance(kReadFailureSpacing);
  }
  EXPECT_NE(Result("n2").damage.find("reading failed 5 times"), std::string::npos)
      << Result("n2").damage;
  EXPECT_EQ(Result("n2").redelivery, kRedeliveryRequested);
  EXPECT_TRUE(verify().empty());  // the disk reads it again
  EXPECT_EQ(Result("n2").damage, "");
}

// The cursor reads records ahead.
TEST_F(StoreCursorTest, ResultThatWasRepairedMeanwhileIsNotDamaged) {
  Commit(ResultOf("n1", "small"));
  Commit(InBlob("n2", "aa01", Pattern(kLarge)));
  ASSERT_TRUE(disk_.Remove(Find("/blobs", "aa01")).ok());
  EXPECT_EQ(VerifyAll(Cursor()).size(), 1u);
  StoreCursor cursor = Cursor();
  ASSERT_TRUE(cursor.Step(1).ok());  // n1
  Commit(InBlob("n2", "aa02", Pattern(kLarge)));
  EXPECT_EQ(Result("n2").damage, "");
  EXPECT_TRUE(VerifyAll(std::move(cursor)).empty());
  EXPECT_EQ(Result("n2").damage, "");
  EXPECT_TRUE(VerifyAll(Cursor()).empty());
}

TEST_F(StoreCursorTest, DamageThatTheStoreRefusesToRecordIsRecordedByALaterStep) {
  Commit(InBlob("n1", "aa01", Pattern(kLarge)));
  Commit(InBlob("n2", "aa02", Pattern(kLarge)));
  ASSERT_TRUE(disk_.Remove(Find("/blobs", "aa02")).ok());
  disk_.FailAt(SimulatedDisk::Call::kRead, 1, EIO);  // of n1; is not recorded
  vfs_.FailAt(sqlite::Fault::kFullDisk, 1, true);
  StoreCursor cursor = Cursor();
  const auto first = cursor.Step(INT64_MAX);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(first->damaged.size(), 1u);
  EXPECT_EQ(first->damaged[0].key, KeyOf("n1"));
  EXPECT_FALSE(first->end);
  const absl::Status refused = cursor.Step(INT64_MAX).status();
  EXPECT_EQ(ReasonOf(refused), "DISK_FULL");
  EXPECT_NE(refused.message().find("facts/n2"), std::string::npos) << refused;
  vfs_.Clear();
  const auto damaged = VerifyAll(std::move(cursor));
  ASSERT_EQ(damaged.size(), 1u);
  EXPECT_EQ(damaged[0].key, KeyOf("n2"));
  EXPECT_EQ(Result("n2").damage, "the stored file is missing");
}

TEST_F(StoreCursorTest, ArchiveIsCompared) {
  SealWithArchive();
  EXPECT_TRUE(VerifyAll(Cursor()).empty());
  disk_.FlipBit(Find("/blobs", "bb01"), 5);
  const auto damaged = VerifyAll(Cursor());
  ASSERT_EQ(damaged.size(), 1u);
  EXPECT_EQ(damaged[0].key.run, kRun);
  EXPECT_EQ(damaged[0].key.plugin, "");
  EXPECT_EQ(damaged[0].damage, "the SHA-256 differs");
  EXPECT_EQ((**store().GetRun(kRun)).run.archive.damage, "the SHA-256 differs");
}

TEST_F(StoreCursorTest, PositionContinuesInTheSameRun) {
  constexpr char kOlder[] = "bbbbbbbbbbbbbbbb";
  std::vector<PlannedPair> pairs;
  for (int i = 0; i < 250; ++i) pairs.push_back({"facts", absl::StrCat("n", 1000 + i)});
  CreateRun older = MakeRun(kOlder, pairs);
  older.run.created_at = kCreated - 1;
  ASSERT_TRUE(store().ApplyAndWait(older).ok());
  for (int i = 0; i < 250; ++i) {
    CommitResult command = ResultOf("x", "small");
    command.result.key = {kOlder, "facts", absl::StrCat("n", 1000 + i)};
    Commit(std::move(command));
  }
  StoreCursor first = Cursor();
  const auto step = first.Step(INT64_MAX);  // 200 objects
  ASSERT_TRUE(step.ok() && !step->end);
  StoreCursor second = Cursor();
  second.SeekTo(first.position());
  const auto rest = second.Step(INT64_MAX);
  ASSERT_TRUE(rest.ok());
  EXPECT_TRUE(rest->end);
  EXPECT_EQ(rest->objects, 150);  // from the begin of the page
  StoreCursor invalid = Cursor();
  invalid.SeekTo("nonsense");
  EXPECT_EQ(invalid.Step(INT64_MAX)->objects, 200);
}

TEST_F(StoreCursorTest, PositionInAnArchiveContinuesInItsRun) {
  SealWithArchive();
  for (const int64_t after : {1, -1}) {
    CreateRun other =
        MakeRun(after > 0 ? "cccccccccccccccc" : "bbbbbbbbbbbbbbbb", {{"facts", "n1"}});
    other.run.created_at = kCreated + after;
    ASSERT_TRUE(store().ApplyAndWait(other).ok());
    CommitResult command = ResultOf("n1", "small");
    command.result.key.run = other.run.id;
    Commit(std::move(command));
    // With the newer run alone, the archive belongs to the last run.
    StoreCursor first = Cursor();
    while (true) {
      const auto step = first.Step(1);
      ASSERT_TRUE(step.ok() && !step->end) << step.status();
      if (step->bytes > 1000) break;
    }
    StoreCursor second = Cursor();
    second.SeekTo(first.position());
    const auto rest = second.Step(INT64_MAX);
    ASSERT_TRUE(rest.ok()) << rest.status();
    EXPECT_TRUE(rest->end);
    EXPECT_GT(rest->bytes, static_cast<int64_t>(kLarge));
    EXPECT_EQ(rest->objects, after > 0 ? 5 : 6);  // without the newer run
  }
}

TEST_F(StoreCursorTest, UnknownRunIsRefused) {
  EXPECT_TRUE(absl::IsNotFound(Cursor("ffffffffffffffff").Step(1).status()));
}

TEST_F(StoreCursorTest, SweepRemovesOnlyBlobsWithoutARecord) {
  Commit(InBlob("n1", "aa01", Pattern(kLarge)));
  // A replaced error keeps its blob.
  CommitResult error = InBlob("n2", "aa02", Pattern(kLarge));
  error.result.outcome = Outcome::kError;
  error.result.error = "broken";
  Commit(std::move(error));
  Commit(InBlob("n2", "aa03", Pattern(kLarge)));
  // Published, and about to be committed.
  ASSERT_TRUE(store().ApplyAndWait(Opening(KeyOf("n3"), "aa04")).ok());
  PublishBlob("aa04", ResultBlobName(kRun, "aa04"), "x");
  // While the run is not sealed, its archive may be in the middle.
  PublishBlob("bb01", ArchiveBlobName(kRun, "bb01"), "x");
  EXPECT_EQ(*SweepBlobs(store(), *blobs_), 0);

  PublishBlob("aa05", ResultBlobName(kRun, "aa05"), "x");                // of an expired upload
  PublishBlob("aa06", ResultBlobName("cccccccccccccccc", "aa06"), "x");  // of a deleted run
  EXPECT_EQ(*SweepBlobs(store(), *blobs_), 2);
  EXPECT_EQ(Find("/blobs", "aa05"), "");
  EXPECT_EQ(Find("/blobs", "aa06"), "");
  for (const char* kept : {"aa01", "aa02", "aa03", "aa04", "bb01"}) {
    EXPECT_NE(Find("/blobs", kept), "") << kept;
  }
  ASSERT_TRUE(store().ApplyAndWait(EndRun{.run = kRun, .state = RunState::kFailed}).ok());
  EXPECT_EQ(*SweepBlobs(store(), *blobs_), 1);  // the archive
}

}  // namespace
}  // namespace muster
