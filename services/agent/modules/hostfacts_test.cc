#include "services/agent/modules/hostfacts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "services/common/base/error.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// agent_test gathers real facts; these tests cover the errors.
class HostfactsTest : public ::testing::Test {
 protected:
  HostfactsTest() : base_(::testing::TempDir() + "/hostfacts_test"), path_(std::getenv("PATH")) {
    fs::remove_all(base_);
    for (const char* folder : {"bin", "results", "scratch"})
      fs::create_directories(base_ + "/" + folder);
    context_.results_dir = base_ + "/results";
    context_.scratch_dir = base_ + "/scratch";
    context_.time_limit = absl::Seconds(30);
  }
  ~HostfactsTest() override {
    ::setenv("PATH", path_.c_str(), 1);
    fs::remove_all(base_);
  }

  absl::Status Gather(const std::string& shell) {
    std::ofstream(base_ + "/bin/ansible") << "#!/bin/sh\n" << shell << "\n";
    ::chmod((base_ + "/bin/ansible").c_str(), 0700);
    ::setenv("PATH", (base_ + "/bin:" + path_).c_str(), 1);
    return MakeHostfactsModule()->Run(context_, {}).status();
  }

  const std::string base_;
  const std::string path_;
  ModuleContext context_;
};

TEST_F(HostfactsTest, MissingAnsibleFailsWithInstallAdvice) {
  ::setenv("PATH", (base_ + "/results").c_str(), 1);
  const auto status = MakeHostfactsModule()->Run(context_, {}).status();
  EXPECT_EQ(ReasonOf(status), "TOOL_NOT_FOUND");
  EXPECT_THAT(NextStepOf(status), testing::HasSubstr("apt-get install ansible-core"));
}

TEST_F(HostfactsTest, ErrorContainsTheOutputOfAnsible) {
  const auto status = Gather("echo 'localhost | FAILED! => {\"msg\": \"no python\"}'; exit 2");
  EXPECT_EQ(ReasonOf(status), "PLUGIN_FAILED");
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("no python"));
}

TEST_F(HostfactsTest, OutputWithoutFactsFails) {
  EXPECT_EQ(ReasonOf(Gather("echo nothing")), "PLUGIN_FAILED");
}

TEST_F(HostfactsTest, HangingAnsibleIsStopped) {
  context_.time_limit = absl::Milliseconds(300);
  EXPECT_EQ(ReasonOf(Gather("exec sleep 1000")), "PLUGIN_TIMED_OUT");
}

}  // namespace
}  // namespace muster
