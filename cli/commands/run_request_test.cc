#include "cli/commands/run_request.h"

#include <gtest/gtest.h>

#include <fstream>

#include "cli/exit_code.h"
#include "services/common/base/error.h"

namespace muster::cli {
namespace {

TEST(RunRequestTest, RequestHasTheDefinitionsAfterTheNamesOfPlugins) {
  const std::string file = ::testing::TempDir() + "/p.yaml";
  std::ofstream(file) << "definition";
  RunArguments arguments;
  arguments.plugins = {"hostfacts"};
  arguments.files = {file};
  arguments.nodes = {"n1"};
  arguments.timeout = "90s";
  arguments.start_grace = "0";
  const auto request = MakeRunRequest(arguments);
  ASSERT_TRUE(request.ok()) << request.status();
  ASSERT_EQ(request->plugins_size(), 2);
  EXPECT_EQ(request->plugins(1), "definition");
  EXPECT_EQ(request->nodes(0), "n1");
  EXPECT_EQ(request->timeout().seconds(), 90);
  EXPECT_TRUE(request->has_start_grace());
  EXPECT_FALSE(request->has_lost_after());
  EXPECT_NE(request->request_id(), MakeRunRequest(arguments)->request_id());
}

TEST(RunRequestTest, MistakesInTheArgumentsAreUsageErrors) {
  EXPECT_EQ(ExitCodeOf(MakeRunRequest({}).status()), kExitUsage);
  EXPECT_EQ(ExitCodeOf(MakeRunRequest({.plugins = {"p", "p"}}).status()), kExitUsage);
  EXPECT_EQ(ExitCodeOf(MakeRunRequest({.plugins = {"p"}, .timeout = "soon"}).status()), kExitUsage);
}

TEST(RunRequestTest, ErrorOfTheServiceNamesTheFileOfItsDefinition) {
  const RunArguments arguments = {.plugins = {"hostfacts"}, .files = {"a.yaml", "b.yaml"}};
  const absl::Status status = MakeError(absl::StatusCode::kInvalidArgument, "INVALID_PLUGIN",
                                        "plugins[2]:3: spec: is missing", "");
  EXPECT_EQ(WithFileNames(status, arguments).message(), "b.yaml:3: spec: is missing");
  const absl::Status other =
      MakeError(absl::StatusCode::kInvalidArgument, "INVALID_NAME", "plugins[2]", "");
  EXPECT_EQ(WithFileNames(other, arguments).message(), "plugins[2]");
}

}  // namespace
}  // namespace muster::cli
