// Fetches the files that the parent offers.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_FETCHER_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_FETCHER_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "services/common/base/mutex.h"
#include "services/relay/files/retry_schedule.h"
#include "services/relay/files/share_parent.h"
#include "services/relay/files/share_parts.h"

namespace muster {

// The open offers of the parent: one for each key, the latest. An offer stays open until its file
// is stored, or until it is refused and the parent was notified. Thread-safe.
class ShareFetcher {
 public:
  // `parent` and `routing` outlive it. `post` runs fetches, which wait for disk and network;
  // `routing` is woken when an attempt ends.
  ShareFetcher(ShareParts parts, ShareParent& parent, const BackoffOptions& times, PostTask post,
               ShareRouting& routing);

  // Adds offers, at most 1,000; the parent sends the others again. Does not wait.
  void HandleOffers(const v1::ShareOffers& offers) ABSL_LOCKS_EXCLUDED(mutex_);

  // Starts the fetches that are due, at most 16 at a time. Does not wait.
  void StartDue() ABSL_LOCKS_EXCLUDED(mutex_);

  void ResetBackoff() { schedule_.ResetBackoff(); }

 private:
  void Fetch(const v1::SharedFile& file) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Store(const v1::SharedFile& file);
  absl::Status Refuse(const v1::SharedFile& file, const absl::Status& why);

  const ShareParts parts_;
  ShareParent& parent_;
  const PostTask post_;
  ShareRouting& routing_;
  RetrySchedule schedule_;
  Mutex mutex_;
  std::map<std::string, v1::SharedFile> offers_ ABSL_GUARDED_BY(mutex_);  // by key
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_FETCHER_H_
