// How much of the spool's limits each entry and each node uses.
#ifndef MUSTER_SERVICES_RELAY_SPOOL_SPOOL_QUOTA_H_
#define MUSTER_SERVICES_RELAY_SPOOL_SPOOL_QUOTA_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"
#include "services/common/base/mutex.h"

namespace muster {

// The charges of all entries, which never grow past the limits of the spool or past a quarter of
// them for one node. Thread-safe; nothing waits.
class SpoolQuota {
 public:
  SpoolQuota(int64_t max_bytes, int64_t max_entries)
      : max_bytes_(max_bytes), max_entries_(max_entries) {}

  // Charges a new entry with `bytes` of content. RESOURCE_EXHAUSTED (SPOOL_FULL) changes nothing.
  absl::Status Add(const std::string& id, const std::string& node, int64_t bytes);

  // Charges an entry for `bytes` of content. A charge that is sufficient stays; others grow in
  // steps of 4 MiB. SPOOL_FULL changes nothing; NOT_FOUND (UPLOAD_NOT_FOUND).
  absl::Status Grow(std::string_view id, int64_t bytes);

  // Charges an entry that was stored before, without a limit.
  void Restore(const std::string& id, const std::string& node, int64_t bytes);

  // Charges an entry for exactly `bytes` of content, without a limit.
  void Set(std::string_view id, int64_t bytes);

  void Release(std::string_view id);

  struct Usage {
    int64_t entries = 0;
    int64_t bytes = 0;
  };
  Usage usage() const;

 private:
  struct Charge {
    std::string node;
    int64_t bytes = 0;
  };

  absl::Status Check(const Usage& node, int64_t bytes, int64_t entries) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Insert(const std::string& id, const std::string& node, int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Apply(Charge& charge, int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Usage UsageOf(const std::string& node) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t max_bytes_;
  const int64_t max_entries_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, Charge> charges_ ABSL_GUARDED_BY(mutex_);  // by id
  std::map<std::string, Usage> nodes_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_SPOOL_SPOOL_QUOTA_H_
