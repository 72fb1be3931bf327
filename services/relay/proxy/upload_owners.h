// Which stream carries each forwarded upload.
#ifndef MUSTER_SERVICES_RELAY_PROXY_UPLOAD_OWNERS_H_
#define MUSTER_SERVICES_RELAY_PROXY_UPLOAD_OWNERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/base/mutex.h"

namespace muster {

// Each upload of a caller has at most one owner: a later stream of the same caller takes it over.
// The stream of a lost connection may exist for a minute longer, and must not prevent that its
// sender resumes the upload. Thread-safe; outlives its ownerships.
class UploadOwners {
 public:
  // Runs at most once, without a lock, when a later stream takes the upload over; must not block.
  using OnTakenOver = std::function<void()>;

  // The stream owns the upload until its last copy is destroyed, or until it is taken over.
  using Ownership = std::shared_ptr<void>;

  // Makes a stream the owner of upload `id` of `caller`, a URI. The earlier owner is taken over
  // before this returns. ABORTED (TAKEN_OVER) if the epoch of the owner is higher.
  absl::StatusOr<Ownership> Acquire(const std::string& caller, const std::string& id, int64_t epoch,
                                    OnTakenOver on_taken_over) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Name = std::pair<std::string, std::string>;  // caller and id
  struct Owner {
    uint64_t number = 0;
    int64_t epoch = 0;
    OnTakenOver on_taken_over;
  };

  void Release(const Name& name, uint64_t number) ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Name, Owner> owners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_UPLOAD_OWNERS_H_
