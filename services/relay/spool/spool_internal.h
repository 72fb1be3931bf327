// What the spool keeps of each entry: for spool.cc, spool_in.cc and spool_out.cc alone.
#ifndef MUSTER_SERVICES_RELAY_SPOOL_SPOOL_INTERNAL_H_
#define MUSTER_SERVICES_RELAY_SPOOL_SPOOL_INTERNAL_H_

#include <deque>
#include <memory>
#include <string>

#include "services/common/upload/blob_names.h"
#include "services/relay/spool/spool.h"
#include "services/relay/spool/spool_entry.h"

namespace muster {

// What an entry costs beside its bytes: its file, its place in memory.
inline constexpr int64_t kOverhead = 8 * 1024;

// Of all but `id`, `description` and `recorded`: guarded by the spool's mutex.
struct Spool::Entry {
  std::string id;
  v1::ResultDescription description;
  bool recorded = false;  // its o- file is there; of the session's strand alone
  bool complete = false;
  bool committing = false;  // is being made complete: it must not go away
  int64_t charged = 0;
  int64_t epoch = 0;
  absl::Time touched;                      // when it was opened last
  std::shared_ptr<UploadSession> session;  // until it is complete
  // Of one that is complete.
  uint64_t order = 0;
  int64_t size = 0;
  std::string sha256;
  absl::Time expires;

  const std::string& node() const { return description.key().node(); }
  std::string blob() const { return ResultBlobName(description.key().run(), id); }
};

// Of one node; there is one as long as it has entries.
struct Spool::Queue {
  std::deque<std::string> ready;  // ids, in order
  bool out = false;               // the first is being delivered
  absl::Duration not_before;      // monotonic
  int64_t bytes = 0;
  int64_t entries = 0;
};

struct Spool::Figures {
  explicit Figures(Metrics& metrics);

  Gauge entries;
  Gauge bytes;
  Gauge max_bytes;
  Gauge max_results;
  Counter taken;
  Counter refused;
  Labelled<Counter> outcomes;
};

UploadRecord ToRecord(const v1::OpenUploadRequest& request, const std::string& id, int64_t epoch);

// The name of (key, attempt) in a map.
std::string AttemptName(const v1::ResultDescription& description);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_SPOOL_SPOOL_INTERNAL_H_
