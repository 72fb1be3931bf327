#include "services/agent/agent_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "services/agent/outcome.h"
#include "services/client/client.h"
#include "services/common/base/secret_file.h"

namespace muster {
namespace {

std::string Doc(const std::string& name) {
  return ReadFileBounded("docs/" + name, 1 << 20).value();
}

TEST(AgentConfigTest, PublishedSchemaMatchesTheCode) {
  EXPECT_EQ(Doc("agent-config.schema.json"), AgentConfigSchema())
      << "write it again: bazel run //services/agent:print_schema > docs/agent-config.schema.json";
}

TEST(AgentConfigTest, PageDescribesEveryFieldAndVariable) {
  const std::string page = Doc("agent.md");
  AgentConfig config;
  for (const client::ConfigField& field : AgentFields(config)) {
    std::string row = "| `" + field.name + "` |";
    for (size_t i = 0; i < field.environment.size(); ++i) {
      row += std::string(i > 0 ? "," : "") + " `" + field.environment[i] + "`";
    }
    EXPECT_NE(page.find("\n" + row + " | "), std::string::npos) << row;
  }
}

TEST(AgentConfigTest, PageListsEveryExitCode) {
  const std::string page = Doc("agent.md");
  for (const int code : {0, 1, 2, 10, 11, 12, 13, 14, 15}) {
    EXPECT_NE(page.find("\n| " + std::to_string(code) + " | "), std::string::npos) << code;
  }
}

TEST(AgentConfigTest, ClientIgnoresExactlyTheFieldsOfTheAgent) {
  AgentConfig config;
  const auto all = AgentFields(config);
  const auto clients = client::ClientFields(config.client);
  std::vector<std::string> own;
  for (const auto& field : all) {
    if (std::ranges::none_of(clients, [&](const auto& c) { return c.name == field.name; })) {
      own.push_back(field.name);
    }
  }
  const auto listed = client::AgentOnlyFields();
  EXPECT_THAT(own, testing::UnorderedElementsAreArray(listed.begin(), listed.end()));
}

TEST(AgentConfigTest, StateFolderFollowsTheEnvironment) {
  const auto with = [](const char* name, const char* value) {
    return [name, value](const char* asked) {
      return std::string_view(asked) == name ? value : nullptr;
    };
  };
  EXPECT_EQ(DefaultStateDir(with("MUSTER_HOME", "/m")), "/m/agent");
}

TEST(AgentConfigTest, SubjectOfErrorsNamesTheVariablesThatOverrideTheFile) {
  const auto set = [](const char* asked) {
    const std::string_view name(asked);
    return name == "NODE_NAME" || name == "CLIENT_CERT" ? "x" : name == "CA_CERT" ? "" : nullptr;
  };
  const auto unset = [](const char*) -> const char* { return nullptr; };
  EXPECT_EQ(ConfigSubject("n.json", unset), "configuration n.json");
  EXPECT_EQ(ConfigSubject("n.json", set),
            "configuration n.json, overridden by the variables NODE_NAME, CLIENT_CERT");
  EXPECT_EQ(ConfigSubject("", set),
            "the environment (NODE_NAME, CLIENT_CERT); --config names no file");
  EXPECT_EQ(ConfigSubject("", unset), "the environment; --config names no file");
}

// The command of a plugin runs in another folder.
TEST(AgentConfigTest, RelativeFoldersBecomeAbsolute) {
  const auto with = [](const char* name, const char* value) {
    return [name, value](const char* asked) {
      return std::string_view(asked) == name ? value : nullptr;
    };
  };
  const std::filesystem::path here = std::filesystem::current_path();
  EXPECT_EQ(NodeFolderPath("", with("MUSTER_HOME", "../m")), here.parent_path() / "m/node");
  EXPECT_EQ(NodeFolderPath("n4", with("MUSTER_HOME", "../m")), here / "n4");
  const auto config = LoadAgentConfig("", with("MUSTER_STATE_DIR", "./state"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->client.state_dir, here / "state");
}

TEST(AgentConfigTest, SocketOfDockerIsAPathOrAUnixAddress) {
  const auto none = [](const char*) -> const char* { return nullptr; };
  const auto set = [](const char*) { return "unix:///run/d.sock"; };
  EXPECT_EQ(DockerSocketPath("", none), "/var/run/docker.sock");
  EXPECT_EQ(DockerSocketPath("", set), "/run/d.sock");
  EXPECT_EQ(DockerSocketPath("/a.sock", set), "/a.sock");
  EXPECT_EQ(DockerSocketPath("unix:///a.sock", none), "/a.sock");
}

}  // namespace
}  // namespace muster
