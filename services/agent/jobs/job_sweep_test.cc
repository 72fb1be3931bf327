// A real Docker daemon, and a runner of jobs.
#include <string>

#include "gtest/gtest.h"
#include "services/agent/docker/testing/docker_fixture.h"
#include "services/agent/jobs/command_container.h"
#include "services/agent/jobs/testing/job_runner_fixture.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

class JobSweepTest : public JobRunnerFixture {
 protected:
  std::string Create(const std::string& name, const std::string& folder) {
    ContainerSpec spec;
    spec.name = name;
    spec.image = docker_.image();
    spec.labels = {{"muster", "test"},
                   {std::string(kContainerFolderLabel), folder},
                   {std::string(kContainerJobLabel), std::string(32, 'b')}};
    return engine_.CreateContainer(spec).value_or("");
  }

  testing::TestDocker docker_;
  DockerEngine engine_{docker_.socket()};
};

// A job left it when Docker did not answer.
TEST_F(JobSweepTest, ContainerWithoutAJobIsRemoved) {
  const std::string left = Create("left", folder_);
  const std::string foreign = Create("foreign", folder_ + "-of-another-agent");
  ASSERT_TRUE(engine_.InspectContainer(left).ok());
  End();
  docker_socket_ = docker_.socket();
  first_sweep_ = absl::ZeroDuration();
  Begin();
  EXPECT_TRUE(
      testing::Await([&] { return absl::IsNotFound(engine_.InspectContainer(left).status()); }));
  EXPECT_TRUE(engine_.InspectContainer(foreign).ok());
}

}  // namespace
}  // namespace muster
