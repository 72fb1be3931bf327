// A real Docker daemon.
#include "services/agent/docker/docker_engine.h"

#include <signal.h>

#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/agent/docker/testing/docker_fixture.h"
#include "services/agent/docker/testing/test_registry.h"
#include "services/common/base/error.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

class DockerEngineTest : public testing::DockerTest {
 protected:
  ContainerSpec Shell(const std::string& script) {
    ContainerSpec spec;
    spec.name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    spec.image = docker_->image();
    spec.command = {"/bin/sh", "-c", script};
    spec.labels = {{"muster", "test"}, {"name", spec.name}};
    return spec;
  }

  ContainerState Run(const ContainerSpec& spec) {
    const auto id = engine_.CreateContainer(spec);
    EXPECT_TRUE(id.ok()) << id.status();
    if (!id.ok()) return {};
    const absl::Status started = engine_.StartContainer(*id);
    EXPECT_TRUE(started.ok()) << started;
    return started.ok() ? Ended(*id) : ContainerState();
  }

  ContainerState Ended(const std::string& id) {
    ContainerState state;
    EXPECT_TRUE(testing::Await([&] {
      auto found = engine_.InspectContainer(id);
      if (found.ok()) state = *std::move(found);
      return state.ended();
    }));
    return state;
  }

  static std::string ImageAt(const testing::SilentRegistry& registry) {
    return registry.address() + "/none@sha256:" + std::string(64, '1');
  }

  DockerEngine engine_{docker_->socket()};
};

TEST_F(DockerEngineTest, InfoNamesTheDaemon) {
  const auto info = engine_.GetInfo();
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_NE(info->version, "");
  EXPECT_EQ(info->storage_driver, "overlay2");
  EXPECT_TRUE(info->live_restore);
  EXPECT_THAT(info->cgroup_version, ::testing::AnyOf("1", "2"));
}

TEST_F(DockerEngineTest, ImageIsFoundByItsId) {
  const auto image = engine_.FindImage(docker_->image());
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->id, docker_->image());
  EXPECT_THAT(image->volumes, ::testing::ElementsAre("/data"));
  EXPECT_EQ(ReasonOf(engine_.FindImage("registry.example/none:1").status()), "IMAGE_NOT_FOUND");
}

TEST_F(DockerEngineTest, ContainerHasNoMoreRightsThanItNeeds) {
  ContainerSpec spec = Shell(
      "set -e; grep -q 'CapEff:.0000000000000000' /proc/self/status; grep -q 'NoNewPrivs:.1' "
      "/proc/self/status; ! touch /file 2>/dev/null; touch /tmp/file; ! touch /in/file "
      "2>/dev/null; "
      "cat /in/hostname >/dev/null; [ \"$GREETING\" = \"a 'b' \xc3\xa9\" ]; [ \"$(id -u)\" = 65532 "
      "]; "
      "[ \"$(ls /sys/class/net)\" = lo ]; exit 7");
  spec.environment = {"GREETING=a 'b' \xc3\xa9"};
  spec.user = "65532:65532";
  spec.mounts = {{"/etc", "/in"}};
  const ContainerState state = Run(spec);
  EXPECT_EQ(state.exit_code, 7);
  EXPECT_EQ(state.error, "");
  EXPECT_EQ(state.labels.at("name"), spec.name);
}

TEST_F(DockerEngineTest, SecondContainerOfTheNameIsRefused) {
  const ContainerSpec spec = Shell("true");
  ASSERT_TRUE(engine_.CreateContainer(spec).ok());
  EXPECT_EQ(ReasonOf(engine_.CreateContainer(spec).status()), "CONTAINER_EXISTS");
  const auto state = engine_.InspectContainer(spec.name);
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->status, "created");
  EXPECT_FALSE(state->ended());
  const auto listed = engine_.ListContainers("name", spec.name);
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ(listed->front().id, state->id);
  EXPECT_TRUE(engine_.RemoveContainer(spec.name).ok());
  EXPECT_TRUE(engine_.RemoveContainer(spec.name).ok()) << "it is gone";
  EXPECT_EQ(ReasonOf(engine_.InspectContainer(spec.name).status()), "CONTAINER_NOT_FOUND");
}

