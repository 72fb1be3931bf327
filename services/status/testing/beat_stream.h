#ifndef MUSTER_SERVICES_STATUS_TESTING_BEAT_STREAM_H_
#define MUSTER_SERVICES_STATUS_TESTING_BEAT_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "muster/v1/heartbeats.grpc.pb.h"
#include "services/common/rpc/status.h"

namespace muster::testing {

// One sender's stream, as an agent holds it.
class BeatStream {
 public:
  explicit BeatStream(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::HeartbeatService::NewStub(channel)) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    stream_ = stub_->Beat(&context_);
  }
  ~BeatStream() { context_.TryCancel(); }

  // The next message begins with this.
  v1::BeatRequest First(const std::string& instance = "i1") {
    v1::BeatRequest beat;
    beat.set_instance_id(instance);
    beat.set_sequence(++sequence_);
    return beat;
  }
  v1::BeatRequest Next() {
    v1::BeatRequest beat;
    beat.set_sequence(++sequence_);
    return beat;
  }

  v1::BeatResponse Send(const v1::BeatRequest& beat) {
    stream_->Write(beat);
    return Read();
  }
  v1::BeatResponse Read() {
    v1::BeatResponse response;
    EXPECT_TRUE(stream_->Read(&response));
    return response;
  }

  // Sends, and reads until the server ends the stream.
  absl::Status SendAndEnd(const v1::BeatRequest& beat) {
    stream_->Write(beat);
    return End();
  }
  absl::Status End() {
    v1::BeatResponse response;
    while (stream_->Read(&response)) {
    }
    return FromGrpc(stream_->Finish());
  }
  void HalfClose() { stream_->WritesDone(); }

 private:
  const std::unique_ptr<v1::HeartbeatService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::BeatRequest, v1::BeatResponse>> stream_;
  int64_t sequence_ = 0;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_STATUS_TESTING_BEAT_STREAM_H_
