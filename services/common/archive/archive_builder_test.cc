#include "services/common/archive/archive_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "services/common/archive/archive_reader.h"
#include "services/common/archive/results_yaml.h"
#include "services/common/archive/test_support.h"
#include "services/common/base/status_macros.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::SizeIs;
using Json = nlohmann::json;
using Files = std::map<std::string, std::string>;

constexpr char kGzipType[] = "application/gzip";

class ArchiveBuilderTest : public ::testing::Test {
 protected:
  ArchiveBuilderTest() {
    run_.id = "00112233aabbccdd";
    run_.created = absl::FromUnixSeconds(1'790'000'000);
    run_.timeout = absl::Minutes(30);
  }

  void AddPlugin(std::string name, bool once, std::string format) {
    run_.plugins.push_back({.name = name,
                            .once = once,
                            .result_format = format,
                            .definition_yaml = "sonobuoy-config: {plugin-name: " + name + "}\n"});
  }

  absl::StatusOr<ArchiveReport> Build(ByteSink& sink) {
    ASSIGN_OR_RETURN(auto spool, PosixFileOps().CreateUnnamed(::testing::TempDir()));
    return BuildArchive(run_, cursor_, std::move(spool), sink, options_);
  }

  // Builds an archive and reads all of it.
  Files BuildFiles() {
    StringSink sink;
    const auto report = Build(sink);
    EXPECT_TRUE(report.ok()) << report.status();
    if (report.ok()) report_ = *report;
    bytes_ = sink.text;
    Files files = ReadTarGz(sink.text);
    manifest_ = Json::parse(files["meta/manifest.json"], nullptr, false);
    return files;
  }

  static ResultItem Tree(const Files& files, const std::string& plugin) {
    const auto tree = ParseResultsYaml(files.at("plugins/" + plugin + "/sonobuoy_results.yaml"));
    EXPECT_TRUE(tree.ok()) << tree.status();
    return tree.value_or(ResultItem());
  }

  ArchiveRun run_;
  FakeCursor cursor_;
  ArchiveOptions options_;
  ArchiveReport report_;
  std::string bytes_;
  Json manifest_;
};

TEST_F(ArchiveBuilderTest, LayoutMatchesSonobuoy) {
  AddPlugin("facts", false, "raw");
  AddPlugin("e2e", true, "junit");
  cursor_.Add("e2e", "global", "junit.xml",
              "<testsuite name='s'><testcase name='one'/><testcase name='two'>"
              "<failure>no</failure></testcase></testsuite>",
              "text/xml");
  cursor_.Add("facts", "n1", "facts.json", "{}", "application/json");
  cursor_.AddError("facts", "n2", ArchivedOutcome::kError, "Ansible is not installed");
  const std::string log = "{\"msg\":\"run created\"}\n";
  PieceSource log_source(log);
  run_.run_log = &log_source;
  run_.run_log_size = static_cast<int64_t>(log.size());

  const Files files = BuildFiles();

  EXPECT_THAT(
      ListWithTar(bytes_),
      ElementsAre("meta/config.json", "meta/info.json", "meta/query-time.json",
                  "meta/clusterhealth.json", "meta/run.log", "plugins/e2e/definition.json",
                  "plugins/e2e/results/global/junit.xml", "plugins/e2e/sonobuoy_results.yaml",
                  "plugins/facts/definition.json", "plugins/facts/results/n1/facts.json",
                  "plugins/facts/errors/n2/error.json", "plugins/facts/sonobuoy_results.yaml",
                  "meta/manifest.json"));
  EXPECT_EQ(files.at("meta/run.log"), log);
  const Json config = Json::parse(files.at("meta/config.json"));
  EXPECT_EQ(config["UUID"], "00112233aabbccdd");
  EXPECT_EQ(config["Server"]["timeoutseconds"], 1800);
  EXPECT_EQ(config["Plugins"][0]["name"], "e2e");
  EXPECT_EQ(Json::parse(files.at("meta/info.json"))["plugins"], Json({"e2e", "facts"}));
  EXPECT_EQ(
      Json::parse(files.at("plugins/facts/definition.json"))["sonobuoy-config"]["plugin-name"],
      "facts");
  EXPECT_EQ(Json::parse(files.at("plugins/facts/errors/n2/error.json"))["error"],
            "Ansible is not installed");
  EXPECT_EQ(report_.results, 3);
  EXPECT_EQ(report_.entries, 13);
  EXPECT_EQ(report_.archive.size, static_cast<int64_t>(bytes_.size()));
}

// The manifest lists exactly the entries of the archive.
TEST_F(ArchiveBuilderTest, ManifestListsEveryEntry) {
  AddPlugin("p", false, "raw");
  auto& first = cursor_.Add("p", "n1", "a.txt", "hello", "text/plain");
  first.result.generation = 2;
  first.result.node_unproven = true;
  first.result.vouched_by = "spiffe://fleet-0.muster/service/gateway/g";
  first.result.committed_at = absl::FromUnixMicros(1'790'000'000'123'456);
  first.result.history = {{.generation = 1,
                           .outcome = ArchivedOutcome::kTimedOut,
                           .error = "timeout: nothing came",
                           .committed_at = absl::FromUnixSeconds(1'780'000'000)}};
  cursor_.Add("p", "n2", "r.tar.gz", Gzip(MakeTar({{.name = "x", .content = "12"}})), kGzipType);

  const Files files = BuildFiles();

  ASSERT_THAT(manifest_["results"], SizeIs(2));
  const Json& one = manifest_["results"][0];
  EXPECT_EQ(one["plugin"], "p");
  EXPECT_EQ(one["node"], "n1");
  EXPECT_EQ(one["outcome"], "genuine");
  EXPECT_EQ(one["generation"], 2);
  EXPECT_EQ(one["committed_at"], "2026-09-21T14:13:20.123456Z");
  EXPECT_EQ(one["media_type"], "text/plain");
  EXPECT_EQ(one["file_name"], "a.txt");
  EXPECT_EQ(one["stored"], "file");
  EXPECT_EQ(one["size"], 5);
  EXPECT_EQ(one["node_unproven"], true);
  EXPECT_EQ(one["vouched_by"], "spiffe://fleet-0.muster/service/gateway/g");
  EXPECT_EQ(one["delivered_by"], "spiffe://fleet-0.muster/node/n");
  EXPECT_EQ(one["history"][0]["outcome"], "timed_out");
  EXPECT_EQ(one["history"][0]["error"], "timeout: nothing came");
  EXPECT_EQ(one["entries"][0]["path"], "plugins/p/results/n1/a.txt");
  EXPECT_EQ(one["entries"][0]["sha256"], one["sha256"]);
  EXPECT_EQ(manifest_["results"][1]["stored"], "unpacked");
  EXPECT_EQ(manifest_["results"][1]["entries"][0]["path"], "plugins/p/results/n2/x");
  EXPECT_EQ(manifest_["run"], "00112233aabbccdd");

  PieceSource archive(bytes_);
  const auto verified = VerifyArchive(archive);
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_EQ(verified->mistakes, 0) << verified->messages[0];
  EXPECT_EQ(verified->entries + 1, report_.entries);  // the manifest itself
}

TEST_F(ArchiveBuilderTest, GzipTarIsUnpackedAndParsed) {
  AddPlugin("e2e", true, "e2e");
  const std::string xml =
      "<testsuite name='s'><testcase name='[It] c'><failure/></testcase>"
      "</testsuite>";
  cursor_.Add("e2e", "global", "r.tar.gz",
              Gzip(MakeTar({{.name = "./", .type = '5'},
                            {.name = "./empty/", .type = '5'},
                            {.name = "./out/junit_01.xml", .content = xml},
                            {.name = "./run.sh", .content = "#!", .mode = 0755},
                            {.name = "./odd\x01name", .content = "o"}})),
              kGzipType);
  const Files files = BuildFiles();
  EXPECT_EQ(files.at("plugins/e2e/results/global/out/junit_01.xml"), xml);
  EXPECT_EQ(files.at("plugins/e2e/results/global/run.sh"), "#!");
  EXPECT_THAT(files, Contains(Key("plugins/e2e/results/global/empty/")));
  EXPECT_EQ(files.at("plugins/e2e/results/global/odd_name"), "o");
  const Json& entries = manifest_["results"][0]["entries"];
  ASSERT_THAT(entries, SizeIs(3));
  EXPECT_FALSE(entries[0].contains("original_name"));
  EXPECT_EQ(entries[2]["original_name"], "odd\x01name");
  const ResultItem tree = Tree(files, "e2e");
  EXPECT_EQ(tree.items[0].meta.at("file"), "results/global/out/junit_01.xml");
  EXPECT_THAT(report_.plugins.at("e2e").failed, ElementsAre(FailedLeaf{"", "c"}));
  EXPECT_EQ(report_.stored_as_is, 0);
}

TEST_F(ArchiveBuilderTest, TgzIsUnpackedWithTheMediaTypesOfItsEnding) {
  AddPlugin("p", false, "raw");
  const std::string tgz = Gzip(MakeTar({{.name = "a", .content = "1"}}));
  cursor_.Add("p", "n1", "r.tgz", tgz, "application/x-compressed-tar");
  cursor_.Add("p", "n2", "r.tgz", tgz, "application/x-gtar-compressed");
  const Files files = BuildFiles();
  EXPECT_EQ(files.at("plugins/p/results/n1/a"), "1");
  EXPECT_EQ(files.at("plugins/p/results/n2/a"), "1");
}

TEST_F(ArchiveBuilderTest, InvalidGzipTarIsStoredUnchanged) {
  AddPlugin("p", false, "raw");
  const std::string link = Gzip(MakeTar({{.name = "a", .type = '2', .link = "/etc"}}));
  const std::string climb = Gzip(MakeTar({{.name = "ok", .content = "1"}, {.name = "../up"}}));
  const std::string whole = Gzip(MakeTar({{.name = "a", .content = std::string(9000, 'x')}}));
  const std::string text = Gzip("text");  // has the time
  cursor_.Add("p", "n1", "a.tar.gz", "not gzip", kGzipType);
  cursor_.Add("p", "n2", "b.tar.gz", link, kGzipType);
  cursor_.Add("p", "n3", "c.tar.gz", climb, kGzipType);
  cursor_.Add("p", "n4", "d.tar.gz", whole.substr(0, 40), kGzipType);
  cursor_.Add("p", "n5", "e.tar.gz", text, kGzipType);
  cursor_.Add("p", "n6", "f.tar.gz", "", kGzipType);
  cursor_.Add("p", "n7", "g.tar.gz", whole, "application/gzip; charset=x");
  const Files files = BuildFiles();
  EXPECT_EQ(files.at("plugins/p/results/n1/a.tar.gz"), "not gzip");
  EXPECT_EQ(files.at("plugins/p/results/n2/b.tar.gz"), link);
  EXPECT_EQ(files.at("plugins/p/results/n3/c.tar.gz"), climb);
  EXPECT_EQ(files.at("plugins/p/results/n4/d.tar.gz"), whole.substr(0, 40));
  EXPECT_EQ(files.at("plugins/p/results/n5/e.tar.gz"), text);
  EXPECT_EQ(files.at("plugins/p/results/n6/f.tar.gz"), "");
  EXPECT_EQ(files.at("plugins/p/results/n7/g.tar.gz"), whole);
  EXPECT_THAT(files, Not(Contains(Key("plugins/p/results/n3/ok"))));
  EXPECT_EQ(report_.stored_as_is, 6);
  EXPECT_EQ(report_.damaged, 0);
  for (int i = 0; i < 6; ++i) {
    EXPECT_THAT(manifest_["results"][i]["notes"][0].get<std::string>(),
                HasSubstr("stored as received, not unpacked: "));
    EXPECT_EQ(manifest_["results"][i]["stored"], "file");
  }
  // A file that was not declared as a gzip tar needs no note.
  EXPECT_FALSE(manifest_["results"][6].contains("notes"));
  EXPECT_EQ(Tree(files, "p").status, kPassed);
}

TEST_F(ArchiveBuilderTest, OddFileNamesAreStoredSafely) {
  AddPlugin("p", false, "raw");
  const std::vector<std::pair<std::string, std::string>> names = {
      {"", "result"},
      {"..", "__"},
      {"../../etc/passwd", ".._.._etc_passwd"},
      {"a b \"q\" 'r'.txt", "a b \"q\" 'r'.txt"},
      {"größe.txt", "größe.txt"},
      {std::string("c\n\x1b[0m\x00", 7), "c__[0m_"},
      {"bad\xff", "bad_"},
      {std::string(296, 'x') + ".log", ""}};
  int n = 0;
  for (const auto& [name, stored] : names) {
    cursor_.Add("p", "n" + std::to_string(n++), name, name);
  }
  const Files files = BuildFiles();
  n = 0;
  for (const auto& [name, stored] : names) {
    const std::string folder = "plugins/p/results/n" + std::to_string(n) + "/";
    const std::string path = manifest_["results"][n]["entries"][0]["path"];
    if (!stored.empty()) {
      EXPECT_EQ(path, folder + stored);
    } else {
      EXPECT_EQ(path.size(), folder.size() + 255);
      EXPECT_TRUE(path.ends_with(".log"));
    }
    EXPECT_EQ(files.at(path), name);
    ++n;
  }
  PieceSource archive(bytes_);
  EXPECT_EQ(VerifyArchive(archive)->mistakes, 0);
  EXPECT_THAT(ListWithTar(bytes_), Contains("plugins/p/results/n4/größe.txt"));
}

TEST_F(ArchiveBuilderTest, ErrorsAndTimeOutsKeepPartialData) {
  AddPlugin("p", false, "junit");
  auto& failed = cursor_.AddError("p", "n1", ArchivedOutcome::kError, "exit status 3");
  failed.result.has_file = true;
  failed.result.file_name = "tail.txt";
  failed.result.size = 4;
  failed.bytes = "last";
  auto& late = cursor_.AddError("p", "n2", ArchivedOutcome::kTimedOut, "nothing came in 30 min");
  late.result.has_partial = true;
  late.result.file_name = "junit.xml";
  late.result.partial_size = 7;
  late.partial = "<testsu";
  cursor_.AddError("p", "n3", ArchivedOutcome::kTimedOut, "timeout of the run");
  const Files files = BuildFiles();
  EXPECT_EQ(files.at("plugins/p/errors/n1/output/tail.txt"), "last");
  EXPECT_EQ(files.at("plugins/p/errors/n2/partial/junit.xml"), "<testsu");
  const Json error = Json::parse(files.at("plugins/p/errors/n2/error.json"));
  EXPECT_EQ(error["error"], "timeout: nothing came in 30 min");
  EXPECT_EQ(error["partial-file"], "errors/n2/partial/junit.xml");
  EXPECT_EQ(Json::parse(files.at("plugins/p/errors/n3/error.json"))["error"], "timeout of the run");
  const Json& row = manifest_["results"][1];
  EXPECT_EQ(row["outcome"], "timed_out");
  EXPECT_EQ(row["entries"][1]["partial"], true);
  EXPECT_THAT(row["notes"][0].get<std::string>(), HasSubstr("partial: the first 7 bytes"));
  const ResultItem tree = Tree(files, "p");
  EXPECT_EQ(Summarize(tree).count(kFailed), 1);
  EXPECT_EQ(Summarize(tree).count(kTimeout), 2);
  EXPECT_EQ(tree.items[0].items[0].meta.at("file"), "errors/n1/error.json");
}

TEST_F(ArchiveBuilderTest, DamagedBytesAreMarked) {
  AddPlugin("p", false, "raw");
  cursor_.Add("p", "n1", "a", "12345").bytes = "12x45";
  auto& cut = cursor_.Add("p", "n2", "b", std::string(3000, 'b'));
  cut.bytes.resize(1000);
  cut.end = absl::DataLossError("bad block");
  cursor_.Add("p", "n3", "c", "12345").bytes = "1234567";
  cursor_.Add("p", "n4", "d", "12345").open = absl::NotFoundError("no such blob");
  auto& tar = cursor_.Add("p", "n5", "e", Gzip(MakeTar({{.name = "x"}})), kGzipType);
  tar.result.sha256 = std::string(64, '0');
  const Files files = BuildFiles();
  EXPECT_EQ(report_.damaged, 5);
  EXPECT_EQ(files.at("plugins/p/results/n2/b"), std::string(1000, 'b') + std::string(2000, '\0'));
  EXPECT_EQ(files.at("plugins/p/results/n3/c"), "12345");
  EXPECT_THAT(files.at("plugins/p/errors/n4/error.json"), HasSubstr("no such blob"));
  EXPECT_THAT(files, Contains(Key("plugins/p/results/n5/e")));
  for (const Json& row : manifest_["results"]) EXPECT_THAT(row["notes"], Not(IsEmpty()));
  EXPECT_EQ(manifest_["results"][0]["entries"][0]["damaged"], true);
  const ResultItem tree = Tree(files, "p");
  EXPECT_EQ(Summarize(tree).count(kUnknown), 4);
  EXPECT_EQ(Summarize(tree).count(kPassed), 0);
  PieceSource archive(bytes_);
  EXPECT_EQ(VerifyArchive(archive)->mistakes, 0);
}

TEST_F(ArchiveBuilderTest, TemporaryErrorEndsTheBuild) {
  AddPlugin("p", false, "raw");
  cursor_.Add("p", "n1", "a", "12345").end = absl::UnavailableError("disk away");
  cursor_.Add("p", "n2", "a", "12345");
  StringSink sink;
  const auto report = Build(sink);
  EXPECT_TRUE(report.ok());  // the error comes after the end
  FakeCursor broken;
  auto& row = broken.Add("p", "n1", "a", std::string(5000, 'x'));
  row.bytes.resize(100);
  row.end = absl::UnavailableError("disk away");
  cursor_ = std::move(broken);
  EXPECT_EQ(Build(sink).status(), absl::UnavailableError("archive p/n1: disk away"));
}

TEST_F(ArchiveBuilderTest, FullSinkEndsTheBuild) {
  AddPlugin("p", false, "raw");
  std::string noise(1 << 20, '\0');
  unsigned x = 1;
  for (char& c : noise) c = static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
  cursor_.Add("p", "n1", "a", noise);
  StringSink sink;
  sink.limit = 100'000;
  EXPECT_TRUE(absl::IsResourceExhausted(Build(sink).status()));
}

TEST_F(ArchiveBuilderTest, RowsOutOfOrderAreRefused) {
  AddPlugin("p", false, "raw");
  AddPlugin("q", false, "raw");
  const auto build = [this](std::vector<std::pair<std::string, std::string>> keys) {
    FakeCursor cursor;
    for (auto& [plugin, node] : keys) cursor.Add(plugin, node, "f", "");
    cursor_ = std::move(cursor);
    NullSink sink;
    return Build(sink).status();
  };
  EXPECT_TRUE(build({{"p", "a"}, {"p", "b"}, {"q", "a"}}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(build({{"p", "a"}, {"p", "a"}})));
  EXPECT_TRUE(absl::IsInvalidArgument(build({{"p", "b"}, {"p", "a"}})));
  EXPECT_TRUE(absl::IsInvalidArgument(build({{"q", "a"}, {"p", "a"}})));
  EXPECT_TRUE(absl::IsInvalidArgument(build({{"p", "a"}, {"r", "a"}})));
  EXPECT_TRUE(absl::IsInvalidArgument(build({{"p", "../a"}})));
  AddPlugin("q", false, "raw");
  EXPECT_TRUE(absl::IsInvalidArgument(build({{"p", "a"}})));
  run_.plugins.back().name = "a/b";
  EXPECT_TRUE(absl::IsInvalidArgument(build({{"p", "a"}})));
}

TEST_F(ArchiveBuilderTest, EqualRunsGiveEqualBytes) {
  AddPlugin("p", false, "raw");
  const auto build = [this] {
    cursor_ = FakeCursor();
    cursor_.Add("p", "n1", "größe.txt", "a");
    BuildFiles();
    return bytes_;
  };
  EXPECT_EQ(build(), build());
}

TEST_F(ArchiveBuilderTest, PluginWithoutResultsHasATree) {
  AddPlugin("p", true, "raw");
  EXPECT_EQ(Tree(BuildFiles(), "p").status, kUnknown);
  EXPECT_EQ(report_.plugins.at("p").status, kUnknown);
  EXPECT_THAT(manifest_["results"], IsEmpty());
}

}  // namespace
}  // namespace muster
