// Offers of shared files to child relays, and requests to remove them.
#ifndef MUSTER_SERVICES_RELAY_FILES_CHILD_OFFERS_H_
#define MUSTER_SERVICES_RELAY_FILES_CHILD_OFFERS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/shares.pb.h"
#include "services/common/base/clock.h"
#include "services/relay/files/share_record.h"
#include "services/relay/topology/topology_view.h"

namespace muster {

// Sends each offer once for each attachment of the child, and again after a while: the child may
// have missed it. At most 100 offers go into one message. Not thread-safe.
class ChildOffers {
 public:
  // `tree` and `clock` outlive it.
  ChildOffers(const TopologyView& tree, const Clock& clock, absl::Duration again)
      : tree_(tree), clock_(clock), again_(again) {}

  // Adds the file if it is due; `read` returns it with its signature.
  void Offer(const ShareRecord& record, const std::string& child,
             absl::FunctionRef<absl::StatusOr<v1::SharedFile>()> read);
  // Adds a request to remove the file at the child relay that has it, if it is due.
  void RequestRemoval(const ShareRecord& record);

  // Sends what was added.
  void Send();

  // Forgets the offers of all records but those that are `wanted`.
  void Retain(absl::FunctionRef<bool(const std::string& id)> wanted);

 private:
  struct Sent {
    std::weak_ptr<ChildLink> link;
    absl::Duration again;  // monotonic
  };
  using SentById = std::map<std::string, Sent>;

  // Returns whether to send it now, and notes that it is sent.
  bool IsDue(SentById& sent, const std::string& id, const std::shared_ptr<ChildLink>& link);

  const TopologyView& tree_;
  const Clock& clock_;
  const absl::Duration again_;
  SentById offers_;                                  // by id of the record
  SentById removals_;                                // likewise
  std::map<std::string, v1::ShareOffers> messages_;  // by child
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_CHILD_OFFERS_H_
