// What the archive needs to know of a result, and how it gets at them.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_ARCHIVED_RESULT_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_ARCHIVED_RESULT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/io.h"

namespace muster {

enum class ArchivedOutcome { kGenuine, kError, kTimedOut };

// "genuine", "error", "timed_out".
std::string_view OutcomeName(ArchivedOutcome outcome);

// An earlier outcome of the same (plugin, node) that was replaced.
struct ReplacedResult {
  int64_t generation = 0;
  ArchivedOutcome outcome = ArchivedOutcome::kError;
  std::string error;
  absl::Time committed_at;
};

struct ArchivedResult {
  std::string plugin;
  std::string node;  // "global" for a plugin that runs once
  ArchivedOutcome outcome = ArchivedOutcome::kGenuine;
  std::string error;  // why there is no result; empty for a genuine one
  int64_t generation = 1;
  absl::Time committed_at;

  // The file. An error may have one too: what its sender had to say.
  bool has_file = false;
  std::string media_type;  // as claimed
  std::string file_name;   // as the sender called it: may be anything, or empty
  int64_t size = 0;
  std::string sha256;  // 64 hex digits of what was committed; empty: not checked

  // What had arrived of a result that timed out.
  bool has_partial = false;
  int64_t partial_size = 0;

  std::string delivered_by;    // verified URI of the deliverer
  bool node_unproven = false;  // by a credential that is good for any node
  std::string vouched_by;      // URI of the gateway that took a legacy PUT; empty otherwise
  std::vector<ReplacedResult> history;  // oldest first
};

// The results of a run, one at a time. Not thread-safe.
class ResultCursor {
 public:
  virtual ~ResultCursor() = default;

  // The next result, ordered by plugin and then by node, bytewise, each pair once; false at the
  // end. The calls below are about this one.
  virtual absl::StatusOr<bool> Next(ArchivedResult& result) = 0;

  // The file's bytes from their beginning. Called only with has_file, up to twice.
  virtual absl::StatusOr<std::unique_ptr<ByteSource>> Open() = 0;

  // The partial data. Called only with has_partial.
  virtual absl::StatusOr<std::unique_ptr<ByteSource>> OpenPartial() = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_ARCHIVED_RESULT_H_
