// Stores the outcomes of the steps of shared files, and wakes the router.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_OUTCOMES_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_OUTCOMES_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "services/common/base/clock.h"
#include "services/relay/files/share_parts.h"
#include "services/relay/files/share_store.h"

namespace muster {

// Each method changes the record that the caller read, unless it changed meanwhile: then the router
// looks at it again. Thread-safe; every call waits for the disk.
class ShareOutcomes {
 public:
  // `store`, `clock` and `routing` outlive it. `routing` is woken after each change; `relay` is the
  // name of this relay.
  ShareOutcomes(ShareStore& store, const Clock& clock, std::string relay, ShareRouting& routing)
      : store_(store), clock_(clock), relay_(std::move(relay)), routing_(routing) {}

  // The file reached the current or last parent of its target: this relay.
  void Delivered(const ShareRecord& record) const;
  // The file cannot be forwarded; the parent, if it sent the file, is to be notified.
  void Refused(const ShareRecord& record, const absl::Status& why) const;
  // The parent has the file.
  void PassedUp(const ShareRecord& record, const std::string& relay) const;
  // The parent knows the state of the file.
  void Reported(const ShareRecord& record) const;
  // The parent removes the file, here or at the child relay that has it.
  void RemovedByParent(const ShareRecord& record) const;

 private:
  void Change(const ShareRecord& before, ShareRecord after) const;

  ShareStore& store_;
  const Clock& clock_;
  const std::string relay_;
  ShareRouting& routing_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_OUTCOMES_H_