TEST_F(DockerEngineTest, MissingUserImageAndMountAreRefused) {
  ContainerSpec spec = Shell("true");
  spec.user = "nobody-of-this-image";
  const auto id = engine_.CreateContainer(spec);
  ASSERT_TRUE(id.ok()) << id.status();
  const absl::Status started = engine_.StartContainer(*id);
  EXPECT_EQ(ReasonOf(started), "CONTAINER_NOT_STARTED");
  EXPECT_THAT(std::string(started.message()), HasSubstr(spec.user));
  spec.name += "2";
  spec.user = "";
  spec.image = "sha256:" + std::string(64, '0');
  EXPECT_EQ(ReasonOf(engine_.CreateContainer(spec).status()), "IMAGE_NOT_FOUND");
  spec.image = docker_->image();
  spec.mounts = {{"/none", "/in"}};
  const absl::Status refused = engine_.CreateContainer(spec).status();
  EXPECT_EQ(ReasonOf(refused), "DOCKER_FAILED");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("/none"));
}

// The init process of the container reports it, as a shell does.
TEST_F(DockerEngineTest, MissingProgramIsExitCode127) {
  ContainerSpec spec = Shell("");
  spec.command = {"/bin/none"};
  EXPECT_EQ(Run(spec).exit_code, 127);
}

TEST_F(DockerEngineTest, LimitsOfMemoryAndProcessesAreEnforced) {
  ContainerSpec spec = Shell("x=y; while :; do x=$x$x; done");
  spec.memory = int64_t{16} << 20;
  ContainerState state = Run(spec);
  EXPECT_TRUE(state.out_of_memory);
  EXPECT_EQ(state.exit_code, 137);
  spec = Shell("for i in 1 2 3 4 5 6 7 8 9; do sleep 5 & done 2>/dev/null; exit 0");
  spec.name += "2";
  spec.processes = 4;
  state = Run(spec);
  EXPECT_FALSE(state.out_of_memory);
  EXPECT_NE(state.exit_code, 0);
}

TEST_F(DockerEngineTest, SignalReachesTheCommand) {
  const auto id = engine_.CreateContainer(Shell("trap 'exit 5' TERM; while :; do sleep 0.1; done"));
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_TRUE(engine_.SignalContainer(*id, SIGTERM).ok()) << "it does not run";
  ASSERT_TRUE(engine_.StartContainer(*id).ok());
  EXPECT_TRUE(engine_.StartContainer(*id).ok()) << "it runs";
  ASSERT_TRUE(testing::Await([&] {  // until the shell has set its trap
    EXPECT_TRUE(engine_.SignalContainer(*id, SIGTERM).ok());
    return engine_.InspectContainer(*id)->ended();
  }));
  const ContainerState state = Ended(*id);
  EXPECT_THAT(state.exit_code, ::testing::AnyOf(5, 143));
  EXPECT_EQ(ReasonOf(engine_.SignalContainer("none", SIGTERM)), "CONTAINER_NOT_FOUND");
}

// The next daemon can pull the image.
TEST_F(DockerEngineTest, PullIsInterruptedByTheEndOfTheDaemon) {
  const testing::SilentRegistry registry;
  std::thread kill([&] {
    registry.AwaitConnection();
    docker_->Kill();
  });
  const absl::Status status = engine_.PullImage(ImageAt(registry), absl::Minutes(1), {});
  kill.join();
  docker_->Start();
  EXPECT_EQ(ReasonOf(status), "DOCKER_UNREACHABLE") << status;
}

TEST_F(DockerEngineTest, PullFromASilentRegistryFails) {
  const testing::SilentRegistry registry;
  EXPECT_EQ(ReasonOf(engine_.PullImage(ImageAt(registry), absl::Seconds(1), {})),
            "IMAGE_PULL_FAILED");
  EXPECT_EQ(ReasonOf(engine_.PullImage(ImageAt(registry), absl::Minutes(1), [] { return true; })),
            "IMAGE_PULL_FAILED");
}

TEST_F(DockerEngineTest, MissingDaemonIsUnreachable) {
  DockerEngine none("/tmp/none.sock");
  const absl::Status status = none.GetInfo().status();
  EXPECT_EQ(ReasonOf(status), "DOCKER_UNREACHABLE");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/tmp/none.sock"));
}

}  // namespace
}  // namespace muster
