// The number of the current attempt, which survives restarts of the process.
#ifndef MUSTER_SERVICES_CLIENT_ATTEMPT_STATE_H_
#define MUSTER_SERVICES_CLIENT_ATTEMPT_STATE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/unique_fd.h"

namespace muster::client {

// A file in the state folder, with a lock: two processes that deliver the same result would take
// the upload over from each other forever. Without a folder the number is only in memory. Not
// thread-safe.
class AttemptState {
 public:
  // Opens the state in `folder` (created with mode 0700; empty: none) for the named result. Fails
  // with ABORTED (ALREADY_RUNNING) if another process holds the lock.
  static absl::StatusOr<std::unique_ptr<AttemptState>> Open(const std::string& folder,
                                                            std::string_view run,
                                                            std::string_view plugin,
                                                            std::string_view node);

  // Returns the attempt for content with this fingerprint: the previous one for the same content,
  // so that its upload is resumed; otherwise the next number.
  absl::StatusOr<int64_t> Begin(std::string_view fingerprint);

  // Returns a higher number, at least `least`, for the same content: the service cannot use the
  // bytes of this attempt, or knows a later one.
  absl::StatusOr<int64_t> Next(int64_t least = 1);

 private:
  AttemptState(std::string path, UniqueFd lock);
  absl::Status Save();

  const std::string path_;  // empty: only in memory
  const UniqueFd lock_;
  int64_t attempt_ = 0;
  std::string fingerprint_;
};

// Returns a unique file name for each (run, plugin, node) of any length.
std::string StateName(std::string_view run, std::string_view plugin, std::string_view node);

// Removes the state with that name in `folder`, if there is one. Returns false if it is in use.
bool RemoveAttemptState(const std::string& folder, std::string_view name);

// The number of newest states that remain in a folder.
inline constexpr size_t kMaxStates = 1'000;

// States by the names of StateName, with the time at which each was last written.
using StoredStates = std::map<std::string, std::filesystem::file_time_type>;

// Adds the state to which a file or folder belongs by its name, if there is one.
void AddState(const std::filesystem::directory_entry& entry, StoredStates* states);

// Returns the states that were last written longer ago than any run lasts, and the oldest ones
// beyond kMaxStates. A wrong clock makes a state seem old: the caller must not remove one in use.
std::vector<std::string> ExcessStates(const StoredStates& states);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_ATTEMPT_STATE_H_
