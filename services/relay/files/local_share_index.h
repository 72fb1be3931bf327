// The shared files that this relay knows, for callers that may read them.
#ifndef MUSTER_SERVICES_RELAY_FILES_LOCAL_SHARE_INDEX_H_
#define MUSTER_SERVICES_RELAY_FILES_LOCAL_SHARE_INDEX_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/relay/files/share_parts.h"

namespace muster {

// Thread-safe.
class LocalShareIndex {
 public:
  // `routing` outlives it; it is woken when a file may be able to move.
  LocalShareIndex(ShareParts parts, ShareRouting& routing)
      : parts_(std::move(parts)), routing_(routing) {}

  // Checks the size and the token of a page, which begins after `after`: INVALID_PAGE_SIZE,
  // INVALID_PAGE_TOKEN.
  static absl::Status CheckPage(const v1::ListSharesRequest& request, ShareName* after);

  // Returns a page. With a node: the files for it and the files that it shared. Without: all files
  // that are stored here, and the usage of the quota. Errors: those of CheckPage.
  absl::StatusOr<v1::ListSharesResponse> List(const v1::ListSharesRequest& request,
                                              const std::string* node) const;

  struct Known {
    v1::Share share;  // with signature and certificates
    bool passed_up = false;
  };
  // Returns the file; waits for the disk.
  std::optional<Known> Get(const v1::ShareKey& key) const;

  // Removes the file here, or requests its removal at the child relay that has it; waits for the
  // disk. Sets `at_parent` if the parent has it: ask the parent then. SHARE_NOT_FOUND.
  absl::Status Remove(const v1::ShareKey& key, bool* at_parent) const;

 private:
  const ShareParts parts_;
  ShareRouting& routing_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_LOCAL_SHARE_INDEX_H_
