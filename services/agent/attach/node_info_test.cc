#include "services/agent/attach/node_info.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "services/common/base/fake_clock.h"
#include "services/common/base/mutex.h"
#include "services/common/base/secret_file.h"
#include "services/common/rpc/proto_time.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

// Answers GET /version at a Unix socket.
class VersionServer {
 public:
  explicit VersionServer(const std::string& socket) {
    server_.Get("/version", [this](const httplib::Request&, httplib::Response& response) {
      MutexLock lock(mutex_);
      response.set_content(answer_, "application/json");
    });
    server_.set_address_family(AF_UNIX);
    EXPECT_TRUE(server_.bind_to_port(socket, 80));
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~VersionServer() { server_.stop(); }

  void Answer(std::string answer) {
    MutexLock lock(mutex_);
    answer_ = std::move(answer);
  }

 private:
  httplib::Server server_;
  Mutex mutex_;
  std::string answer_ ABSL_GUARDED_BY(mutex_) = R"({"Version":"20.10.24"})";
  std::jthread thread_;
};

class NodeInfoTest : public ::testing::Test {
 protected:
  ~NodeInfoTest() override { std::filesystem::remove_all(folder_); }

  NodeInfoWatch::Options Options() {
    return {.folder = folder_,
            .docker_socket = socket_,
            .changed = [this] { ++changes_; },
            .interval = absl::Milliseconds(1)};
  }
  static v1::NodeInfo::Adapter DockerOf(const NodeInfoWatch& watch) {
    const auto info = watch.Get();
    return info ? info->adapters(0) : v1::NodeInfo::Adapter();
  }

  // The path of a socket has at most 107 bytes.
  static std::string ShortFolder() {
    char name[] = "/tmp/muster-info-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    return name;
  }

  const std::string folder_ = ShortFolder();
  const std::string socket_ = folder_ + "/docker.sock";
  FakeClock clock_;
  std::atomic<int> changes_ = 0;
};

TEST_F(NodeInfoTest, InfoHasAdaptersDiskAndTime) {
  const VersionServer docker(socket_);
  const NodeInfoWatch watch(Options(), clock_);
  ASSERT_TRUE(testing::Await([&] { return watch.Get().has_value(); }));
  const v1::NodeInfo info = *watch.Get();
  ASSERT_EQ(info.adapters_size(), 2);
  EXPECT_EQ(info.adapters(0).name(), "docker");
  EXPECT_EQ(info.adapters(0).version(), "20.10.24");
  EXPECT_EQ(info.adapters(0).problem(), "");
  EXPECT_EQ(info.adapters(1).name(), "process");
  EXPECT_GT(info.free_bytes(), 0);
  EXPECT_GE(info.total_bytes(), info.free_bytes());
  EXPECT_FALSE(info.version().empty());
  EXPECT_EQ(FromProto(info.time()), clock_.Now());
  EXPECT_LE(info.ByteSizeLong(), 1024U);
}

TEST_F(NodeInfoTest, TimeOfAVersionIsKeptByLaterProcesses) {
  VersionServer docker(socket_);
  const absl::Time first = clock_.Now();
  {
    const NodeInfoWatch watch(Options(), clock_);
    ASSERT_TRUE(testing::Await([&] { return changes_ == 1; }));
    EXPECT_EQ(FromProto(DockerOf(watch).version_time()), first);
    clock_.Advance(absl::Hours(1));
    docker.Answer(R"({"Version":"27.1.0"})");
    ASSERT_TRUE(testing::Await([&] { return DockerOf(watch).version() == "27.1.0"; }));
    EXPECT_EQ(FromProto(DockerOf(watch).version_time()), first + absl::Hours(1));
  }
  clock_.Advance(absl::Hours(1));
  const NodeInfoWatch watch(Options(), clock_);
  ASSERT_TRUE(testing::Await([&] { return watch.Get().has_value(); }));
  EXPECT_EQ(FromProto(DockerOf(watch).version_time()), first + absl::Hours(1));
}

TEST_F(NodeInfoTest, DaemonThatDoesNotAnswerKeepsItsVersion) {
  {
    const VersionServer docker(socket_);
    const NodeInfoWatch watch(Options(), clock_);
    ASSERT_TRUE(testing::Await([&] { return watch.Get().has_value(); }));
  }
  std::filesystem::remove(socket_);
  const NodeInfoWatch watch(Options(), clock_);
  ASSERT_TRUE(testing::Await([&] { return watch.Get().has_value(); }));
  EXPECT_EQ(DockerOf(watch).version(), "20.10.24");
  EXPECT_NE(DockerOf(watch).problem(), "");
}

TEST_F(NodeInfoTest, UnusualAnswersAndFilesAreNoVersion) {
  VersionServer docker(socket_);
  docker.Answer(R"({"Version":7})");
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/docker-version", R"({"version":[],"time":1})").ok());
  const NodeInfoWatch watch(Options(), clock_);
  ASSERT_TRUE(testing::Await([&] { return watch.Get().has_value(); }));
  EXPECT_EQ(DockerOf(watch).version(), "");
  EXPECT_NE(DockerOf(watch).problem(), "");
  docker.Answer("{\"Version\":\"" + std::string(500, 'x') + "\"}");
  ASSERT_TRUE(testing::Await([&] { return DockerOf(watch).version().size() == 200; }));
  EXPECT_LE(watch.Get()->ByteSizeLong(), 1024U);
}

}  // namespace
}  // namespace muster
