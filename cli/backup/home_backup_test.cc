#include "cli/backup/home_backup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/backup/home_restore.h"
#include "services/common/base/error.h"
#include "services/common/base/sha256.h"
#include "services/common/store/sqlite/local_database.h"
#include "services/common/store/sqlite/sqlite_harness.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kBlob[] = "aggregator/blobs/blobs/runs/00112233445566aa/results/aa/=3f/aa01";
constexpr char kBlobName[] = "runs/00112233445566aa/results/aa/aa01";

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void WriteFile(const std::string& path, const std::string& content) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

// The paths of all files in a folder.
std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path().lexically_relative(folder));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// A home whose store is open, as while the aggregator serves.
class HomeBackupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* path :
         {"fleet.json", "root/ca.key", "aggregator/tls/ca.pem", "aggregator/tls/key.pem",
          "aggregator/tls/cert.pem", "aggregator/tls-published/current/key.pem",
          "aggregator/blobs/staged/u1", "aggregator/blobs/lock", "relay/jobs/j1/job",
          "relay/spool/spool.db", "relay/shares/shares.db", "node/node.json", "status/status.db",
          "status/status.db-wal", "run/addresses.json", "log/relay.log"}) {
      WriteFile(home_ + "/" + path, path);
    }
    WriteFile(home_ + "/operators/ann.json", R"({"key": "-----BEGIN PRIVATE KEY-----"})");
    // By another path than the test uses, and beside a longer path.
    WriteFile(home_ + "/config/aggregator.yaml",
              "state_folder: \"/link/home/aggregator\"\nother: /mnt/link/home/x\n");
    store_.options().path = home_ + "/aggregator/state.db";
    ASSERT_TRUE(store_.Open().ok());
    ASSERT_TRUE(store_.state().ApplyAndWait(MakeRun(kRun, {{"facts", "n1"}, {"e2e", "n"}})).ok());
    CommitResult large = Genuine(KeyOf("n1"), "large");
    large.result.sha256 = DigestBytes(Sha256::Of("large"));
    large.result.body.clear();
    large.result.blob = kBlobName;
    ASSERT_TRUE(store_.state().ApplyAndWait(std::move(large)).ok());
    WriteFile(home_ + "/" + kBlob, "large");
  }

  absl::StatusOr<BackupReport> MakeBackup() { return BackUpHome(home_, backup_, absl::Now()); }

  void ExpectNotRestored(const std::string& reason, const std::string& text) {
    const auto restored = RestoreHome(backup_, restored_);
    EXPECT_EQ(ReasonOf(restored.status()), reason) << restored.status();
    EXPECT_THAT(restored.status().message(), HasSubstr(text));
    EXPECT_FALSE(fs::exists(restored_));
  }

  TempFolder folder_;
  const std::string home_ = folder_ / "home";
  const std::string backup_ = folder_ / "backup";
  const std::string restored_ = folder_ / "restored";
  SqliteHarness store_;
};

