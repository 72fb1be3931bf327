#include "cli/supervisor/supervisor.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/time/time.h"
#include "cli/supervisor/log_file.h"
#include "cli/supervisor/process.h"
#include "cli/supervisor/test_folder.h"
#include "testing/fixtures/await.h"

namespace muster::supervisor {
namespace {

using nlohmann::json;
using testing::Await;

// Runs real supervisors as child processes, with services that sleep.
class SupervisorTest : public ::testing::Test {
 protected:
  ~SupervisorTest() override {
    for (const pid_t pid : supervisors_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    for (const ServiceSpec& spec : Specs()) {
      const auto identity = ReadPidFile(spec.pid_file);
      if (!identity) continue;
      if (const auto process = Process::Find(*identity)) StopProcess(*process, absl::Seconds(5));
    }
  }

  std::vector<ServiceSpec> Specs() const {
    // Each service writes its name when it receives SIGTERM, to show the order.
    const std::string order = folder_ / "order";
    std::vector<ServiceSpec> specs;
    for (const std::string name : {"one", "two"}) {
      specs.push_back({.name = name,
                       .argv = {"/bin/sh", "-c",
                                "trap 'echo " + name + " >> " + order +
                                    "; exit 0' TERM; echo ready; while :; do sleep 0.02; done"},
                       .log_file = folder_ / (name + ".log"),
                       .pid_file = folder_ / (name + ".pid")});
    }
    return specs;
  }

  pid_t StartSupervisor(absl::Duration drain = absl::Seconds(20)) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      Supervisor supervisor({.lock_file = folder_ / "lock",
                             .socket = Socket(),
                             .services = Specs(),
                             .restart = {.first = absl::Milliseconds(10)},
                             .drain = drain});
      ::_exit(supervisor.Run().ok() ? 0 : 1);
    }
    supervisors_.push_back(pid);
    return pid;
  }

  // Waits for a supervisor and returns its exit code, or -1 if it was killed.
  int ExitCode(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    std::erase(supervisors_, pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string Socket() const { return folder_ / "sock"; }

  json Call(const std::string& request) {
    const auto answer = CallSupervisor(Socket(), request, absl::Seconds(10));
    return answer.ok() ? json::parse(*answer) : json::object();
  }

  // Returns the process of a service, or 0 if it is not running.
  pid_t Pid(const std::string& service) {
    const json status = Call(R"({"status":true})");
    for (const json& entry : status.value("services", json::array())) {
      if (entry["name"] == service) return entry.value("pid", 0);
    }
    return 0;
  }

  const TestFolder folder_;
  std::vector<pid_t> supervisors_;
};

TEST_F(SupervisorTest, KilledServiceIsRestarted) {
  StartSupervisor();
  ASSERT_TRUE(Await([&] { return Pid("one") > 0 && Pid("two") > 0; }));
  const pid_t first = Pid("one");
  const pid_t other = Pid("two");
  ::kill(first, SIGKILL);
  EXPECT_TRUE(Await([&] { return Pid("one") > 0 && Pid("one") != first; }));
  EXPECT_EQ(Pid("two"), other);
  const json status = Call(R"({"status":true})");
  EXPECT_EQ(status["services"][0]["restarts"], 1);
  EXPECT_EQ(status["services"][0]["last_exit"], "killed by signal 9 (Killed)");
}

TEST_F(SupervisorTest, SigtermStopsServicesInReverseOrder) {
  const pid_t supervisor = StartSupervisor();
  ASSERT_TRUE(Await([&] { return Pid("one") > 0 && Pid("two") > 0; }));
  const auto one = ReadPidFile(folder_ / "one.pid");
  ASSERT_TRUE(one.has_value());
  ASSERT_TRUE(Await([&] {
    return LogTail(folder_ / "one.log", 1) == "ready\n" &&
           LogTail(folder_ / "two.log", 1) == "ready\n";
  }));
  ::kill(supervisor, SIGTERM);
  EXPECT_EQ(ExitCode(supervisor), 0);
  EXPECT_FALSE(Process::Find(*one).has_value());
  EXPECT_FALSE(ReadPidFile(folder_ / "one.pid").has_value());
  EXPECT_NE(::access(Socket().c_str(), F_OK), 0);
  EXPECT_EQ(LogTail(folder_ / "order", 9), "two\none\n");
}

TEST_F(SupervisorTest, SupervisorAfterAKillTakesOverItsServices) {
  const pid_t first = StartSupervisor();
  ASSERT_TRUE(Await([&] { return Pid("one") > 0 && Pid("two") > 0; }));
  const pid_t one = Pid("one");
  const pid_t two = Pid("two");
  ::kill(first, SIGKILL);
  EXPECT_EQ(ExitCode(first), -1);
  ::kill(two, SIGKILL);
  ASSERT_TRUE(Await([&] { return ::kill(two, 0) != 0; }));

  const pid_t second = StartSupervisor();
  ASSERT_TRUE(Await([&] { return Pid("two") > 0; }));
  EXPECT_EQ(Pid("one"), one);
  EXPECT_NE(Pid("two"), two);
  ::kill(one, SIGKILL);
  EXPECT_TRUE(Await([&] { return Pid("one") > 0 && Pid("one") != one; }));
  ::kill(second, SIGTERM);
  EXPECT_EQ(ExitCode(second), 0);
}

TEST_F(SupervisorTest, SecondSupervisorFails) {
  StartSupervisor();
  ASSERT_TRUE(Await([&] { return Pid("one") > 0; }));
  const pid_t one = Pid("one");
  EXPECT_EQ(ExitCode(StartSupervisor()), 1);
  EXPECT_EQ(Pid("one"), one);
}

TEST_F(SupervisorTest, ServiceThatDoesNotExitIsKilled) {
  const pid_t supervisor = StartSupervisor(absl::Milliseconds(100));
  ASSERT_TRUE(Await([&] { return Pid("one") > 0 && Pid("two") > 0; }));
  ::kill(Pid("two"), SIGSTOP);
  ::kill(supervisor, SIGTERM);
  EXPECT_EQ(ExitCode(supervisor), 0);
}

// Requests a listening socket as the gateway does, and stores the line in `answer`. Returns -1 if
// no socket was received.
int ReceiveSocket(const std::string& path, const std::string& request, std::string* answer) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  if (::connect(fd, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)) != 0) return -1;
  const std::string line = request + "\n";
  EXPECT_EQ(::send(fd, line.data(), line.size(), 0), static_cast<ssize_t>(line.size()));
  char text[1000] = {};
  struct iovec part = {.iov_base = text, .iov_len = sizeof(text) - 1};
  alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  struct msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  EXPECT_GT(::recvmsg(fd, &message, 0), 0);
  ::close(fd);
  *answer = text;
  int received = -1;
  if (const struct cmsghdr* header = CMSG_FIRSTHDR(&message)) {
    std::memcpy(&received, CMSG_DATA(header), sizeof(received));
  }
  return received;
}

int Connect(const std::string& address) {
  struct sockaddr_in peer = {};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<struct sockaddr*>(&peer), sizeof(peer)) == 0) return fd;
  ::close(fd);
  return -1;
}

