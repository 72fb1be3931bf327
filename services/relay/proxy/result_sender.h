// Sends results of the spool upstream.
#ifndef MUSTER_SERVICES_RELAY_PROXY_RESULT_SENDER_H_
#define MUSTER_SERVICES_RELAY_PROXY_RESULT_SENDER_H_

#include <stop_token>

#include "absl/status/status.h"
#include "services/relay/spool/spool.h"
#include "services/relay/upstream/upstream.h"

namespace muster {

// Thread-safe. The methods block, at most until `stop`.
class ResultSender {
 public:
  virtual ~ResultSender() = default;

  // Returns OK if the aggregator has committed the result.
  virtual absl::Status Deliver(const SpoolDelivery& delivery, const std::stop_token& stop) = 0;

  // Reports that a result has expired or is lost: its pair gets no outcome.
  virtual absl::Status ReportExpired(const SpoolDelivery& delivery,
                                     const std::stop_token& stop) = 0;
};

// Sends by the results channel of an upstream. Both references outlive it.
class UpstreamResultSender final : public ResultSender {
 public:
  UpstreamResultSender(Spool& spool, Upstream& upstream) : spool_(spool), upstream_(upstream) {}

  absl::Status Deliver(const SpoolDelivery& delivery, const std::stop_token& stop) override;
  absl::Status ReportExpired(const SpoolDelivery& delivery, const std::stop_token& stop) override;

 private:
  Spool& spool_;
  Upstream& upstream_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_RESULT_SENDER_H_
