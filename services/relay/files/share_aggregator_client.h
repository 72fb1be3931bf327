// What the relay at the centre has to say to the aggregator about shared files.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_AGGREGATOR_CLIENT_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_AGGREGATOR_CLIENT_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "muster/v1/shares.pb.h"
#include "services/relay/files/share_parts.h"

namespace muster {

// Plain calls with a deadline of some seconds, whose end is told on a thread of gRPC. Thread-safe.
class ShareAggregatorClient {
 public:
  using Done = std::function<void(const absl::Status&)>;

  explicit ShareAggregatorClient(ShareParts parts) : parts_(std::move(parts)) {}

  // TARGET_UNKNOWN if no node of this name ever joined, or it was revoked. OK if one did, and also
  // if that cannot be known: elsewhere than at the aggregator, and without the aggregator.
  void CheckJoined(const std::string& node, Done done) const;
  // The same, waiting for it.
  absl::Status AwaitJoined(const std::string& node) const;

  // NOT_RECORDED if the audit log does not have it.
  void RecordRemoval(const v1::ShareKey& key, const std::string& actor, const std::string& relay,
                     Done done) const;

 private:
  const ShareParts parts_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_AGGREGATOR_CLIENT_H_
