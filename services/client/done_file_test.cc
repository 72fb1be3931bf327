#include "services/client/done_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "services/client/delayed_stop.h"
#include "services/client/source_file.h"
#include "services/common/base/error.h"
#include "services/common/base/subprocess.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class DoneFileTest : public ::testing::Test {
 protected:
  DoneFileTest() : base_(::testing::TempDir() + "/done_file_test"), folder_(base_ + "/results") {
    fs::remove_all(base_);
    fs::create_directories(folder_);
  }
  ~DoneFileTest() override { fs::remove_all(base_); }

  void Write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
  void Done(const std::string& text) { Write(folder_ + "/done", text); }

  absl::StatusOr<std::string> Wait(std::chrono::milliseconds delay = {},
                                   std::stop_token stop = {}) {
    return WaitForDoneFile({folder_, delay, std::chrono::milliseconds(5)}, stop);
  }
  std::string Reason() { return ReasonOf(Wait().status()); }

  static std::string Content(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::string base_;
  const std::string folder_;
};

TEST_F(DoneFileTest, WhiteSpaceAroundThePathIsIgnored) {
  Write(folder_ + "/out put.txt", "x");
  Done("\n\t " + folder_ + "/out put.txt \r\n");
  EXPECT_EQ(Wait().value(), fs::canonical(folder_ + "/out put.txt"));
}

TEST_F(DoneFileTest, RelativePathBeginsInTheResultsFolder) {
  Write(folder_ + "/out", "x");
  Done("out");
  EXPECT_EQ(Wait().value(), fs::canonical(folder_ + "/out"));
}

TEST_F(DoneFileTest, DoneFileRemovedDuringItsDelayIsIgnored) {
  Write(folder_ + "/first", "x");
  Write(folder_ + "/second", "x");
  Done("first");
  constexpr std::chrono::milliseconds kDelay{400};
  int waits = 0;
  // Replaces time: checks, finds the file, waits for the delay, checks, checks.
  const auto wait = [&](absl::Duration time, const std::stop_token&) {
    ++waits;
    if (waits == 2) {
      EXPECT_EQ(time, absl::FromChrono(kDelay));
      fs::remove(folder_ + "/done");
    }
    if (waits == 4) Done("second");
    return true;
  };
  const auto found = WaitForDoneFile({.results_dir = folder_, .delay = kDelay, .wait = wait}, {});
  EXPECT_EQ(found.value(), fs::canonical(folder_ + "/second"));
  EXPECT_EQ(waits, 5);
}

TEST_F(DoneFileTest, UnusableDoneFileFailsWithItsReason) {
  Done("nothing-there");
  EXPECT_EQ(Reason(), "FILE_NOT_FOUND");
  Done("   \n");
  EXPECT_EQ(Reason(), "DONE_FILE_INVALID");
  Done(std::string(100'000, 'x'));
  EXPECT_EQ(Reason(), "DONE_FILE_INVALID");
  Write(base_ + "/outside", "secret");
  Done(base_ + "/outside");
  EXPECT_EQ(Reason(), "DONE_FILE_OUTSIDE");
  Done("../outside");
  EXPECT_EQ(Reason(), "DONE_FILE_OUTSIDE");
  fs::create_symlink(base_ + "/outside", folder_ + "/link");
  Done("link");
  EXPECT_EQ(Reason(), "DONE_FILE_OUTSIDE");
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  Done("pipe");
  EXPECT_EQ(Reason(), "NOT_A_FILE");
  fs::remove(folder_ + "/done");
  fs::create_directory(folder_ + "/done");
  EXPECT_EQ(Reason(), "DONE_FILE_INVALID");
}

// Makes the mode of a file apply to root, too.
void GiveUpCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  ASSERT_EQ(::syscall(SYS_capset, &header, none), 0);
}

TEST_F(DoneFileTest, UnreadableResultFailsWithItsReason) {
  Write(folder_ + "/closed", "x");
  ::chmod((folder_ + "/closed").c_str(), 0);
  Done("closed");
  const auto weakened = [this] {
    GiveUpCapabilities();
    const std::string reason = Reason();
    std::cerr << reason;
    std::exit(reason == "FILE_NOT_ACCESSIBLE" ? 0 : 1);
  };
  EXPECT_EXIT(weakened(), ::testing::ExitedWithCode(0), "FILE_NOT_ACCESSIBLE");
}

TEST_F(DoneFileTest, FolderIsPackedWithoutTheArchiveItself) {
  fs::create_directories(folder_ + "/set/inner");
  Write(folder_ + "/set/a.txt", "A");
  Write(folder_ + "/set/inner/b.txt", "B");
  Write(folder_ + "/set/results.tar.gz", "an old one");
  fs::last_write_time(folder_ + "/set/results.tar.gz",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  Done(folder_ + "/set");
  const auto archive = Wait();
  ASSERT_TRUE(archive.ok()) << archive.status();
  EXPECT_EQ(*archive, fs::canonical(folder_ + "/set").string() + "/results.tar.gz");
  SubprocessOptions tar;
  tar.argv = {"tar", "-tzf", *archive};
  tar.environment = {"PATH=/usr/bin:/bin"};
  tar.out = ChildOutput::Tail(4096);
  auto child = Subprocess::Start(std::move(tar));
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_TRUE((*child)->Wait(absl::Minutes(1))->ok());
  EXPECT_EQ((*child)->StdoutTail(), "a.txt\ninner/\ninner/b.txt\n");
}

TEST_F(DoneFileTest, ArchiveOfAnEarlierProcessIsUsed) {
  fs::create_directories(folder_ + "/set");
  Write(folder_ + "/set/a.txt", "A");
  Done(folder_ + "/set");
  fs::last_write_time(folder_ + "/done",
                      fs::file_time_type::clock::now() - std::chrono::seconds(5));
  const std::string archive = Wait().value();
  const auto made = fs::last_write_time(archive);
  EXPECT_EQ(Wait().value(), archive);
  EXPECT_EQ(fs::last_write_time(archive), made) << "it was packed again";
}

// A plugin may link to a file that only the sidecar can read or write.
TEST_F(DoneFileTest, LinkInPlaceOfTheArchiveIsNotDelivered) {
  Write(base_ + "/outside", "secret");
  fs::create_directories(folder_ + "/set");
  Done("set");
  fs::last_write_time(folder_ + "/done", fs::file_time_type::clock::now() - std::chrono::hours(1));
  fs::create_symlink(base_ + "/outside", folder_ + "/set/results.tar.gz");
  const std::string archive = Wait().value();
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(archive)));
  EXPECT_NE(Content(archive), "secret");
  EXPECT_EQ(Content(base_ + "/outside"), "secret");
}

