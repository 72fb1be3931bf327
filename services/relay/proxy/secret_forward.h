// muster.v1.SecretService at a relay: nodes fetch the secrets of their jobs, which are sealed.
#ifndef MUSTER_SERVICES_RELAY_PROXY_SECRET_FORWARD_H_
#define MUSTER_SERVICES_RELAY_PROXY_SECRET_FORWARD_H_

#include "muster/v1/secrets.grpc.pb.h"
#include "services/relay/proxy/upstream_call.h"

namespace muster {

// The limits of these calls: an agent runs 16 jobs at a time. A relay holds at most 300 KiB for
// each of them.
inline constexpr Admission::Limits kSecretCalls = {.calls = 128,
                                                   .calls_of_one = 16,
                                                   .bytes = int64_t{4} << 20,
                                                   .bytes_of_one = int64_t{512} << 10};

// Thread-safe.
class SecretForward : public v1::SecretService::CallbackService {
 public:
  explicit SecretForward(const ForwardParts& parts) : parts_(parts) {}

  grpc::ServerUnaryReactor* FetchSecrets(grpc::CallbackServerContext* context,
                                         const v1::FetchSecretsRequest* request,
                                         v1::FetchSecretsResponse* response) override {
    return ForwardToJobs(parts_, context, "/muster.v1.SecretService/FetchSecrets", Resource::Own(),
                         request, response);
  }

  // RELAY_DOES_NOT_SERVE.
  grpc::ServerUnaryReactor* PutSecret(grpc::CallbackServerContext* context,
                                      const v1::PutSecretRequest*, v1::Secret*) override {
    return RejectUnary(parts_.runtime, context, "/muster.v1.SecretService/PutSecret");
  }
  grpc::ServerUnaryReactor* ListSecrets(grpc::CallbackServerContext* context,
                                        const v1::ListSecretsRequest*,
                                        v1::ListSecretsResponse*) override {
    return RejectUnary(parts_.runtime, context, "/muster.v1.SecretService/ListSecrets");
  }
  grpc::ServerUnaryReactor* DeleteSecret(grpc::CallbackServerContext* context,
                                         const v1::DeleteSecretRequest*,
                                         v1::DeleteSecretResponse*) override {
    return RejectUnary(parts_.runtime, context, "/muster.v1.SecretService/DeleteSecret");
  }

 private:
  const ForwardParts parts_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_SECRET_FORWARD_H_
