#include "services/aggregator/archive/archive_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "services/aggregator/archive/results_yaml.h"
#include "services/aggregator/archive/test_support.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
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
    auto spool = PosixFileOps().CreateUnnamed(::testing::TempDir());
    if (!spool.ok()) return spool.status();
    return BuildArchive(run_, cursor_, *std::move(spool), sink, options_);
  }

  // Builds, and reads all of it back.
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

TEST_F(ArchiveBuilderTest, HasTheLayoutThatOldToolsLookFor) {
  AddPlugin("facts", false, "raw");
  AddPlugin("e2e", true, "junit");
  cursor_.Add("e2e", "global", "junit.xml",
              "<testsuite name='s'><testcase name='one'/><testcase name='two'>"
              "<failure>no</failure></testcase></testsuite>",
              "text/xml");
  cursor_.Add("facts", "n1", "facts.json", "{}", "application/json");
  cursor_.AddError("facts", "n2", ArchivedOutcome::kError, "Ansible is not installed");
  const std::string log = "{\"msg\":\"run created\"}\n";
  StringSource log_source(log);
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

}  // namespace
}  // namespace muster
