// The number of the attempt that is being delivered, kept over restarts of the process.
#ifndef MUSTER_SERVICES_CLIENT_ATTEMPT_STATE_H_
#define MUSTER_SERVICES_CLIENT_ATTEMPT_STATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/unique_fd.h"

namespace muster::client {

// A file in the state folder, with a lock: two processes that deliver the same result would take
// the upload from each other for ever. Without a folder the number lives in memory. Not
// thread-safe.
class AttemptState {
 public:
  // `folder` (made if it is not there, mode 0700; empty: none) and the result's names. ABORTED
  // (ALREADY_RUNNING) if another process holds the lock.
  static absl::StatusOr<std::unique_ptr<AttemptState>> Open(const std::string& folder,
                                                            std::string_view run,
                                                            std::string_view plugin,
                                                            std::string_view node);

  // The attempt for a content with this fingerprint: the one before if it was the same content, so
  // that its upload goes on; else the next number.
  absl::StatusOr<int64_t> Begin(std::string_view fingerprint);

  // Another number for the same content: what the service has of this attempt is of no use.
  absl::StatusOr<int64_t> Next();

 private:
  AttemptState(std::string path, UniqueFd lock);
  absl::Status Save();

  const std::string path_;  // empty: in memory alone
  const UniqueFd lock_;
  int64_t attempt_ = 0;
  std::string fingerprint_;
};

// A file name of its own for each (run, plugin, node), whatever their lengths.
std::string StateName(std::string_view run, std::string_view plugin, std::string_view node);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_ATTEMPT_STATE_H_
