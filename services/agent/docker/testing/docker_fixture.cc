#include "services/agent/docker/testing/docker_fixture.h"

#include <signal.h>
#include <sys/mount.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "services/agent/docker/docker_engine.h"
#include "testing/fixtures/await.h"

namespace muster::testing {
namespace {

// Makes an image of busybox with a command and a volume, and prints its id.
constexpr char kMakeImage[] = R"(set -eu
mkdir -p "$1/image/bin" "$1/image/tmp" "$1/image/etc"
chmod 1777 "$1/image/tmp" # the mode of the image applies to a tmpfs in its place
cp /usr/bin/busybox "$1/image/bin/"
for name in $(busybox --list); do
  [ "$name" = busybox ] || ln -sf busybox "$1/image/bin/$name"
done
tar -C "$1/image" --sort=name --mtime=@0 --owner=0 --group=0 -c . |
  docker -H "unix://$2" import -c "CMD $3" -c "VOLUME $4" -
)";

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TestDocker::TestDocker() {
  // Not in TEST_TMPDIR: the path of a Unix socket has at most 108 characters.
  std::string folder = "/tmp/dockerXXXXXX";
  folder_ = mkdtemp(folder.data());
  socket_ = folder_ + "/docker.sock";
  Start();
  image_ = MakeImage(R"(["/bin/sh"])");
}

std::string TestDocker::MakeImage(const std::string& command, const std::string& volume) {
  SubprocessOptions options;
  options.argv = {"/bin/sh", "-c", kMakeImage, "make-image", folder_, socket_, command, volume};
  options.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + folder_};
  options.out = ChildOutput::Tail(4096);
  options.err = ChildOutput::Tail(4096);
  auto child = Subprocess::Start(std::move(options));
  if (!child.ok()) {
    ADD_FAILURE() << child.status();
    return "";
  }
  const ExitStatus exit = *(*child)->Wait(absl::InfiniteDuration());
  EXPECT_TRUE(exit.ok()) << exit.Describe() << ": " << (*child)->StderrTail();
  return std::string(absl::StripAsciiWhitespace((*child)->StdoutTail()));
}

void TestDocker::Start() {
  SubprocessOptions options;
  // It ends with a test that is killed.
  options.argv = {"/usr/bin/setpriv",
                  "--pdeathsig",
                  "KILL",
                  "/usr/sbin/dockerd",
                  "--iptables=false",
                  "--bridge=none",
                  "--live-restore",
                  "--storage-driver",
                  "overlay2",
                  "--data-root",
                  folder_ + "/root",
                  "--exec-root",
                  folder_ + "/exec",
                  "--pidfile",
                  folder_ + "/pid",
                  "--host",
                  "unix://" + socket_};
  options.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + folder_};
  options.out = ChildOutput::File(folder_ + "/log");
  options.err = ChildOutput::SameAsStdout();
  auto child = Subprocess::Start(std::move(options));
  ASSERT_TRUE(child.ok()) << child.status();
  daemon_ = *std::move(child);
  DockerEngine engine(socket_);
  EXPECT_TRUE(Await([&] { return engine.GetInfo().ok() || daemon_->Wait(absl::ZeroDuration()); }))
      << Contents(folder_ + "/log");
  EXPECT_TRUE(engine.GetInfo().ok()) << Contents(folder_ + "/log");
}

void TestDocker::Kill() {
  daemon_->Signal(SIGKILL);
  daemon_->Wait(absl::InfiniteDuration());
  // The next daemon would wait for the process in this file if it was not reaped.
  std::filesystem::remove(folder_ + "/exec/containerd/containerd.pid");
}

TestDocker::~TestDocker() {
  DockerEngine engine(socket_);
  if (const auto all = engine.ListContainers("muster", "test"); all.ok()) {
    for (const ContainerState& container : *all) {
      engine.RemoveContainer(container.id).IgnoreError();
    }
  }
  daemon_->Stop(absl::Seconds(20));
  std::ifstream mounts("/proc/self/mounts");
  for (std::string device, path, rest; mounts >> device >> path && std::getline(mounts, rest);) {
    if (path.starts_with(folder_ + "/")) umount2(path.c_str(), MNT_DETACH);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

TestDocker* DockerTest::docker_ = nullptr;

}  // namespace muster::testing
