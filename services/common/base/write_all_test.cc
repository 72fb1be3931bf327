#include "services/common/base/write_all.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/unique_fd.h"

namespace muster {
namespace {

// A pipe takes fewer bytes than these at a time.
const std::string kText(size_t{1} << 20, 'x');

TEST(WriteAllTest, PartialAndInterruptedWritesAreContinued) {
  struct sigaction action = {};
  action.sa_handler = [](int) {};  // without SA_RESTART
  struct sigaction before = {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  std::array<int, 2> ends;
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  absl::Status status;
  std::thread writer([&] {
    status = WriteAll(to.get(), kText, "the pipe");
    to.reset();
  });
  std::string found;
  std::array<char, 4096> part;
  for (ssize_t n = 1; n > 0;) {
    pthread_kill(writer.native_handle(), SIGUSR1);
    n = read(from.get(), part.data(), part.size());
    if (n > 0) found.append(part.data(), static_cast<size_t>(n));
  }
  writer.join();
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(found.size(), kText.size());
}

TEST(WriteAllTest, BytesAreWrittenAtTheOffset) {
  const UniqueFd file(open(::testing::TempDir().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  ASSERT_TRUE(file.valid());
  ASSERT_TRUE(WriteAll(file.get(), "abcdef", "file").ok());
  ASSERT_TRUE(WriteAllAt(file.get(), "XY", 2, "file").ok());
  std::array<char, 10> bytes;
  EXPECT_EQ(pread(file.get(), bytes.data(), bytes.size(), 0), 6);
  EXPECT_EQ(std::string(bytes.data(), 6), "abXYef");
}

TEST(WriteAllTest, FailureNamesTheFile) {
  const UniqueFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  const absl::Status status = WriteAll(full.get(), "x", "the output");
  EXPECT_EQ(ReasonOf(status), "DISK_FULL");
  EXPECT_NE(status.message().find("the output"), std::string::npos) << status;
}

}  // namespace
}  // namespace muster
