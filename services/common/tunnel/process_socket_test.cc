#include "services/common/tunnel/process_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "services/common/base/random_id.h"

namespace muster {
namespace {

UniqueFd Connect(const std::string& name) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const auto* to = reinterpret_cast<const sockaddr*>(&address);
  return connect(fd.get(), to, size) == 0 ? std::move(fd) : UniqueFd();
}

TEST(ProcessSocketTest, ConnectionOfThisProcessIsItsOwn) {
  const std::string name = "muster-test-" + RandomHex(16);
  const auto listener = ProcessSocket::Listen(name);
  ASSERT_TRUE(listener.ok()) << listener.status();
  const UniqueFd own = Connect(name);
  ASSERT_TRUE(own.valid());
  const UniqueFd accepted(accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_TRUE(ProcessSocket::IsOwn(accepted.get()));
  EXPECT_FALSE(ProcessSocket::Listen(name).ok());
  EXPECT_FALSE(ProcessSocket::Listen(std::string(200, 'x')).ok());
}

TEST(ProcessSocketTest, ConnectionOfAnotherProcessIsNot) {
  const std::string name = "muster-test-" + RandomHex(16);
  const auto listener = ProcessSocket::Listen(name);
  ASSERT_TRUE(listener.ok()) << listener.status();
  const pid_t child = fork();
  if (child == 0) _exit(Connect(name).valid() ? 0 : 1);
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  ASSERT_EQ(state, 0);
  const UniqueFd accepted(accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(accepted.valid());
  EXPECT_FALSE(ProcessSocket::IsOwn(accepted.get()));
}

}  // namespace
}  // namespace muster
