// muster.v1.JoinService at a relay: for machines without an identity, on the listener without
// client certificates, and for child relays that forward such calls.
#ifndef MUSTER_SERVICES_RELAY_PROXY_JOIN_FORWARD_H_
#define MUSTER_SERVICES_RELAY_PROXY_JOIN_FORWARD_H_

#include <string_view>

#include "muster/v1/join.grpc.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/metrics.h"
#include "services/common/base/token_buckets.h"
#include "services/relay/proxy/upstream_call.h"

namespace muster {

// The aggregator verifies the requests. Callers are unknown, so this relay limits the size of a
// request, and rate and number of those of an address, separately for Join and Rejoin.
// Thread-safe.
class JoinForward : public v1::JoinService::CallbackService {
 public:
  JoinForward(Upstream& upstream, const RpcRuntime& runtime, const Clock& clock, Metrics& metrics);
  // Waits until no upstream call uses this object. The servers have stopped and have cancelled
  // their calls, which cancels the upstream ones.
  ~JoinForward() override { calls_.AwaitNone(); }

  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context,
                                 const v1::JoinRequest* request,
                                 v1::NodeCertificate* response) override;
  grpc::ServerUnaryReactor* Rejoin(grpc::CallbackServerContext* context,
                                   const v1::RejoinRequest* request,
                                   v1::NodeCertificate* response) override;

 private:
  template <typename Request>
  grpc::ServerUnaryReactor* Forward(grpc::CallbackServerContext* context, std::string_view method,
                                    const Request* request, v1::NodeCertificate* response);
  absl::StatusOr<UpstreamCall> Admit(grpc::CallbackServerContext* context, std::string_view method,
                                     int64_t bytes);

  Upstream& upstream_;
  const RpcRuntime runtime_;
  const Clock& clock_;
  TokenBuckets rates_;
  Admission calls_;
  Counter forwarded_;
  Counter refused_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_JOIN_FORWARD_H_
