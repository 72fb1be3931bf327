// A result as the archive needs it, and access to its bytes.
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
  std::string error;  // the reason for the missing result; empty for a genuine one
  int64_t generation = 1;
  absl::Time committed_at;

  // True if there is a file. An error result may have one too: additional output of its sender.
  bool has_file = false;
  std::string media_type;  // as the sender declared it
  std::string file_name;   // from the sender: any text, or empty
  int64_t size = 0;
  std::string sha256;  // 64 hex digits of the committed bytes; empty: not checked

  // True if a part of a timed-out result arrived.
  bool has_partial = false;
  int64_t partial_size = 0;

  std::string delivered_by;    // verified URI of the sender
  bool node_unproven = false;  // with a credential for any node
  std::string vouched_by;      // URI of the gateway that forwarded a legacy PUT; otherwise empty
  std::vector<ReplacedResult> history;  // oldest first
};

// The results of a run, one at a time. Not thread-safe.
class ResultCursor {
 public:
  virtual ~ResultCursor() = default;

  // Advances to the next result and returns it. Results are ordered by plugin and then by node,
  // bytewise, each pair once. Returns false at the end. The other functions refer to this result.
  virtual absl::StatusOr<bool> Next(ArchivedResult& result) = 0;

  // Opens the file from its beginning. Called only if has_file is set, at most twice.
  virtual absl::StatusOr<std::unique_ptr<ByteSource>> Open() = 0;

  // Opens the partial bytes. Called only if has_partial is set.
  virtual absl::StatusOr<std::unique_ptr<ByteSource>> OpenPartial() = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_ARCHIVED_RESULT_H_