TEST_F(SupervisorTest, ConnectionWithoutGatewayWaits) {
  StartSupervisor();
  ASSERT_TRUE(Await([&] { return Pid("one") > 0; }));
  std::string answer;
  const int first =
      ReceiveSocket(Socket(), R"({"listen":"127.0.0.1:0","name":"legacy/r1"})", &answer);
  ASSERT_GE(first, 0) << answer;
  const std::string address = json::parse(answer)["address"];
  ::close(first);  // the gateway was killed

  const int client = Connect(address);
  ASSERT_GE(client, 0);
  const int second =
      ReceiveSocket(Socket(), R"({"listen":")" + address + R"(","name":"legacy/r1"})", &answer);
  ASSERT_GE(second, 0) << answer;
  int accepted = -1;
  EXPECT_TRUE(Await([&] { return (accepted = ::accept(second, nullptr, nullptr)) >= 0; }));
  ::close(accepted);
  ::close(client);
  ::close(second);

  EXPECT_EQ(Call(R"({"release":"legacy/r1"})")["released"], true);
  EXPECT_EQ(Call(R"({"release":"legacy/r1"})")["released"], false);
  EXPECT_LT(Connect(address), 0);
}

TEST_F(SupervisorTest, StatusReportsTheSocketsOfServices) {
  StartSupervisor();
  ASSERT_TRUE(Await([&] { return Pid("one") > 0; }));
  const auto is_open = [&](size_t service) {
    return Call(R"({"status":true})")["services"][service]["socket_open"];
  };
  EXPECT_EQ(is_open(0), false);
  EXPECT_TRUE(Call(R"({"listen":"127.0.0.1:0","name":"one"})").contains("address"));
  EXPECT_EQ(is_open(0), true);
  EXPECT_EQ(is_open(1), false);
}

TEST_F(SupervisorTest, InvalidRequestReturnsItsReason) {
  StartSupervisor();
  ASSERT_TRUE(Await([&] { return Pid("one") > 0; }));
  std::string answer;
  const int held = ReceiveSocket(Socket(), R"({"listen":"127.0.0.1:0","name":"a"})", &answer);
  ASSERT_GE(held, 0) << answer;
  ::close(held);
  const std::string address = json::parse(answer)["address"];
  const auto reason = [&](const std::string& request) {
    const json refused = Call(request);
    EXPECT_TRUE(refused.contains("error")) << request;
    return refused.value("reason", "");
  };
  EXPECT_EQ(reason(R"({"listen":")" + address + R"(","name":"b"})"), "ADDRESS_IN_USE");
  EXPECT_EQ(reason(R"({"listen":"127.0.0.1:1","name":"a"})"), "NAME_TAKEN");
  EXPECT_EQ(reason(R"({"listen":"no.such.host:1","name":"c"})"), "INVALID_ADDRESS");
  for (const char* request :
       {"", "{}", "[]", "nonsense", R"({"listen":"127.0.0.1:0"})",
        R"({"listen":"127.0.0.1","name":"c"})", R"({"listen":1,"name":"c"})"}) {
    EXPECT_EQ(reason(request), "INVALID_REQUEST") << request;
  }
}

}  // namespace
}  // namespace muster::supervisor
