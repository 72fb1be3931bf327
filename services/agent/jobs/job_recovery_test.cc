#include "services/agent/jobs/job_recovery.h"

#include <errno.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/simulated_disk.h"

namespace muster {
namespace {

constexpr char kJob[] = "00000000000000000000000000000001";
constexpr char kNode[] = "n1";

// A job of an earlier process that started and did not end.
class JobRecoveryTest : public ::testing::Test {
 protected:
  JobRecoveryTest() { MakeJob(disk_, {"first\n", "second\n"}); }

  void MakeJob(SimulatedDisk& disk, const std::vector<std::string>& output) const {
    EXPECT_TRUE(MakeFolders(disk, "/jobs").ok());
    v1::Command command;
    command.set_job(kJob);
    v1::SignedCommand signed_command;
    signed_command.set_command(command.SerializeAsString());
    const auto folder = NodeJobFolder::Create(disk, "/jobs", kJob, kNode, signed_command).value();
    EXPECT_TRUE(folder->NoteProcess(process_).ok());
    for (const std::string& text : output) {
      v1::JobRecord record;
      record.mutable_output()->set_stream(v1::JOB_STREAM_STDOUT);
      record.mutable_output()->set_data(text);
      EXPECT_TRUE(folder->log()->Append(record).ok());
      EXPECT_TRUE(folder->log()->Sync().ok());
    }
  }

  absl::StatusOr<std::unique_ptr<NodeJobFolder>> Recover() {
    return RecoverJob(disk_, "/jobs", kJob, kNode);
  }

  // Returns the output, and the reason of the final record.
  static std::string Records(NodeJobFolder& folder) {
    v1::JobRecords records;
    EXPECT_TRUE(folder.log()->NextRecords(size_t{1} << 20, nullptr, &records).ok());
    std::string all;
    for (const v1::JobRecord& record : records.records()) {
      all += record.has_final() ? record.final().reason() : record.output().data();
    }
    return all;
  }

