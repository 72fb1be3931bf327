// muster.v1.ContentService at a relay: nodes read the files of their deployments.
#ifndef MUSTER_SERVICES_RELAY_PROXY_CONTENT_FORWARD_H_
#define MUSTER_SERVICES_RELAY_PROXY_CONTENT_FORWARD_H_

#include "muster/v1/contents.grpc.pb.h"
#include "services/relay/proxy/upstream_call.h"

namespace muster {

// The limits of these calls. A relay holds at most 512 KiB for each of them.
inline constexpr Admission::Limits kContentCalls = {
    .calls = 128, .calls_of_one = 4, .bytes = int64_t{1} << 20, .bytes_of_one = int64_t{64} << 10};

// Thread-safe.
class ContentForward : public v1::ContentService::CallbackService {
 public:
  explicit ContentForward(const ForwardParts& parts) : parts_(parts) {}

  grpc::ServerUnaryReactor* ReadContent(grpc::CallbackServerContext* context,
                                        const v1::ReadContentRequest* request,
                                        v1::ReadContentResponse* response) override {
    return ForwardToJobs(parts_, context, "/muster.v1.ContentService/ReadContent", Resource::Own(),
                         request, response);
  }

  // RELAY_DOES_NOT_SERVE.
  grpc::ServerUnaryReactor* FindContents(grpc::CallbackServerContext* context,
                                         const v1::FindContentsRequest*,
                                         v1::FindContentsResponse*) override {
    return RejectUnary(parts_.runtime, context, "/muster.v1.ContentService/FindContents");
  }
  grpc::ServerUnaryReactor* UploadContent(grpc::CallbackServerContext* context,
                                          const v1::UploadContentRequest*,
                                          v1::UploadContentResponse*) override {
    return RejectUnary(parts_.runtime, context, "/muster.v1.ContentService/UploadContent");
  }

 private:
  const ForwardParts parts_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_CONTENT_FORWARD_H_