TEST_F(DoneFileTest, LinkInPlaceOfTheIncompleteArchiveIsNotWritten) {
  Write(base_ + "/outside", "secret");
  fs::create_directories(folder_ + "/set");
  fs::create_symlink(base_ + "/outside", folder_ + "/set/results.tar.gz.partial");
  Done("set");
  const auto archive = Wait();
  ASSERT_TRUE(archive.ok()) << archive.status();
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(*archive)));
  EXPECT_EQ(Content(base_ + "/outside"), "secret");
}

TEST_F(DoneFileTest, DoneFileThatIsALinkIsNotRead) {
  Write(base_ + "/outside", "secret");
  fs::create_symlink(base_ + "/outside", folder_ + "/done");
  const absl::Status refused = Wait().status();
  EXPECT_EQ(ReasonOf(refused), "DONE_FILE_INVALID");
  EXPECT_THAT(std::string(refused.message()), Not(HasSubstr("secret")));
}

TEST_F(DoneFileTest, ResultThatALinkHasReplacedIsNotOpened) {
  fs::create_directories(base_ + "/elsewhere");
  Write(base_ + "/elsewhere/out", "secret");
  fs::create_directories(folder_ + "/set");
  Write(folder_ + "/set/out", "result");
  Done("set/out");
  const std::string path = Wait().value();
  EXPECT_TRUE(SourceFile::OpenResolved(path).ok());
  fs::remove(path);
  fs::create_symlink(base_ + "/elsewhere/out", path);
  EXPECT_EQ(ReasonOf(SourceFile::OpenResolved(path).status()), "NOT_A_FILE");
  fs::remove_all(folder_ + "/set");
  fs::create_directory_symlink(base_ + "/elsewhere", folder_ + "/set");
  EXPECT_EQ(ReasonOf(SourceFile::OpenResolved(path).status()), "NOT_A_FILE");
}

TEST_F(DoneFileTest, WaitContinuesForALateResultAfterAStop) {
  std::stop_source stop;
  stop.request_stop();
  const DelayedStop late(absl::Minutes(1), stop.get_token());
  int waits = 0;
  const auto wait = [&](absl::Duration, const std::stop_token& token) {
    if (++waits == 3) {
      Write(folder_ + "/out", "x");
      Done("out");
    }
    return !token.stop_requested();
  };
  EXPECT_TRUE(
      WaitForDoneFile({.results_dir = folder_, .delay = {}, .wait = wait}, late.token()).ok());
}

TEST_F(DoneFileTest, WaitEndsAfterTheGrace) {
  std::stop_source stop;
  const DelayedStop late(absl::Milliseconds(50), stop.get_token());
  stop.request_stop();
  EXPECT_EQ(ReasonOf(Wait({}, late.token()).status()), "INTERRUPTED");
}

}  // namespace
}  // namespace muster::client
