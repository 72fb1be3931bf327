// Stands in front of gRPC's header of the same name: every file that sees a generated message finds
// this one first (proto.bzl). It replaces the one class by which gRPC turns messages into bytes and
// back, so that no RPC can miss it; gRPC leaves that class out without GRPC_OPEN_SOURCE_PROTO.
#ifndef MUSTER_SERVICES_COMMON_RPC_GRPC_OVERRIDE_PROTO_UTILS_H_
#define MUSTER_SERVICES_COMMON_RPC_GRPC_OVERRIDE_PROTO_UTILS_H_

#include <grpcpp/impl/codegen/config_protobuf.h>
#undef GRPC_OPEN_SOURCE_PROTO
#include_next <grpcpp/impl/codegen/proto_utils.h>

#include <type_traits>

namespace muster {

// Text is UTF-8 in either direction (services/common/rpc/message_text.h).
grpc::Status SerializeMessage(const google::protobuf::MessageLite& message,
                              grpc::ByteBuffer* buffer);
// INTERNAL for bytes that are not the message. Clears `buffer`.
grpc::Status DeserializeMessage(grpc::ByteBuffer* buffer, google::protobuf::MessageLite* message);

}  // namespace muster

namespace grpc {

template <class T>
class SerializationTraits<
    T, typename std::enable_if<std::is_base_of<google::protobuf::MessageLite, T>::value>::type> {
 public:
  static Status Serialize(const google::protobuf::MessageLite& message, ByteBuffer* buffer,
                          bool* own_buffer) {
    *own_buffer = true;
    return muster::SerializeMessage(message, buffer);
  }

  static Status Deserialize(ByteBuffer* buffer, google::protobuf::MessageLite* message) {
    return muster::DeserializeMessage(buffer, message);
  }
};

}  // namespace grpc

#endif  // MUSTER_SERVICES_COMMON_RPC_GRPC_OVERRIDE_PROTO_UTILS_H_
