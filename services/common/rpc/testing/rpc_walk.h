#ifndef MUSTER_SERVICES_COMMON_RPC_TESTING_RPC_WALK_H_
#define MUSTER_SERVICES_COMMON_RPC_TESTING_RPC_WALK_H_

#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

// A walk over every RPC that a server has, for tests of what all of them have to keep.
namespace muster::testing {

// Every method of every service that the files describe.
std::vector<const google::protobuf::MethodDescriptor*> MethodsOf(
    std::span<const google::protobuf::FileDescriptor* const> files);

// "/package.Service/Method", as a request carries it.
std::string PathOf(const google::protobuf::MethodDescriptor& method);

// Calls any method with one request and waits at most 20 s for its status, or its first message
// (OK then).
grpc::Status CallWith(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
                      const std::string& request);

// The same with an empty request.
grpc::Status CallEmpty(const std::shared_ptr<grpc::Channel>& channel, const std::string& path);

// A message on the wire in which one string holds bytes that are not UTF-8, and nothing else.
struct BadText {
  std::string field;  // its path in the message: "description.key.run"
  std::string bytes;
};

// One for every string field of the type, at any depth.
std::vector<BadText> BadTextsOf(const google::protobuf::Descriptor& type);

// Sends each bad text of the request of each method that is served, in a separate call. Fails
// the test for an answer that does not name the field.
void ExpectBadTextIsAnswered(const std::shared_ptr<grpc::Channel>& channel,
                             std::span<const google::protobuf::MethodDescriptor* const> methods);

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_COMMON_RPC_TESTING_RPC_WALK_H_
