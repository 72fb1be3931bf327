// Reads of contents from a server that the test plays.
#include "services/agent/attach/relay_content_source.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "muster/v1/contents.grpc.pb.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/errors/relay.h"
#include "services/common/rpc/status.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

using testing::Await;

// Holds calls while `holding`.
class FakeContents final : public v1::ContentService::Service {
 public:
  grpc::Status ReadContent(grpc::ServerContext* context, const v1::ReadContentRequest* request,
                           v1::ReadContentResponse* response) override {
    const int now = ++open;
    int before = most;
    while (before < now && !most.compare_exchange_weak(before, now)) {
    }
    Await([&] { return !holding || context->IsCancelled(); });
    --open;
    if (failing) return ToGrpc(errors::JobsUnreachable());
    response->set_data(request->deployment() + "/" + request->sha256() + "/" +
                       std::to_string(request->offset()));
    response->set_crc32c(Crc32c(response->data()) + (damaged ? 1 : 0));
    return grpc::Status::OK;
  }

  std::atomic<bool> holding = false;
  std::atomic<bool> failing = false;
  std::atomic<bool> damaged = false;
  std::atomic<int> open = 0;
  std::atomic<int> most = 0;
};

class RelayContentSourceTest : public ::testing::Test {
 protected:
  RelayContentSourceTest() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&contents_);
    server_ = builder.BuildAndStart();
    channel_ = server_->InProcessChannel({});
  }
  ~RelayContentSourceTest() override {
    contents_.holding = false;
    server_->Shutdown();
  }

  absl::StatusOr<std::string> Read() {
    return source_.Read("d1", "sha", 5, [this] { return stopped_.load(); });
  }

  FakeContents contents_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::atomic<bool> stopped_ = false;
  RelayContentSource source_{[this] { return channel_; }};
};

TEST_F(RelayContentSourceTest, PartIsReadAndItsChecksumVerified) {
  EXPECT_EQ(*Read(), "d1/sha/5");
  contents_.damaged = true;
  EXPECT_EQ(ReasonOf(Read().status()), "CRC_MISMATCH");
}

TEST_F(RelayContentSourceTest, ErrorsKeepTheirReason) {
  contents_.failing = true;
  EXPECT_EQ(ReasonOf(Read().status()), "JOBS_UNREACHABLE");
  channel_ = nullptr;
  EXPECT_EQ(ReasonOf(Read().status()), "UNREACHABLE");
}

TEST_F(RelayContentSourceTest, StopEndsACallAndAWaitForOne) {
  contents_.holding = true;
  std::vector<std::thread> reads;
  for (int i = 0; i <= RelayContentSource::kMaxReads; ++i) {
    reads.emplace_back([this] { EXPECT_TRUE(absl::IsCancelled(Read().status())); });
  }
  EXPECT_TRUE(Await([&] { return contents_.open == RelayContentSource::kMaxReads; }));
  stopped_ = true;
  for (std::thread& read : reads) read.join();
}

TEST_F(RelayContentSourceTest, ReadsAtATimeAreBounded) {
  std::vector<std::thread> reads;
  for (int i = 0; i < 20; ++i) {
    reads.emplace_back([this] { EXPECT_TRUE(Read().ok()); });
  }
  for (std::thread& read : reads) read.join();
  EXPECT_LE(contents_.most, RelayContentSource::kMaxReads);
}

}  // namespace
}  // namespace muster
