#include "services/common/rpc/testing/rpc_walk.h"

#include <grpcpp/generic/generic_stub.h>

#include <chrono>

#include "absl/strings/str_cat.h"

namespace muster::testing {

std::vector<const google::protobuf::MethodDescriptor*> MethodsOf(
    std::span<const google::protobuf::FileDescriptor* const> files) {
  std::vector<const google::protobuf::MethodDescriptor*> methods;
  for (const auto* file : files) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        methods.push_back(file->service(i)->method(j));
      }
    }
  }
  return methods;
}

std::string PathOf(const google::protobuf::MethodDescriptor& method) {
  return absl::StrCat("/", method.service()->full_name(), "/", method.name());
}

grpc::Status CallEmpty(const std::shared_ptr<grpc::Channel>& channel, const std::string& path) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  bool ok = false;
  const auto step = [&] { return queue.Next(&tag, &ok) && ok; };
  const auto call = stub.PrepareCall(&context, path, &queue);
  call->StartCall(nullptr);
  step();
  const grpc::Slice none;
  call->WriteLast(grpc::ByteBuffer(&none, 1), grpc::WriteOptions(), nullptr);
  step();
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  const bool answered = step();
  if (answered) context.TryCancel();  // it may be a stream that goes on
  grpc::Status status;
  call->Finish(&status, nullptr);
  queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return answered ? grpc::Status::OK : status;
}

}  // namespace muster::testing
