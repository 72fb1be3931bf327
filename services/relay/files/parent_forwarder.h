// Sends files to the parent, and reports to it the state of the files that it offered.
#ifndef MUSTER_SERVICES_RELAY_FILES_PARENT_FORWARDER_H_
#define MUSTER_SERVICES_RELAY_FILES_PARENT_FORWARDER_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "services/relay/files/retry_schedule.h"
#include "services/relay/files/share_outcomes.h"
#include "services/relay/files/share_parent.h"
#include "services/relay/files/share_store.h"

namespace muster {

// Thread-safe. Calls return immediately; the work waits for disk and network on another thread.
class ParentForwarder {
 public:
  // All of it outlives this object. `elsewhere`: the least back-off of SendIfElsewhere. `post` runs
  // the work.
  ParentForwarder(ShareStore& store, ShareParent& parent, const ShareOutcomes& outcomes,
                  const Clock& clock, const BackoffOptions& times, absl::Duration elsewhere,
                  PostTask post);

  // Sends a file, unless it is being sent or its back-off has not ended. A refusal by the parent
  // ends the file.
  void Send(const ShareRecord& record) { Start(record, false); }
  // The same, but the parent takes the file only if it has another route to the target; a refusal
  // changes nothing.
  void SendIfElsewhere(const ShareRecord& record) { Start(record, true); }

  // Reports the state of a file that came from the parent.
  void Report(const ShareRecord& record);
  // Reports that a file which the parent wants to remove is not at this relay.
  void ReportAbsent(const v1::ShareKey& key, const std::string& relay);

  void ResetBackoff() { schedule_.ResetBackoff(); }
  // Forgets the files that are not `wanted`, by their ids.
  void Retain(absl::FunctionRef<bool(const std::string& id)> wanted);

 private:
  void Start(const ShareRecord& record, bool only_if_elsewhere);
  absl::Status SendNow(const ShareRecord& record, bool only_if_elsewhere, const std::string& task);

  ShareStore& store_;
  ShareParent& parent_;
  const ShareOutcomes& outcomes_;
  const absl::Duration elsewhere_;
  const PostTask post_;
  RetrySchedule schedule_;  // of "send/<id>" and "report/<id>"
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_PARENT_FORWARDER_H_
