// The service that the results of the spool are delivered to.
#ifndef MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_PEER_H_
#define MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_PEER_H_

#include <stop_token>

#include "absl/status/status.h"
#include "services/relay/spool/spool.h"
#include "services/relay/upstream/upstream.h"

namespace muster {

// Both calls wait for the answer; a requested stop cancels them. Thread-safe.
class SpoolDrainPeer {
 public:
  virtual ~SpoolDrainPeer() = default;

  // Uploads a result. OK if it is committed, also by an earlier delivery.
  virtual absl::Status Deliver(const SpoolDelivery& delivery, const std::stop_token& stop) = 0;

  // Delivers the error of an expired result instead of it.
  virtual absl::Status ReportExpired(const SpoolDelivery& delivery,
                                     const std::stop_token& stop) = 0;
};

// The parent, or the aggregator at the root relay.
class UpstreamPeer : public SpoolDrainPeer {
 public:
  // Both outlive it.
  UpstreamPeer(Spool& spool, Upstream& way) : spool_(spool), way_(way) {}

  absl::Status Deliver(const SpoolDelivery& delivery, const std::stop_token& stop) override;
  absl::Status ReportExpired(const SpoolDelivery& delivery, const std::stop_token& stop) override;

 private:
  Spool& spool_;
  Upstream& way_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_SPOOL_DRAIN_PEER_H_
