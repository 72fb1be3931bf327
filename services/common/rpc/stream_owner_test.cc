#include <grpcpp/create_channel.h>

#include <memory>

#include "gtest/gtest.h"
#include "muster/v1/heartbeats.pb.h"
#include "services/common/rpc/client_stream.h"

namespace muster {
namespace {

using Stream = ClientStream<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse>;

struct Handler : Stream::Handler {
  void OnStart(const std::shared_ptr<Stream>& given) override {
    stream = given;
    stream->ReadNext();
  }
  void OnMessage(v1::StreamHeartbeatsResponse) override {}
  void OnEnd(const absl::Status&, EndedBy) override {}
  std::shared_ptr<Stream> stream;
};

// If one of gRPC's threads dropped the only channel of this process, it would wait for itself.
TEST(StreamOwnerTest, LastChannelOfTheProcessIsDestroyedWithTheOwner) {
  for (int i = 0; i < 100; ++i) {
    const StreamOwner<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse> owner(
        Stream::Start(grpc::CreateChannel("127.0.0.1:1", grpc::InsecureChannelCredentials()),
                      "/muster.v1.HeartbeatService/StreamHeartbeats", {},
                      std::make_shared<Handler>()));
    if (i % 2 == 0) owner.AwaitEnd(absl::Seconds(30));
  }
}

}  // namespace
}  // namespace muster
