#include "services/common/rpc/testing/rpc_walk.h"

#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace muster::testing {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr char kLatin1[] = "caf\xe9";  // "café"

// A field of wire type 2.
std::string Field(int number, const std::string& body) {
  std::string bytes;
  const auto append = [&bytes](size_t value) {
    for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
    bytes.push_back(static_cast<char>(value));
  };
  append(static_cast<size_t>(number) << 3 | 2);
  append(body.size());
  return bytes + body;
}

// `within` are the types around this one: none of ours is looked into twice.
void AddBadTexts(const Descriptor& type, std::vector<const Descriptor*>* within,
                 std::vector<BadText>* texts) {
  if (std::find(within->begin(), within->end(), &type) != within->end()) return;
  within->push_back(&type);
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.type() == FieldDescriptor::TYPE_STRING) {
      texts->push_back({field.name(), Field(field.number(), kLatin1)});
    } else if (field.type() == FieldDescriptor::TYPE_MESSAGE) {
      std::vector<BadText> inner;
      AddBadTexts(*field.message_type(), within, &inner);
      for (const BadText& text : inner) {
        texts->push_back(
            {absl::StrCat(field.name(), ".", text.field), Field(field.number(), text.bytes)});
      }
    }
  }
  within->pop_back();
}

}  // namespace

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

std::vector<BadText> BadTextsOf(const Descriptor& type) {
  std::vector<const Descriptor*> within;
  std::vector<BadText> texts;
  AddBadTexts(type, &within, &texts);
  return texts;
}

void ExpectBadTextIsAnswered(const std::shared_ptr<grpc::Channel>& channel,
                             std::span<const google::protobuf::MethodDescriptor* const> methods) {
  for (const auto* method : methods) {
    const auto served = CallEmpty(channel, PathOf(*method)).error_code();
    if (served == grpc::StatusCode::UNIMPLEMENTED) continue;
    for (const BadText& text : BadTextsOf(*method->input_type())) {
      SCOPED_TRACE(absl::StrCat(PathOf(*method), " ", text.field));
      const grpc::Status status = CallWith(channel, PathOf(*method), text.bytes);
      if (status.ok()) continue;
      EXPECT_FALSE(status.error_message().empty());
      for (const auto code :
           {grpc::StatusCode::INTERNAL, grpc::StatusCode::UNKNOWN, grpc::StatusCode::UNIMPLEMENTED,
            grpc::StatusCode::DEADLINE_EXCEEDED}) {
        EXPECT_NE(status.error_code(), code) << status.error_message();
      }
    }
  }
}

grpc::Status CallEmpty(const std::shared_ptr<grpc::Channel>& channel, const std::string& path) {
  return CallWith(channel, path, "");
}

grpc::Status CallWith(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
                      const std::string& request) {
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
  const grpc::Slice bytes(request);
  call->WriteLast(grpc::ByteBuffer(&bytes, 1), grpc::WriteOptions(), nullptr);
  step();
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  const bool answered = step();
  if (answered) context.TryCancel();  // it may be a stream that continues
  grpc::Status status;
  call->Finish(&status, nullptr);
  queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return answered ? grpc::Status::OK : status;
}

}  // namespace muster::testing
