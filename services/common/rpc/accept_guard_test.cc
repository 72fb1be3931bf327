#include "services/common/rpc/accept_guard.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grpcpp/client_context.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/v1/shares.grpc.pb.h"
#include "services/common/base/unique_fd.h"
#include "services/common/rpc/status.h"
#include "services/common/rpc/testing/stream_fixture.h"
#include "testing/fixtures/await.h"

namespace muster::testing {
namespace {

constexpr size_t kBurst = 100;
constexpr size_t kFree = 8;

// Limits the file descriptors of this process to the present ones and a few more.
class FewDescriptors {
 public:
  FewDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit low = before_;
    const UniqueFd next(open("/dev/null", O_RDONLY | O_CLOEXEC));
    low.rlim_cur = static_cast<rlim_t>(next.get()) + kFree;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_ = {};
};

absl::Status Call(StreamServer& server) {
  const auto stub = v1::ShareService::NewStub(server.ConnectNode("n1"));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
  v1::OpenShareResponse response;
  return FromGrpc(stub->OpenShare(&context, {}, &response));
}

TEST(AcceptGuardTest, ListenerSurvivesABurstWithoutFreeDescriptors) {
  StreamServer server;
  server.open_share = [&](auto* context, const auto* request, auto* response) {
    return Answer(server.runtime(), context, "/muster.v1.ShareService/OpenShare",
                  {*request, response},
                  [](muster::Call& call) { return call.Authorize(Resource::Own()); });
  };
  ASSERT_EQ(Call(server), absl::OkStatus());
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(server.port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  DrainUnacceptedConnections();
  // They exist before the limit, so only the server needs more.
  std::vector<UniqueFd> burst;
  for (size_t i = 0; i < kBurst; ++i) {
    burst.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }
  {
    const FewDescriptors few;
    for (const UniqueFd& fd : burst) {
      ASSERT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    }
    // The connection of the first call may free some more descriptors.
    size_t closed = 0;
    EXPECT_TRUE(Await([&] {
      closed += DrainUnacceptedConnections();
      return closed >= kBurst / 2;
    })) << closed;
    burst.clear();
    EXPECT_TRUE(Await([&] { return Call(server).ok(); }));
  }
  EXPECT_EQ(Call(server), absl::OkStatus());
}

// Linux reports EMFILE also for an empty queue, for which gRPC would ask without end.
TEST(AcceptGuardTest, EmptyQueueIsReportedWithoutFreeDescriptors) {
  GuardAccept();
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  ASSERT_EQ(listen(listener.get(), 1), 0);  // at any free port
  const FewDescriptors few;
  std::vector<UniqueFd> taken;
  for (;;) {
    UniqueFd next(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (next.get() < 0) break;
    taken.push_back(std::move(next));
  }
  EXPECT_EQ(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC), -1);
  EXPECT_EQ(errno, EAGAIN);
}

}  // namespace
}  // namespace muster::testing
