#include "cli/supervisor/log_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "cli/supervisor/test_folder.h"

namespace muster::supervisor {
namespace {

std::string Content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(RotateLogFileTest, LargeFileIsMovedAndItsWritersContinue) {
  const TestFolder folder;
  const std::string path = folder / "a.log";
  std::ofstream writer(path, std::ios::app);
  writer << "0123456789" << std::flush;
  RotateLogFile(path, 10);
  EXPECT_EQ(Content(path), "0123456789");
  RotateLogFile(path, 9);
  EXPECT_EQ(Content(path), "");
  EXPECT_EQ(Content(path + ".1"), "0123456789");
  writer << "next" << std::flush;
  EXPECT_EQ(Content(path), "next");
  RotateLogFile(folder / "none.log", 9);
}

TEST(LogTailTest, SkippedBytesAreNotReturned) {
  const TestFolder folder;
  const std::string path = folder / "a.log";
  EXPECT_EQ(LogSize(path), 0);
  std::ofstream(path) << "1\n2\n";
  const int64_t begin = LogSize(path);
  EXPECT_EQ(begin, 4);
  EXPECT_EQ(LogTail(path, 9, begin), "");
  std::ofstream(path, std::ios::app) << "3\n4\n";
  EXPECT_EQ(LogTail(path, 9, begin), "3\n4\n");
  EXPECT_EQ(LogTail(path, 1, begin), "4\n");
  std::ofstream(path) << "5\n";  // truncated meanwhile
  EXPECT_EQ(LogTail(path, 9, begin), "5\n");
}

TEST(LogTailTest, LongFileReturnsItsLastLines) {
  const TestFolder folder;
  const std::string path = folder / "a.log";
  std::ofstream(path) << "1\n2\n3\n4\n";
  EXPECT_EQ(LogTail(path, 2), "3\n4\n");
  EXPECT_EQ(LogTail(path, 4), "1\n2\n3\n4\n");
  EXPECT_EQ(LogTail(path, 9), "1\n2\n3\n4\n");
  std::ofstream(path) << "1\n2";
  EXPECT_EQ(LogTail(path, 1), "2\n");
  EXPECT_EQ(LogTail(folder / "none.log", 3), "");
}

}  // namespace
}  // namespace muster::supervisor