TEST_F(HomeBackupTest, RestoredHomeHasTheStateWithoutWhatIsInTransit) {
  const auto report = MakeBackup();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->damaged.empty());
  EXPECT_THAT(report->manifest.keys, ElementsAre("operators/ann.json", "root/ca.key"));
  EXPECT_THAT(report->manifest.omitted,
              ElementsAre("aggregator/blobs/staged", "log", "node", "relay/jobs", "relay/shares",
                          "relay/spool", "run", "status/status.db"));
  for (const std::string& path : FilesIn(backup_)) {
    struct stat info = {};
    ASSERT_EQ(::stat((backup_ + "/" + path).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << path;
  }

  const auto manifest = RestoreHome(backup_, restored_);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_THAT(FilesIn(restored_),
              ElementsAre(kBlob, "aggregator/state.db", "aggregator/state.db.created",
                          "aggregator/tls/ca.pem", "config/aggregator.yaml", "fleet.json",
                          "operators/ann.json", "root/ca.key"));
  EXPECT_EQ(manifest->files.size(), 8u);
  EXPECT_EQ(ReadFile(restored_ + "/" + kBlob), "large");
  EXPECT_EQ(ReadFile(restored_ + "/config/aggregator.yaml"),
            "state_folder: \"" + restored_ + "/aggregator\"\nother: /mnt/link/home/x\n");
  SqliteHarness store;
  store.options().path = restored_ + "/aggregator/state.db";
  ASSERT_TRUE(store.Open().ok());
  EXPECT_EQ((**store.state().GetResult(KeyOf("n1"))).blob, kBlobName);
  EXPECT_NE(store.feed().Identity(), store_.feed().Identity());
}

// Its newest rows lie in the write-ahead log, which is not copied.
TEST_F(HomeBackupTest, DatabaseOfTheJobsServiceIsCopiedWhileItIsOpen) {
  constexpr const char* kSteps[] = {"CREATE TABLE words (word TEXT);"};
  fs::create_directories(home_ + "/jobs");
  std::ofstream(home_ + "/jobs/store.key") << "the key of the secrets in it";
  const auto open = sqlite::LocalDatabase::Open(home_ + "/jobs/jobs.db", kSteps);
  ASSERT_TRUE(open.ok()) << open.status();
  ASSERT_TRUE((*open)
                  ->Write([](sqlite::Connection& db) {
                    db.Run("INSERT INTO words VALUES ('hello')");
                    return absl::OkStatus();
                  })
                  .ok());
  ASSERT_TRUE(MakeBackup().ok());
  ASSERT_TRUE(RestoreHome(backup_, restored_).ok());
  EXPECT_EQ(fs::file_size(restored_ + "/jobs/store.key"), 28u);
  const auto restored = sqlite::LocalDatabase::Open(restored_ + "/jobs/jobs.db", kSteps);
  ASSERT_TRUE(restored.ok()) << restored.status();
  std::string word;
  ASSERT_TRUE((*restored)
                  ->Read([&word](sqlite::Connection& db) {
                    sqlite::Rows rows = db.Query("SELECT word FROM words");
                    if (rows.Next()) word = rows.Text();
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(word, "hello");
}

// An upload may be complete after the plain files were copied, and before the database was.
TEST_F(HomeBackupTest, ContentsAndWorkspacesAreCopiedWithoutUploads) {
  constexpr const char* kSteps[] = {"CREATE TABLE words (word TEXT);"};
  constexpr const char* kContent = "jobs/contents/blobs/contents/=0a/content";
  fs::create_directories(home_ + "/jobs");
  ASSERT_TRUE(sqlite::LocalDatabase::Open(home_ + "/jobs/jobs.db", kSteps).ok());
  WriteFile(home_ + "/" + kContent, "bytes");
  WriteFile(home_ + "/jobs/contents/staged/u1", "half");
  constexpr const char* kVersion = "jobs/workspaces/blobs/workspaces/=0a/version";
  WriteFile(home_ + "/" + kVersion, "encrypted");
  WriteFile(home_ + "/jobs/workspaces/staged/u2", "half");
  WriteFile(home_ + "/jobs/contents/lock", "");
  const auto report = MakeBackup();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->manifest.omitted, ::testing::Contains("jobs/contents/staged"));
  ASSERT_TRUE(RestoreHome(backup_, restored_).ok());
  EXPECT_EQ(ReadFile(restored_ + "/" + kContent), "bytes");
  EXPECT_EQ(ReadFile(restored_ + "/" + kVersion), "encrypted");
  EXPECT_FALSE(fs::exists(restored_ + "/jobs/workspaces/staged"));
  EXPECT_FALSE(fs::exists(restored_ + "/jobs/contents/staged"));
  EXPECT_FALSE(fs::exists(restored_ + "/jobs/contents/lock"));
}

// It may be a mount point, or lie in a folder of another user.
TEST_F(HomeBackupTest, EmptyHomeIsFilledAndNotReplaced) {
  ASSERT_TRUE(MakeBackup().ok());
  WriteFile(restored_ + "/.restoring/config/half.yaml", "of a restore that was interrupted");
  struct stat before = {};
  ASSERT_EQ(::stat(restored_.c_str(), &before), 0);
  ASSERT_TRUE(RestoreHome(backup_, restored_).ok());
  struct stat after = {};
  ASSERT_EQ(::stat(restored_.c_str(), &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino);
  EXPECT_FALSE(fs::exists(restored_ + "/.restoring"));
  EXPECT_FALSE(fs::exists(restored_ + "/config/half.yaml"));
  EXPECT_TRUE(fs::exists(restored_ + "/fleet.json"));
}

// As a backup of an earlier version.
TEST_F(HomeBackupTest, BackupWithoutTheMarkOfItsDatabaseIsRestored) {
  ASSERT_TRUE(fs::remove(home_ + "/aggregator/state.db.created"));
  ASSERT_TRUE(MakeBackup().ok());
  ASSERT_TRUE(RestoreHome(backup_, restored_).ok());
  SqliteHarness store;
  store.options().path = restored_ + "/aggregator/state.db";
  store.options().has_data = [] { return true; };
  ASSERT_TRUE(store.Open().ok());
  EXPECT_TRUE(fs::exists(restored_ + "/aggregator/state.db.created"));
}

TEST_F(HomeBackupTest, BlobThatDiffersFromItsRecordIsReported) {
  WriteFile(home_ + "/" + kBlob, "lArge");
  EXPECT_THAT(MakeBackup()->damaged, ElementsAre(DamagedFile{kBlob, kRun, "facts", "n1"}));
  fs::remove_all(backup_);
  fs::remove(home_ + "/" + kBlob);
  EXPECT_THAT(MakeBackup()->damaged, ElementsAre(DamagedFile{"", kRun, "facts", "n1"}));
  // The rest is restored.
  const auto manifest = RestoreHome(backup_, restored_);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_TRUE(UnlistedFiles(backup_, *manifest).empty());
  WriteFile(backup_ + "/home/config/forgotten.yaml", "x");
  EXPECT_THAT(UnlistedFiles(backup_, *manifest), ElementsAre("config/forgotten.yaml"));
}

TEST_F(HomeBackupTest, LinkedFoldersAreCopied) {
  fs::rename(home_ + "/aggregator/blobs", folder_ / "large-disk");
  fs::create_directory_symlink(folder_ / "large-disk", home_ + "/aggregator/blobs");
  fs::rename(home_ + "/root", folder_ / "usb-stick");
  fs::create_directory_symlink(folder_ / "usb-stick", home_ + "/root");
  EXPECT_TRUE(MakeBackup()->damaged.empty());
  ASSERT_TRUE(RestoreHome(backup_, restored_).ok());
  EXPECT_EQ(ReadFile(restored_ + "/" + kBlob), "large");
  EXPECT_EQ(ReadFile(restored_ + "/root/ca.key"), "root/ca.key");
}

TEST_F(HomeBackupTest, FolderThatDoesNotExistIsNamedAsSuch) {
  ExpectNotRestored("NOT_A_BACKUP", backup_ + " is not a complete backup: it does not exist");
}

TEST_F(HomeBackupTest, BackupWithAnyDamagedFileIsNotRestored) {
  ASSERT_TRUE(MakeBackup().ok());
  for (const std::string& path : FilesIn(backup_)) {
    const std::string file = backup_ + "/" + path;
    const std::string content = ReadFile(file);
    std::string damaged = content;
    damaged[damaged.size() / 2] ^= 1;
    WriteFile(file, damaged);
    const auto restored = RestoreHome(backup_, restored_);
    EXPECT_EQ(ReasonOf(restored.status()), "BACKUP_DAMAGED") << path << restored.status();
    EXPECT_FALSE(fs::exists(restored_)) << path;
    fs::remove(file);
    const bool of_format = path == "SHA256SUMS" || path == "manifest.json";
    ExpectNotRestored(of_format ? "NOT_A_BACKUP" : "BACKUP_DAMAGED",
                      of_format ? path : file + " is missing");
    WriteFile(file, content);
  }
  // A list of checksums that lost its end.
  const std::string sums = ReadFile(backup_ + "/SHA256SUMS");
  WriteFile(backup_ + "/SHA256SUMS", sums.substr(0, sums.rfind('\n', sums.size() - 2) + 1));
  ExpectNotRestored("BACKUP_DAMAGED", "SHA256SUMS lacks files");
  WriteFile(backup_ + "/SHA256SUMS", sums);
  EXPECT_TRUE(RestoreHome(backup_, restored_).ok());
}

TEST_F(HomeBackupTest, PathOutsideOfTheHomeIsRefused) {
  ASSERT_TRUE(MakeBackup().ok());
  std::ofstream(backup_ + "/SHA256SUMS", std::ios::app)
      << std::string(64, '0') << "  home/../../escaped\n";
  ExpectNotRestored("BACKUP_DAMAGED", "SHA256SUMS has an invalid line");
}

TEST_F(HomeBackupTest, FoldersThatAreInUseAreRefused) {
  EXPECT_EQ(ReasonOf(BackUpHome(home_, home_ + "/backup", absl::Now()).status()), "BACKUP_IN_HOME");
  EXPECT_EQ(ReasonOf(BackUpHome(folder_ / "none", backup_, absl::Now()).status()), "NOT_A_HOME");
  ASSERT_TRUE(MakeBackup().ok());
  EXPECT_EQ(ReasonOf(MakeBackup().status()), "FOLDER_NOT_EMPTY");
  EXPECT_EQ(ReasonOf(RestoreHome(backup_, home_).status()), "FOLDER_NOT_EMPTY");
  EXPECT_EQ(ReasonOf(RestoreHome(backup_ + "/home", restored_).status()), "NOT_A_BACKUP");
  fs::create_directory(restored_);
  EXPECT_TRUE(RestoreHome(backup_, restored_).ok());
}

}  // namespace
}  // namespace muster::cli
