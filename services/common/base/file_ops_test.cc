#include "services/common/base/file_ops.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>

#include "services/common/base/error.h"
#include "services/common/base/simulated_disk.h"
#include "services/common/errors/system.h"

namespace muster {
namespace {

// Both disks keep the same promises while nothing crashes.
class FileOpsTest : public ::testing::TestWithParam<bool> {
 protected:
  FileOpsTest() {
    if (GetParam()) {
      simulated_ = std::make_unique<SimulatedDisk>();
      ops_ = simulated_.get();
      EXPECT_TRUE(ops_->MakeFolder("/t").ok());
      root_ = "/t";
    } else {
      root_ = ::testing::TempDir() + "file_ops_XXXXXX";
      EXPECT_NE(mkdtemp(root_.data()), nullptr);
      ops_ = &PosixFileOps();
    }
  }
  ~FileOpsTest() override { EXPECT_TRUE(RemoveTree(*ops_, root_).ok()); }

  std::string Path(const std::string& name) const { return root_ + "/" + name; }
  std::string Content(const std::string& name) {
    auto content = ReadSmallFile(*ops_, Path(name), 1 << 20);
    return content.ok() ? *content : std::string(content.status().message());
  }

  std::unique_ptr<SimulatedDisk> simulated_;
  FileOps* ops_ = nullptr;
  std::string root_;
};

TEST_P(FileOpsTest, WritesAndReadsBack) {
  auto file = ops_->Create(Path("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Reserve(1 << 20).ok());
  ASSERT_TRUE((*file)->WriteAt("hello world", 0).ok());
  ASSERT_TRUE((*file)->WriteAt("W", 6).ok());
  (*file)->StartWriteback(0, 11);
  ASSERT_TRUE((*file)->SyncData().ok());
  EXPECT_EQ(*(*file)->Size(), 11);  // a reservation does not change the size
  char buffer[32];
  EXPECT_EQ(*(*file)->ReadAt(buffer, 6), 5u);
  EXPECT_EQ(std::string(buffer, 5), "World");
  EXPECT_EQ(*(*file)->ReadAt(buffer, 11), 0u);
  ASSERT_TRUE((*file)->Truncate(5).ok());
  EXPECT_EQ(Content("a"), "hello");
  EXPECT_EQ(ops_->Stat(Path("a"))->size, 5);
}

// The blocks after the end of the file are released by a truncate, and are reserved again.
TEST(PosixFileTest, ReservesInStepsAndAgainAfterTruncate) {
  FileOps& ops = PosixFileOps();
  const std::string path = testing::TempDir() + "/reserved";
  auto file = ops.Open(path, OpenMode::kReadWriteOrCreate);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto allocated = [&] {
    struct stat info = {};
    EXPECT_EQ(stat(path.c_str(), &info), 0);
    return int64_t{info.st_blocks} * 512;
  };
  ASSERT_TRUE((*file)->Reserve(1 << 20).ok());
  if (allocated() == 0) GTEST_SKIP() << "the file system does not reserve space";
  EXPECT_GE(allocated(), 1 << 20);
  ASSERT_TRUE((*file)->Reserve(3 << 20).ok());
  EXPECT_GE(allocated(), 3 << 20);
  ASSERT_TRUE((*file)->WriteAt("x", 0).ok());
  ASSERT_TRUE((*file)->Truncate(1).ok());
  EXPECT_LT(allocated(), 1 << 20);
  ASSERT_TRUE((*file)->Reserve(2 << 20).ok());
  EXPECT_GE(allocated(), 2 << 20);
  EXPECT_EQ(*(*file)->Size(), 1);
  ASSERT_TRUE(ops.Remove(path).ok());
}

TEST_P(FileOpsTest, NamesAreRefusedWhenTaken) {
  ASSERT_TRUE(WriteFileDurably(*ops_, Path("a"), "1").ok());
  ASSERT_TRUE(WriteFileDurably(*ops_, Path("b"), "2").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(ops_->Create(Path("a")).status()));
  EXPECT_TRUE(absl::IsAlreadyExists(ops_->RenameNoReplace(Path("a"), Path("b"))));
  EXPECT_EQ(Content("b"), "2");
  ASSERT_TRUE(ops_->Rename(Path("a"), Path("b")).ok());
  EXPECT_EQ(Content("b"), "1");
  ASSERT_TRUE(ops_->RenameNoReplace(Path("b"), Path("c")).ok());
  EXPECT_TRUE(absl::IsNotFound(ops_->Stat(Path("b")).status()));
  EXPECT_TRUE(absl::IsNotFound(ops_->Remove(Path("b"))));
  EXPECT_TRUE(absl::IsNotFound(ops_->Open(Path("b"), OpenMode::kReadWrite).status()));
  ASSERT_TRUE(ops_->Open(Path("b"), OpenMode::kReadWriteOrCreate).ok());
  EXPECT_EQ(Content("b"), "");
}

TEST_P(FileOpsTest, UnnamedFilesGetANameOnce) {
  auto file = ops_->CreateUnnamed(root_);
  if (absl::IsUnimplemented(file.status())) GTEST_SKIP() << file.status();
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->WriteAt("x", 0).ok());
  EXPECT_TRUE(ops_->List(root_)->empty());
  ASSERT_TRUE((*file)->LinkTo(Path("x")).ok());
  EXPECT_TRUE(absl::IsAlreadyExists((*file)->LinkTo(Path("x"))));
  EXPECT_EQ(Content("x"), "x");
  EXPECT_EQ(ops_->Stat(Path("x"))->links, 1);
  ASSERT_TRUE((*file)->LinkTo(Path("y")).ok());
  EXPECT_EQ(ops_->Stat(Path("x"))->links, 2);
}

TEST_P(FileOpsTest, OneLockAtATime) {
  auto first = ops_->Open(Path("lock"), OpenMode::kReadWriteOrCreate);
  auto second = ops_->Open(Path("lock"), OpenMode::kReadWriteOrCreate);
  ASSERT_TRUE((*first)->Lock().ok());
  const absl::Status refused = (*second)->Lock();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_EQ(ReasonOf(refused), "FILE_LOCKED");
  first->reset();
  EXPECT_TRUE((*second)->Lock().ok());
}

TEST_P(FileOpsTest, FoldersAreMadeListedAndRemoved) {
  ASSERT_TRUE(MakeFolders(*ops_, Path("a/b/c")).ok());
  ASSERT_TRUE(MakeFolders(*ops_, Path("a/b/c")).ok());
  ASSERT_TRUE(WriteFileDurably(*ops_, Path("a/f"), "1").ok());
  auto entries = ops_->List(Path("a"));
  ASSERT_TRUE(entries.ok());
  EXPECT_EQ(entries->size(), 2u);
  EXPECT_EQ(ReasonOf(MakeFolders(*ops_, Path("a/f"))), "NOT_A_FOLDER");
  EXPECT_FALSE(ops_->RemoveFolder(Path("a")).ok());
  ASSERT_TRUE(RemoveTree(*ops_, Path("a")).ok());
  EXPECT_TRUE(ops_->List(root_)->empty());
  EXPECT_TRUE(RemoveTree(*ops_, Path("a")).ok());
  EXPECT_GT(ops_->Space(root_)->available, 0);
}

TEST_P(FileOpsTest, SmallFilesHaveALimit) {
  ASSERT_TRUE(WriteFileDurably(*ops_, Path("a"), "12345").ok());
  EXPECT_EQ(*ReadSmallFile(*ops_, Path("a"), 5), "12345");
  EXPECT_EQ(ReasonOf(ReadSmallFile(*ops_, Path("a"), 4).status()), "FILE_TOO_LARGE");
  ASSERT_TRUE(WriteFileDurably(*ops_, Path("a"), "new").ok());
  EXPECT_EQ(Content("a"), "new");
}

INSTANTIATE_TEST_SUITE_P(Disks, FileOpsTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Simulated" : "Posix"; });

TEST(MakeFoldersTest, FolderOfAKilledProcessBecomesDurable) {
  for (int call = 1; call <= 5; ++call) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      SimulatedDisk disk(int64_t{1} << 30, seed);
      disk.PowerOffAt(call);
      MakeFolders(disk, "/a/b").IgnoreError();
      disk.Restart();
      ASSERT_TRUE(MakeFolders(disk, "/a/b").ok()) << call;
      disk.Crash(seed);
      EXPECT_TRUE(disk.Stat("/a/b").ok()) << "call " << call << ", seed " << seed;
    }
  }
}

// As below a mount point on a read-only file system.
TEST(MakeFoldersTest, ExistingFolderBelowReadOnlyFolderIsNoError) {
  SimulatedDisk disk;
  ASSERT_TRUE(MakeFolders(disk, "/a/b").ok());
  disk.FailAt(SimulatedDisk::Call::kSyncFolder, 1, EROFS);
  EXPECT_TRUE(MakeFolders(disk, "/a/b").ok());
  disk.FailAt(SimulatedDisk::Call::kSyncFolder, 2, EROFS);  // "/"
  EXPECT_TRUE(MakeFolders(disk, "/a/c").ok());
  disk.FailAt(SimulatedDisk::Call::kSyncFolder, 1, EIO);
  EXPECT_FALSE(MakeFolders(disk, "/a/b").ok());
}

TEST(MakeFoldersTest, NewFolderMustBeDurable) {
  for (const std::string path : {"/a", "/a/b"}) {
    SimulatedDisk disk;
    disk.FailAt(SimulatedDisk::Call::kSyncFolder, 1, EROFS);
    EXPECT_EQ(ReasonOf(MakeFolders(disk, path)), "FILE_SYSTEM_NOT_WRITABLE") << path;
  }
}

// The file system of /proc has no fsync.
TEST(PosixFileTest, FolderThatCannotBeSyncedIsAnError) {
  FileOps& ops = PosixFileOps();
  const absl::Status refused = ops.SyncFolder("/proc");
  EXPECT_EQ(ReasonOf(refused), "FILE_SYSTEM_NOT_WRITABLE");
  EXPECT_EQ(NextStepOf(refused), NextStepOf(errors::FolderSyncUnsupported("")));
  EXPECT_TRUE(MakeFolders(ops, "/proc/self").ok());
}

TEST(ParentFolderTest, NamesTheFolder) {
  EXPECT_EQ(ParentFolder("/a/b"), "/a");
  EXPECT_EQ(ParentFolder("/a/b/"), "/a");
  EXPECT_EQ(ParentFolder("/a"), "/");
  EXPECT_EQ(ParentFolder("a"), ".");
}

}  // namespace
}  // namespace muster
