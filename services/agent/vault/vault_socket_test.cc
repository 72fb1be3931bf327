#include "services/agent/vault/vault_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr char kEnd[] = "\"wrap_info\":null}\n";  // of an answer with data
constexpr char kGet[] =
    "GET /v1/secret/data/deployment/db HTTP/1.1\r\nHost: vault\r\nX-Vault-Token: t\r\n\r\n";

class VaultSocketTest : public ::testing::Test {
 protected:
  VaultSocketTest() { std::filesystem::remove(path_); }
  ~VaultSocketTest() override { std::filesystem::remove(path_); }

  static VaultApi Api() {
    std::vector<VaultApiSecret> secrets;
    secrets.push_back({.name = "db", .version = 1, .value = Secret("hunter22")});
    return VaultApi({.token = "t",
                     .job = "j",
                     .deployment = "d",
                     .created = absl::UnixEpoch(),
                     .expires = absl::UnixEpoch(),
                     .secrets = std::move(secrets)});
  }
  sockaddr_un Address() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    return address;
  }
  void Serve(absl::Duration idle = kVaultIdle) {
    UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const sockaddr_un address = Address();
    ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0);
    ASSERT_EQ(listen(listener.get(), static_cast<int>(kMaxVaultConnections)), 0);
    auto served =
        VaultSocket::Serve(std::move(listener), {.api = Api(),
                                                 .admits = [this](int) { return admits_.load(); },
                                                 .on_read =
                                                     [this](const std::vector<std::string>& names) {
                                                       reads_ += static_cast<int>(names.size());
                                                     },
                                                 .idle = idle});
    ASSERT_TRUE(served.ok()) << served.status();
    socket_ = *std::move(served);
  }
  UniqueFd Connect() const {
    UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = Address();
    if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      return UniqueFd();
    }
    return fd;
  }
  static void Send(const UniqueFd& fd, const std::string& text) {
    // The server may have closed the connection.
    (void)send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  // Reads until `end` has arrived, or the connection is closed.
  static std::string Receive(const UniqueFd& fd, const std::string& end) {
    std::string text;
    char buffer[4096];
    while (end.empty() || text.find(end) == std::string::npos) {
      const ssize_t size = read(fd.get(), buffer, sizeof(buffer));
      if (size <= 0) return text + "<closed>";
      text.append(buffer, static_cast<size_t>(size));
    }
    return text;
  }

  const std::string path_ = absl::StrCat("/tmp/vault_socket_test.", getpid());
  std::atomic<bool> admits_ = true;
  std::atomic<int> reads_ = 0;
  std::unique_ptr<VaultSocket> socket_;
};

TEST_F(VaultSocketTest, ConnectionIsUsedForManyRequests) {
  Serve();
  const UniqueFd client = Connect();
  for (int i = 0; i < 3; ++i) {
    Send(client, kGet);
    const std::string answer = Receive(client, kEnd);
    EXPECT_NE(answer.find("200 OK"), std::string::npos) << answer;
    EXPECT_NE(answer.find("no-store"), std::string::npos) << answer;
  }
  EXPECT_EQ(reads_, 3);
  Send(client, "GET /v1/secret/data/deployment HTTP/1.1\r\nAuthorization: Bearer t\r\n\r\n");
  EXPECT_NE(Receive(client, kEnd).find("200 OK"), std::string::npos);
}

TEST_F(VaultSocketTest, ConnectionThatIsNotAdmittedIsClosed) {
  admits_ = false;
  Serve();
  const UniqueFd client = Connect();
  Send(client, kGet);
  EXPECT_EQ(Receive(client, ""), "<closed>");
  EXPECT_EQ(reads_, 0);
}

TEST_F(VaultSocketTest, LargeOrInvalidRequestsEndTheirConnection) {
  Serve();
  for (const std::string& request :
       {"GET /" + std::string(kMaxVaultHead, 'x') + " HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nA: " + std::string(kMaxVaultHead, 'x') + "\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: " + absl::StrCat(kMaxVaultBody + 1) + "\r\n\r\n",
        std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), std::string("\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n")}) {
    const UniqueFd client = Connect();
    Send(client, request);
    EXPECT_EQ(Receive(client, ""), "<closed>") << request.substr(0, 60);
  }
  const UniqueFd client = Connect();
  Send(client, kGet);
  EXPECT_NE(Receive(client, kEnd).find("200 OK"), std::string::npos);
}

TEST_F(VaultSocketTest, FurtherConnectionsWaitUntilOneEnds) {
  Serve();
  std::vector<UniqueFd> clients;
  for (size_t i = 0; i < kMaxVaultConnections; ++i) {
    clients.push_back(Connect());
    Send(clients.back(), kGet);
    EXPECT_NE(Receive(clients.back(), kEnd).find("200 OK"), std::string::npos);
  }
  const UniqueFd waiting = Connect();
  Send(waiting, kGet);
  Send(clients[0], kGet);  // the others are served meanwhile
  EXPECT_NE(Receive(clients[0], kEnd).find("200 OK"), std::string::npos);
  EXPECT_EQ(reads_, static_cast<int>(kMaxVaultConnections) + 1);
  clients.pop_back();
  EXPECT_NE(Receive(waiting, kEnd).find("200 OK"), std::string::npos);
}

TEST_F(VaultSocketTest, IncompleteRequestIsClosedAfterTheIdleTime) {
  Serve(absl::Milliseconds(100));
  const UniqueFd client = Connect();
  Send(client, "GET /v1/secret");
  EXPECT_EQ(Receive(client, ""), "<closed>");
}

TEST_F(VaultSocketTest, DestructionClosesTheConnections) {
  Serve();
  const UniqueFd client = Connect();
  Send(client, kGet);
  Receive(client, kEnd);
  const UniqueFd half = Connect();
  Send(half, "GET /v1");
  socket_.reset();
  EXPECT_EQ(Receive(half, ""), "<closed>");
  EXPECT_FALSE(Connect().valid());
}

}  // namespace
}  // namespace muster
