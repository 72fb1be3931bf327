#include "services/client/config_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "services/client/test_peer.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"

namespace muster::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

absl::Status ReadJson(Config& config, const std::string& json) {
  return ReadConfigJson(json, "node.json", ClientFields(config), AgentOnlyFields());
}

absl::Status ReadEnvironment(Config& config, const std::map<std::string, std::string>& variables) {
  std::set<std::string> set;
  const auto fields = ClientFields(config);
  auto status = ReadConfigEnvironment(
      [&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      fields, &set);
  return status.ok() ? CompleteConfig(config, set) : status;
}

TEST(ConfigFieldsTest, EveryKindOfValueIsParsed) {
  Config config;
  ASSERT_TRUE(ReadJson(config, R"({"grpc_targets": ["a:1", "b:2"], "plugin": "p",
      "done_file_delay": "1m30s", "deadline": "2026-11-21T14:00:00Z", "max_result_bytes": 7,
      "mode": "exec"})")
                  .ok());
  EXPECT_THAT(config.grpc_targets, ElementsAre("a:1", "b:2"));
  EXPECT_EQ(config.done_file_delay, std::chrono::seconds(90));
  EXPECT_TRUE(config.deadline.has_value());
  EXPECT_EQ(config.max_result_bytes, 7);
}

TEST(ConfigFieldsTest, ErrorNamesFileFieldAndFault) {
  Config config;
  EXPECT_THAT(Message(ReadJson(config, R"({"plugni": "p"})")),
              testing::AllOf(HasSubstr("node.json"), HasSubstr("plugni"), HasSubstr("plugin")));
  EXPECT_THAT(Message(ReadJson(config, R"({"grpc_targets": "a:1"})")), HasSubstr("list"));
  EXPECT_THAT(Message(ReadJson(config, R"({"done_file_delay": 5})")), HasSubstr("duration"));
  EXPECT_THAT(Message(ReadJson(config, R"({"max_result_bytes": -1})")), HasSubstr("above 0"));
  EXPECT_THAT(Message(ReadJson(config, R"({"deadline": "soon"})")), HasSubstr("time"));
  EXPECT_THAT(Message(ReadJson(config, "[]")), HasSubstr("object"));
  EXPECT_THAT(Message(ReadJson(config, "{")), HasSubstr("JSON"));
  EXPECT_EQ(ReasonOf(ReadJson(config, "{")), "INVALID_CONFIG");
}

TEST(ConfigFieldsTest, EnvironmentPrecedesTheFile) {
  Config config;
  ASSERT_TRUE(ReadJson(config, R"({"plugin": "file", "results_dir": "/file"})").ok());
  ASSERT_TRUE(ReadEnvironment(config, {{"RESULT_TYPE", "environment"},
                                       {"MASTER_URL", "https://old:1"},
                                       {"RESULTS_DIR", "/old"},
                                       {"SONOBUOY_RESULTS_DIR", "/new"},
                                       {"SONOBUOY_DONE_FILE_DELAY", "250ms"}})
                  .ok());
  EXPECT_EQ(config.plugin, "environment");
  EXPECT_EQ(config.aggregator_url, "https://old:1");
  EXPECT_EQ(config.results_dir, "/new");
  EXPECT_EQ(config.done_file_delay, std::chrono::milliseconds(250));
  EXPECT_EQ(config.node, "global") << "nobody said otherwise";
  ASSERT_TRUE(ReadEnvironment(config, {{"AGGREGATOR_URL", "https://new:1"},
                                       {"MASTER_URL", "https://old:1"},
                                       {"NODE_NAME", "n7"}})
                  .ok());
  EXPECT_EQ(config.aggregator_url, "https://new:1");
  EXPECT_EQ(config.node, "n7");
  EXPECT_THAT(Message(ReadEnvironment(config, {{"SONOBUOY_DONE_FILE_DELAY", "five"}})),
              HasSubstr("SONOBUOY_DONE_FILE_DELAY"));
}

TEST(ConfigFieldsTest, MissingNamesComeFromTheCertificate) {
  const TestFleet fleet = TestFleet::Make();
  Config config;
  config.client_cert = fleet.RunCredential("n1").first;
  ASSERT_TRUE(ReadEnvironment(config, {}).ok());
  EXPECT_EQ(config.run, fleet.run);
  EXPECT_EQ(config.node, "n1");

  // The environment of a sidecar names the machine even if its plugin runs once.
  Config once;
  once.client_cert = fleet.RunCredential("global").first;
  ASSERT_TRUE(ReadEnvironment(once, {{"NODE_NAME", "machine-3"}}).ok());
  EXPECT_EQ(once.node, "global");
}

TEST(ConfigFieldsTest, KeyFileReadableByOthersIsRefused) {
  const std::string path = ::testing::TempDir() + "/exposed.key";
  ASSERT_TRUE(WriteFileAtomically(path, "key", 0644).ok());
  Config config;
  config.client_key_file = path;
  EXPECT_THAT(Message(ReadEnvironment(config, {})), HasSubstr("client_key_file"));
  ASSERT_TRUE(WriteFileAtomically(path, "key", 0600).ok());
  ASSERT_TRUE(ReadEnvironment(config, {}).ok());
  EXPECT_EQ(config.client_key, "key");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace muster::client
