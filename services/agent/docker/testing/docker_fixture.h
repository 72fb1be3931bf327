// A real Docker daemon for tests.
#ifndef MUSTER_SERVICES_AGENT_DOCKER_TESTING_DOCKER_FIXTURE_H_
#define MUSTER_SERVICES_AGENT_DOCKER_TESTING_DOCKER_FIXTURE_H_

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "services/common/base/subprocess.h"

namespace muster::testing {

// A dockerd with its own folder, containers and images, without a network. Requires root and the
// packages docker.io and busybox-static: where they are missing, the test fails.
class TestDocker {
 public:
  TestDocker();
  ~TestDocker();

  const std::string& socket() const { return socket_; }
  // Returns the id of an image with busybox, and with a volume at /data.
  const std::string& image() const { return image_; }
  // Makes an image with a command, which is a list in JSON, and with a volume. Returns its id.
  std::string MakeImage(const std::string& command, const std::string& volume = "/data");

  // Kills the daemon; its containers run on if they were started with live-restore.
  void Kill();
  // Starts it again.
  void Start();

 private:
  std::string folder_;
  std::string socket_;
  std::string image_;
  std::unique_ptr<Subprocess> daemon_;
};

// Shares one daemon between the tests of a program.
class DockerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { docker_ = new TestDocker(); }
  static void TearDownTestSuite() {
    delete docker_;
    docker_ = nullptr;
  }
  static TestDocker* docker_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_AGENT_DOCKER_TESTING_DOCKER_FIXTURE_H_
