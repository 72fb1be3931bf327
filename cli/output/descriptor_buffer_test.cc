#include "cli/output/descriptor_buffer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <ostream>
#include <string>

#include "services/common/base/unique_fd.h"

namespace muster::cli {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> ends = {};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    reader = UniqueFd(ends[0]);
    writer = UniqueFd(ends[1]);
  }

  UniqueFd reader;
  UniqueFd writer;
};

TEST(DescriptorBufferTest, EveryByteIsWrittenInOrder) {
  const Pipe pipe;
  DescriptorBuffer buffer(pipe.writer.get());
  std::ostream out(&buffer);
  std::string text;  // more than the buffer holds, less than the pipe
  for (int i = 0; i < 5000; ++i) text += std::to_string(i) + "\n";
  out << text << 'x' << std::flush;
  std::string read(text.size() + 2, '\0');
  size_t size = 0;
  while (size < text.size() + 1) {
    const ssize_t count = ::read(pipe.reader.get(), read.data() + size, read.size() - size);
    ASSERT_GT(count, 0);
    size += static_cast<size_t>(count);
  }
  read.resize(size);
  EXPECT_EQ(read, text + "x");
  EXPECT_EQ(buffer.error(), 0);
}

TEST(DescriptorBufferTest, CauseOfAFailureIsKept) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  pipe.reader = UniqueFd();
  DescriptorBuffer buffer(pipe.writer.get());
  std::ostream out(&buffer);
  out << "text" << std::flush;
  EXPECT_FALSE(out.good());
  errno = 0;
  out.clear();
  out << std::string(100'000, 'x') << std::flush;
  EXPECT_FALSE(out.good());
  EXPECT_EQ(buffer.error(), EPIPE);
}

TEST(DescriptorBufferTest, FullDiskIsTheCause) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full.valid());
  DescriptorBuffer buffer(full.get());
  std::ostream out(&buffer);
  out << std::string(100'000, 'x');
  EXPECT_FALSE(out.good());
  EXPECT_EQ(buffer.error(), ENOSPC);
}

}  // namespace
}  // namespace muster::cli
