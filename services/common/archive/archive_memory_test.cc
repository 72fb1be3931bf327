// Tests the memory of a build with large or many results.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "absl/strings/str_cat.h"
#include "services/common/archive/archive_builder.h"
#include "services/common/archive/result_reader.h"
#include "services/common/archive/test_support.h"
#include "services/common/base/status_macros.h"

namespace muster {
namespace {

// Returns the peak memory of this process in KiB.
int64_t PeakKib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// Generates `count` results of `size` bytes each.
class SyntheticCursor : public ResultCursor {
 public:
  SyntheticCursor(int count, int64_t size) : count_(count), size_(size) {}

  absl::StatusOr<bool> Next(ArchivedResult& result) override {
    if (at_ == count_) return false;
    result.plugin = "p";
    result.node = absl::StrCat("node-", 10'000'000 + at_++);
    result.has_file = true;
    result.file_name = "log.txt";
    result.size = size_;
    return true;
  }
  absl::StatusOr<std::unique_ptr<ByteSource>> Open() override {
    return std::make_unique<PatternSource>(size_);
  }
  absl::StatusOr<std::unique_ptr<ByteSource>> OpenPartial() override {
    return absl::InternalError("there is none");
  }

 private:
  const int count_;
  const int64_t size_;
  int at_ = 0;
};

absl::StatusOr<ArchiveReport> Build(int count, int64_t size, std::string_view format,
                                    int64_t tree_bytes) {
  const ArchiveRun run{.id = "00112233aabbccdd",
                       .plugins = {{.name = "p", .result_format = std::string(format)}}};
  SyntheticCursor cursor(count, size);
  ASSIGN_OR_RETURN(auto spool, PosixFileOps().CreateUnnamed(::testing::TempDir()));
  NullSink sink;
  return BuildArchive(run, cursor, std::move(spool), sink, {.tree_bytes = tree_bytes});
}

TEST(ArchiveMemoryTest, MemoryDoesNotGrowWithTheSizeOfAResult) {
  ASSERT_TRUE(Build(1, 1 << 20, "raw", 1 << 20).ok());
  const int64_t before = PeakKib();
  const auto report = Build(1, int64_t{2} << 30, "raw", 1 << 20);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_LT(PeakKib() - before, 8 * 1024);
}

TEST(ArchiveMemoryTest, MemoryDoesNotGrowWithTheNumberOfResults) {
  ASSERT_TRUE(Build(1000, 10, "raw", 1 << 20).ok());
  const int64_t before = PeakKib();
  const auto report = Build(30'000, 10, "raw", 1 << 20);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->plugins.at("p").total(), 30'000);
  EXPECT_LT(PeakKib() - before, 8 * 1024);
}

TEST(ArchiveMemoryTest, EventOfManyValuesTakesLittleMemory) {
  const int64_t before = PeakKib();
  ItemBudget budget;
  auto reader = MakeResultReader(ResultFormat::kGoJson, "results/n1/file", budget);
  reader->Write(R"({"Action":"pass","Test":"A","x":[[])");
  for (int i = 0; i < 5'000'000; ++i) reader->Write(",[]");
  reader->Write("]}");
  EXPECT_EQ(reader->Finish().status, kPassed);
  EXPECT_LT(PeakKib() - before, 100 * 1024);
}

}  // namespace
}  // namespace muster
