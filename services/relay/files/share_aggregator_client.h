// Calls of the root relay to the aggregator about shared files.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_AGGREGATOR_CLIENT_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_AGGREGATOR_CLIENT_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "muster/v1/shares.pb.h"
#include "services/relay/files/share_parts.h"

namespace muster {

// The calls have a deadline of 5 s and call `done` on a thread of gRPC. Thread-safe.
class ShareAggregatorClient {
 public:
  using Done = std::function<void(const absl::Status&)>;

  explicit ShareAggregatorClient(ShareParts parts) : parts_(std::move(parts)) {}

  // Passes TARGET_UNKNOWN if no node of this name ever joined, or if it is revoked. Passes OK if it
  // joined, or if the answer is unknown: at other relays, and without the aggregator.
  void CheckJoined(const std::string& node, Done done) const;
  // The same; waits for the answer.
  absl::Status AwaitJoined(const std::string& node) const;

  // Writes a removal to the audit log. NOT_RECORDED if that fails.
  void RecordRemoval(const v1::ShareKey& key, const std::string& actor, const std::string& relay,
                     Done done) const;

 private:
  const ShareParts parts_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_AGGREGATOR_CLIENT_H_
