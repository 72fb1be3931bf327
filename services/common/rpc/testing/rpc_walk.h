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

// Calls any method with one empty request and waits at most 20 s for its status, or its first
// message (OK then).
grpc::Status CallEmpty(const std::shared_ptr<grpc::Channel>& channel, const std::string& path);

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_COMMON_RPC_TESTING_RPC_WALK_H_
