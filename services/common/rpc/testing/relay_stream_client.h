// A client of RelayHeartbeats, and a server of it.
#ifndef MUSTER_SERVICES_COMMON_RPC_TESTING_RELAY_STREAM_CLIENT_H_
#define MUSTER_SERVICES_COMMON_RPC_TESTING_RELAY_STREAM_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstddef>
#include <memory>

#include "gtest/gtest.h"
#include "services/common/rpc/status.h"
#include "services/common/rpc/testing/stream_fixture.h"

namespace muster::testing {

inline constexpr char kRelayMethod[] = "/muster.v1.HeartbeatService/RelayHeartbeats";
// More than gRPC takes of a client that does not read.
inline constexpr size_t kLarge = size_t{1} << 20;

// A client whose reads and writes the test starts.
class RelayStreamClient {
 public:
  explicit RelayStreamClient(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::HeartbeatService::NewStub(channel)) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    stream_ = stub_->RelayHeartbeats(&context_);
  }
  ~RelayStreamClient() { context_.TryCancel(); }

  void Send(int number = 0) {
    v1::RelayHeartbeatsRequest request;
    request.add_heard_ids(number);
    stream_->Write(request);
  }
  void HalfClose() { stream_->WritesDone(); }
  void Cancel() { context_.TryCancel(); }

  // The number of the next answer, -1 at the end.
  int Read() {
    v1::RelayHeartbeatsResponse response;
    return stream_->Read(&response) ? response.probes(0) : -1;
  }
  absl::Status End() {
    while (Read() >= 0) {
    }
    return FromGrpc(stream_->Finish());
  }

 private:
  const std::unique_ptr<v1::HeartbeatService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse>>
      stream_;
};

// A server that answers each message with its number.
class RelayStreamTest : public ::testing::Test {
 protected:
  RelayStreamTest() {
    script_.on_start = [](RelayStream& stream) { stream.ReadNext(); };
    script_.on_message = [](RelayStream& stream, v1::RelayHeartbeatsRequest request) {
      stream.Send(Answer(request.heard_ids(0)));
      stream.ReadNext();
    };
  }

  RelayScript script_;
  StreamServer server_;
};

// Returns options for a queue of this many messages.
inline ServerStreamOptions Queue(size_t messages) {
  ServerStreamOptions options;
  options.max_queued = messages;
  return options;
}

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_COMMON_RPC_TESTING_RELAY_STREAM_CLIENT_H_