  const std::string folder_ = absl::StrCat("/jobs/", kJob);
  const ProcessMark process_ = {{1'000, 5, "another-boot"}};
  SimulatedDisk disk_;
};

TEST_F(JobRecoveryTest, StartedJobIsLostAndKeepsItsRecords) {
  const auto folder = Recover();
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(Records(**folder), "first\nsecond\nAGENT_DIED");
}

TEST_F(JobRecoveryTest, JobIsRecoveredAfterAFailureOfTheDisk) {
  for (const auto call : {SimulatedDisk::Call::kOpen, SimulatedDisk::Call::kWrite}) {
    disk_.FailAt(call, 1, call == SimulatedDisk::Call::kOpen ? EMFILE : ENOSPC);
    const auto failed = Recover();
    ASSERT_FALSE(failed.ok());
    EXPECT_FALSE(absl::IsDataLoss(failed.status())) << failed.status();
  }
  const auto folder = Recover();
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(Records(**folder), "first\nsecond\nAGENT_DIED");
}

// A job that seems not to have started would run again.
TEST_F(JobRecoveryTest, StartedJobWithAFlippedBitIsNeverRemoved) {
  const std::string path = folder_ + "/job";
  const int64_t size = disk_.Stat(path)->size;
  int refused = 0;
  for (int64_t at = 0; at < size; ++at) {
    SCOPED_TRACE(at);
    disk_.FlipBit(path, at);
    const auto folder = Recover();
    ASSERT_EQ(disk_.Stat(path)->size, size);
    disk_.FlipBit(path, at);
    if (absl::IsDataLoss(folder.status())) {
      ++refused;
      continue;
    }
    ASSERT_TRUE(folder.ok()) << folder.status();
    ASSERT_NE(*folder, nullptr);
    EXPECT_EQ((*folder)->process()->ToText(), process_.ToText());
    const bool in_mark = at >= size - static_cast<int64_t>(kFrameHeaderSize);
    EXPECT_TRUE(in_mark || (at >= 36 && at < Journal::begin()));
  }
  EXPECT_GT(refused, 100);
}

TEST_F(JobRecoveryTest, RecordsBeforeAFlippedBitAreKept) {
  const std::string path = folder_ + "/records";
  const std::string undamaged = *ReadSmallFile(disk_, path, 10'000);
  for (size_t at = 0; at < undamaged.size(); ++at) {
    SCOPED_TRACE(at);
    ASSERT_TRUE(disk_.Remove(path).ok());
    disk_.Remove(path + ".damaged").IgnoreError();
    std::string damaged = undamaged;
    damaged[at] ^= 1;
    ASSERT_TRUE((*disk_.Create(path))->WriteAt(damaged, 0).ok());
    const auto folder = Recover();
    ASSERT_TRUE(folder.ok()) << folder.status();
    const std::string records = Records(**folder);
    const std::vector<std::string> allowed = {"RECORDS_DAMAGED", "first\nRECORDS_DAMAGED",
                                              "first\nsecond\nRECORDS_DAMAGED",
                                              "first\nsecond\nAGENT_DIED"};
    EXPECT_NE(std::find(allowed.begin(), allowed.end(), records), allowed.end()) << records;
    const bool in_mark = at >= undamaged.size() - kFrameHeaderSize;
    const bool unused = at >= 36 && at < kJournalHeaderSize;
    EXPECT_EQ(records == allowed.back(), in_mark || unused) << records;
  }
}

TEST_F(JobRecoveryTest, CrashWhileDamagedRecordsAreMovedAwayLosesNoMore) {
  bool finished = false;
  for (int point = 1; !finished; ++point) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      SCOPED_TRACE(absl::StrCat("change ", point, ", seed ", seed));
      SimulatedDisk disk;
      // The sync after the damaged one makes the mark of that durable.
      MakeJob(disk, {"first\n", "second\n", "third\n"});
      const std::string path = folder_ + "/records";
      const std::string records = *ReadSmallFile(disk, path, 10'000);
      disk.FlipBit(path, static_cast<int64_t>(records.find("second")));
      disk.PowerOffAt(point);
      finished = RecoverJob(disk, "/jobs", kJob, kNode).ok() && !disk.powered_off();
      disk.Crash(seed);
      const auto folder = RecoverJob(disk, "/jobs", kJob, kNode);
      ASSERT_TRUE(folder.ok()) << folder.status();
      ASSERT_NE(*folder, nullptr);
      EXPECT_EQ(Records(**folder), "first\nRECORDS_DAMAGED");
    }
  }
}

TEST_F(JobRecoveryTest, DeploymentIsReadFromTheDisk) {
  EXPECT_FALSE((*Recover())->has_deployment());
  EXPECT_TRUE(absl::IsDataLoss((*Recover())->ReadDeployment().status()));
  constexpr char kOther[] = "00000000000000000000000000000002";
  v1::Command command;
  command.set_job(kOther);
  command.mutable_container()->mutable_deployment()->set_action("deploy");
  v1::SignedCommand signed_command;
  signed_command.set_command(command.SerializeAsString());
  auto folder = NodeJobFolder::Create(disk_, "/jobs", kOther, kNode, signed_command).value();
  for (int restarts = 0; restarts < 2; ++restarts) {
    EXPECT_TRUE(folder->has_deployment());
    const auto deployment = folder->ReadDeployment();
    ASSERT_TRUE(deployment.ok()) << deployment.status();
    EXPECT_EQ(deployment->action(), "deploy");
    ASSERT_TRUE(
        folder->NoteContainer({"boot", absl::UnixEpoch(), absl::ZeroDuration(), {.image = "i"}})
            .ok());
    folder.reset();
    folder = RecoverJob(disk_, "/jobs", kOther, kNode).value();
  }
}

}  // namespace
}  // namespace muster
