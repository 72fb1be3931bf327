#include "services/common/base/log.h"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

class LogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override {
    ASSERT_TRUE(StartLog({}).ok());
    fs::remove_all(folder_);
  }

  void Start(LogFormat format, LogLevel level = LogLevel::kInfo) {
    ASSERT_TRUE(
        StartLog({.format = format, .level = level, .service = "muster-test", .file = file_}).ok());
  }

  std::string Written() const {
    std::ostringstream out;
    out << std::ifstream(file_).rdbuf();
    return out.str();
  }

  // The one text line, without its time.
  std::string Line() const { return Written().substr(25); }

  const fs::path folder_ = fs::path(::testing::TempDir()) / "log_test";
  const std::string file_ = folder_ / "x.log";
};

TEST_F(LogTest, TextLinesCarryFields) {
  Start(LogFormat::kText);
  const std::string run = "0123456789abcdef";
  Log(LogLevel::kInfo, "upload committed",
      {{"run", run},
       {"bytes", uint64_t{12}},
       {"resumed", true},
       {"took", absl::Milliseconds(1500)},
       {"share", 0.5},
       {"file", "a b.txt"},
       {"none", ""}});
  EXPECT_EQ(Line(),
            "INFO  upload committed run=0123456789abcdef bytes=12 resumed=true took=1.5s share=0.5 "
            "file=\"a b.txt\" none=\"\"\n");
  EXPECT_EQ(Written()[10], 'T');
  EXPECT_EQ(Written()[23], 'Z');
}

TEST_F(LogTest, ErrorsShowTheirReason) {
  Start(LogFormat::kText);
  Log(LogLevel::kError, "refused",
      {{"error", MakeError(absl::StatusCode::kNotFound, "RUN_NOT_FOUND", "no run x", "")},
       {"other", absl::InternalError("boom")}});
  EXPECT_EQ(Line(), "ERROR refused error=\"RUN_NOT_FOUND: no run x\" other=\"INTERNAL: boom\"\n");
}

TEST_F(LogTest, ValuesCannotForgeLinesOrFields) {
  Start(LogFormat::kText);
  Log(LogLevel::kWarning, "odd\nINFO forged",
      {{"node", "n1\n2026-01-01T00:00:00.000Z INFO  forged"},
       {"peer", "x run=y"},
       {"quote", "a\"b\\c"},
       {"escape", "\x1b[2J\xff"}});
  EXPECT_EQ(Line(),
            "WARN  odd\\nINFO forged node=\"n1\\n2026-01-01T00:00:00.000Z INFO  forged\" "
            "peer=\"x run=y\" quote=\"a\\\"b\\\\c\" escape=\"\\x1b[2J\\xff\"\n");
}

TEST_F(LogTest, JsonLinesParseWhateverTheValue) {
  Start(LogFormat::kJson);
  Log(LogLevel::kInfo, "m\n", {{"run", "r\"\n\xff"}, {"bytes", -3}, {"nan", std::nan("")}});
  const std::string written = Written();
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 1);
  const auto line = nlohmann::json::parse(written);
  EXPECT_EQ(line["level"], "info");
  EXPECT_EQ(line["service"], "muster-test");
  EXPECT_EQ(line["message"], "m\n");
  EXPECT_EQ(line["run"], "r\"\n\xef\xbf\xbd");
  EXPECT_EQ(line["bytes"], -3);
  EXPECT_EQ(line["nan"], "nan");
  EXPECT_EQ(line["time"].get<std::string>().size(), 24u);
}

TEST_F(LogTest, LongValuesAreCut) {
  Start(LogFormat::kJson);
  Log(LogLevel::kInfo, "m", {{"value", std::string(1 << 20, 'x')}});
  EXPECT_LT(Written().size(), 5000u);
}

TEST_F(LogTest, LevelsBelowAreDropped) {
  Start(LogFormat::kText, LogLevel::kWarning);
  Log(LogLevel::kInfo, "no");
  Log(LogLevel::kWarning, "yes");
  EXPECT_EQ(Line(), "WARN  yes\n");
  EXPECT_EQ(ParseLogLevel("debug"), LogLevel::kDebug);
  EXPECT_EQ(ParseLogLevel("loud"), std::nullopt);
}

TEST_F(LogTest, LimitedEventIsLoggedOnceForEachSource) {
  Start(LogFormat::kText);
  for (int i = 0; i < 3; ++i) {
    LogLimited(LogLevel::kWarning, "odd", "r1", {{"relay", "r1"}});
    LogLimited(LogLevel::kWarning, "odd", "r2", {{"relay", "r2"}});
    LogLimited(LogLevel::kWarning, "other", "r1");
  }
  std::istringstream in(Written());
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line.substr(25));
  EXPECT_EQ(lines,
            (std::vector<std::string>{"WARN  odd relay=r1", "WARN  odd relay=r2", "WARN  other"}));
}

TEST_F(LogTest, LimitedEventIsCountedAndLoggedAgainAfterAMinute) {
  Start(LogFormat::kText);
  const absl::Duration now = absl::Hours(1);
  const auto log = [](absl::Duration at) {
    LogLimited(LogLevel::kWarning, "frequent", "r1", {{"relay", "r1"}}, at);
  };
  log(now);
  for (int i = 1; i < 5; ++i) log(now + absl::Seconds(i));
  log(now + absl::Seconds(59));
  EXPECT_EQ(Line(), "WARN  frequent relay=r1\n");
  Start(LogFormat::kText);
  log(now + absl::Seconds(61));
  EXPECT_NE(Written().find("WARN  frequent relay=r1 count=6\n"), std::string::npos) << Written();
}

TEST_F(LogTest, FilesRotate) {
  ASSERT_TRUE(StartLog({.file = file_, .max_file_bytes = 1000, .max_files = 2}).ok());
  for (int i = 0; i < 100; ++i) Log(LogLevel::kInfo, "a line of some length", {{"i", i}});
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    EXPECT_LE(entry.file_size(), 1000u);
    ++files;
  }
  EXPECT_EQ(files, 3u);  // the current one and two older
}

TEST_F(LogTest, ThreadsDoNotMixLines) {
  Start(LogFormat::kText);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 200; ++i) Log(LogLevel::kInfo, "line", {{"i", "aaaaaaaaaaaaaaaa"}});
    });
  }
  for (auto& thread : threads) thread.join();
  std::istringstream in(Written());
  int lines = 0;
  for (std::string line; std::getline(in, line); ++lines) {
    EXPECT_EQ(line.substr(25), "INFO  line i=aaaaaaaaaaaaaaaa");
  }
  EXPECT_EQ(lines, 800);
}

TEST_F(LogTest, AFileThatCannotBeOpenedIsAnError) {
  const absl::Status status = StartLog({.file = "/proc/none/x.log"});
  EXPECT_EQ(ReasonOf(status), "LOG_NOT_WRITABLE");
  EXPECT_NE(status.message().find("/proc/none/x.log"), absl::string_view::npos);
}

}  // namespace
}  // namespace muster
