// Messages of gRPC in the queue of a stream.
#ifndef MUSTER_SERVICES_COMMON_RPC_OUT_MESSAGE_H_
#define MUSTER_SERVICES_COMMON_RPC_OUT_MESSAGE_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <memory>

#include "services/common/rpc/out_queue.h"

namespace muster {

template <typename Message>
struct OutMessageOf : OutMessage {
  Message message;
};

inline size_t SizeOf(const google::protobuf::MessageLite& message) {
  return message.ByteSizeLong();
}
inline size_t SizeOf(const grpc::ByteBuffer& message) { return message.Length(); }

// Takes the content of `message`.
template <typename Message>
std::unique_ptr<OutMessage> MakeOutMessage(Message* message) {
  auto out = std::make_unique<OutMessageOf<Message>>();
  out->bytes = SizeOf(*message);
  out->message.Swap(message);
  return out;
}

template <typename Message>
const Message& MessageOf(const OutMessage& message) {
  return static_cast<const OutMessageOf<Message>&>(message).message;
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_OUT_MESSAGE_H_
