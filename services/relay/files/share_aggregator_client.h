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

// The register of nodes, as the router uses it. Thread-safe.
class TargetRegister {
 public:
  virtual ~TargetRegister() = default;

  // Returns TARGET_UNKNOWN with the cause if no node of this name ever joined, or if it was removed
  // or revoked, or is a relay; OK if it joined, or if the answer is unknown. Waits for the answer.
  virtual absl::Status AwaitJoined(const std::string& node) const = 0;
};

// The calls have a deadline of 5 s and call `done` on a thread of gRPC. Thread-safe.
class ShareAggregatorClient final : public TargetRegister {
 public:
  using Done = std::function<void(const absl::Status&)>;

  explicit ShareAggregatorClient(ShareParts parts) : parts_(std::move(parts)) {}

  // As AwaitJoined, without a wait. The answer is unknown at other relays than the root relay, and
  // without the aggregator.
  void CheckJoined(const std::string& node, Done done) const;
  absl::Status AwaitJoined(const std::string& node) const override;

  // Writes a removal to the audit log. NOT_RECORDED if that fails.
  void RecordRemoval(const v1::ShareKey& key, const std::string& actor, const std::string& relay,
                     Done done) const;

 private:
  const ShareParts parts_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_AGGREGATOR_CLIENT_H_
