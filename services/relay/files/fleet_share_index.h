// Shared files of all relays, for operators at the root relay.
#ifndef MUSTER_SERVICES_RELAY_FILES_FLEET_SHARE_INDEX_H_
#define MUSTER_SERVICES_RELAY_FILES_FLEET_SHARE_INDEX_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/executor.h"
#include "services/relay/files/local_share_index.h"
#include "services/relay/files/share_aggregator_client.h"
#include "services/relay/files/share_parts.h"
#include "services/relay/files/share_queries.h"

namespace muster {

// Thread-safe. Its methods wait for the disk, and call `done` on any thread.
class FleetShareIndex {
 public:
  // All of it outlives this object. `disk` runs what waits for the disk.
  FleetShareIndex(ShareParts parts, const LocalShareIndex& local_index, ShareQueries& queries,
                  const ShareAggregatorClient& aggregator, Executor& disk)
      : parts_(std::move(parts)),
        local_index_(local_index),
        queries_(queries),
        aggregator_(aggregator),
        disk_(disk) {}

  // Errors: those of ShareService for operators.
  void List(const v1::ListSharesRequest& request,
            std::function<void(absl::StatusOr<v1::ListSharesResponse>)> done) const;
  void Get(const v1::GetShareRequest& request,
           std::function<void(absl::StatusOr<v1::Share>)> done) const;
  // `actor` is the URI for the audit log.
  void Remove(const v1::RemoveShareRequest& request, const std::string& actor,
              std::function<void(const absl::Status&)> done) const;

 private:
  struct Found {
    std::string relay;
    v1::Share share;
  };
  using HandleFound = std::function<void(absl::StatusOr<Found>)>;

  bool IsHere(const std::string& relay) const { return relay == parts_.tree.name(); }
  std::vector<std::string> Candidates(const v1::ShareKey& key, const std::string& relay) const;
  // Asks the relays, the last one first; `so_far` is the error of the previous ones.
  void Locate(const v1::ShareKey& key, std::vector<std::string> relays, HandleFound done,
              const absl::Status& so_far = absl::OkStatus()) const;
  void RemoveAt(const v1::ShareKey& key, const std::string& relay,
                std::function<void(const absl::Status&)> done) const;

  const ShareParts parts_;
  const LocalShareIndex& local_index_;
  ShareQueries& queries_;
  const ShareAggregatorClient& aggregator_;
  Executor& disk_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_FLEET_SHARE_INDEX_H_
