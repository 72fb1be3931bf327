#include "services/common/archive/archive_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/common/archive/archive_builder.h"
#include "services/common/archive/test_support.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Pair;
using ::testing::SizeIs;

std::string TwoPlugins() {
  ArchiveRun run{.id = "00112233aabbccdd",
                 .created = absl::FromUnixSeconds(1'790'000'000),
                 .plugins = {{.name = "p", .once = false, .result_format = "raw"},
                             {.name = "p.long", .once = true, .result_format = "raw"}}};
  FakeCursor cursor;
  cursor.Add(
      "p", "n1", "a.tar.gz",
      Gzip(MakeTar({{.name = "d/", .type = '5'}, {.name = "d/x", .content = "ex", .mode = 0755}})),
      "application/gzip");
  cursor.AddError("p", "n2", ArchivedOutcome::kError, "no");
  cursor.Add("p.long", "global", "zeros", std::string(size_t{8} << 20, '\0'));
  auto spool = PosixFileOps().CreateUnnamed(::testing::TempDir());
  StringSink sink;
  EXPECT_TRUE(BuildArchive(run, cursor, *std::move(spool), sink).ok());
  return sink.text;
}

TEST(ArchiveReaderTest, ReadArchiveFileCopiesOneFile) {
  const std::string archive = TwoPlugins();
  PieceSource source(archive);
  StringSink sink;
  ASSERT_TRUE(ReadArchiveFile(source, "plugins/p/results/n1/d/x", sink).ok());
  EXPECT_EQ(sink.text, "ex");
  PieceSource again(archive);
  EXPECT_EQ(ReasonOf(ReadArchiveFile(again, "plugins/p/results/n1/d", sink)),
            "FILE_NOT_IN_ARCHIVE");
}

TEST(ArchiveReaderTest, ReadResultTreesReturnsTheTrees) {
  const std::string archive = TwoPlugins();
  const auto read = [&archive](std::string_view plugin) {
    PieceSource source(archive);
    std::vector<std::pair<std::string, std::string>> found;
    const absl::Status status =
        ReadResultTrees(source, plugin, [&found](const std::string& of, ResultItem tree) {
          found.emplace_back(of, tree.status);
          return absl::OkStatus();
        });
    if (!status.ok()) found.emplace_back("error", ReasonOf(status));
    return found;
  };
  EXPECT_THAT(read(""), ElementsAre(Pair("p", "failed"), Pair("p.long", "passed")));
  EXPECT_THAT(read("p.long"), ElementsAre(Pair("p.long", "passed")));
  EXPECT_THAT(read("q"), ElementsAre(Pair("error", "PLUGIN_NOT_IN_ARCHIVE")));
}

TEST(ArchiveReaderTest, ExtractPluginWritesOnePlugin) {
  const std::string archive = TwoPlugins();
  PieceSource source(archive);
  StringSink sink;
  const auto info = ExtractPlugin(source, "p", sink);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->size, static_cast<int64_t>(sink.text.size()));
  EXPECT_THAT(ListWithTar(sink.text),
              ElementsAre("plugins/p/definition.json", "plugins/p/results/n1/d/",
                          "plugins/p/results/n1/d/x", "plugins/p/errors/n2/error.json",
                          "plugins/p/sonobuoy_results.yaml"));
  EXPECT_THAT(ReadTarGz(sink.text), Contains(Pair("plugins/p/results/n1/d/x", "ex")));
  PieceSource again(archive);
  StringSink nothing;
  EXPECT_EQ(ReasonOf(ExtractPlugin(again, "q", nothing).status()), "PLUGIN_NOT_IN_ARCHIVE");
  EXPECT_THAT(nothing.text, IsEmpty());
}

TEST(ArchiveReaderTest, StreamThatIsNotAnArchiveFails) {
  const std::string archive = TwoPlugins();
  for (const std::string& bad : {std::string("text"), archive.substr(0, archive.size() / 2)}) {
    PieceSource source(bad);
    EXPECT_EQ(ReasonOf(VerifyArchive(source).status()), "TAR_GZ_MALFORMED");
    PieceSource again(bad);
    StringSink sink;
    EXPECT_EQ(ReasonOf(ReadArchiveFile(again, "x", sink)), "TAR_GZ_MALFORMED");
  }
}

// Returns the archive of TwoPlugins with one change.
std::string Changed(const std::function<void(std::map<std::string, std::string>&)>& change,
                    std::string_view twice = "") {
  std::map<std::string, std::string> files = ReadTarGz(TwoPlugins());
  change(files);
  StringSink sink;
  auto writer = *TarGzWriter::Create(sink, {});
  const auto add = [&writer](const std::string& path, const std::string& content) {
    EXPECT_TRUE(path.ends_with("/") ? writer->AddDirectory(path).ok()
                                    : writer->AddFile(path, content).ok());
  };
  for (const auto& [path, content] : files) {
    if (path != "meta/manifest.json") add(path, content);
    if (path == twice) add(path, content);
  }
  if (files.contains("meta/manifest.json")) {
    add("meta/manifest.json", files["meta/manifest.json"]);
  }
  EXPECT_TRUE(writer->Finish().ok());
  return sink.text;
}

VerifyReport Verify(const std::string& archive) {
  PieceSource source(archive, 5000);
  const auto report = VerifyArchive(source);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.value_or(VerifyReport{.mistakes = -1});
}

TEST(VerifyArchiveTest, ValidArchiveHasNoMistakes) {
  const VerifyReport report = Verify(Changed([](auto&) {}));
  EXPECT_EQ(report.mistakes, 0);
  EXPECT_EQ(report.entries, 12);
  EXPECT_GT(report.bytes, 8 << 20);
}

TEST(VerifyArchiveTest, EachKindOfMistakeIsFound) {
  using Files = std::map<std::string, std::string>;
  const std::string path = "plugins/p/results/n1/d/x";
  const auto message = [](const std::string& archive) {
    const VerifyReport report = Verify(archive);
    EXPECT_EQ(report.mistakes, 1);
    return report.messages.empty() ? "none" : report.messages[0];
  };
  EXPECT_EQ(message(Changed([&](Files& f) { f[path] = "yx"; })),
            path + " has another size or SHA-256 than the manifest says");
  EXPECT_EQ(message(Changed([&](Files& f) { f.erase(path); })),
            path + " is in the manifest, but not in the archive");
  EXPECT_EQ(message(Changed([&](Files& f) { f["extra"] = "x"; })),
            "1 files are in the archive, but not in the manifest");
  EXPECT_EQ(message(Changed([](Files&) {}, path)), path + " is in the archive twice");
  EXPECT_EQ(message(Changed([](Files& f) { f.erase("meta/manifest.json"); })),
            "meta/manifest.json is missing");
}

TEST(VerifyArchiveTest, BrokenManifestIsReported) {
  for (const std::string& text :
       {std::string(), std::string("\"text\""), std::string("{\"entries\":[{\"path\":"),
        std::string(1000, '['), std::string("5"), std::string("{\"files\":[{\"size\":-1}]}")}) {
    const VerifyReport report =
        Verify(Changed([&text](auto& files) { files["meta/manifest.json"] = text; }));
    EXPECT_GT(report.mistakes, 0) << text.substr(0, 50);
  }
}

}  // namespace
}  // namespace muster
