// What is known of shared files at this one relay, for whoever may ask.
#ifndef MUSTER_SERVICES_RELAY_FILES_LOCAL_SHARE_INDEX_H_
#define MUSTER_SERVICES_RELAY_FILES_LOCAL_SHARE_INDEX_H_

#include <functional>
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
  // `changed` is called whenever there may be something to pass on.
  LocalShareIndex(ShareParts parts, std::function<void()> changed)
      : parts_(std::move(parts)), changed_(std::move(changed)) {}

  // Whether the request asks for a page: INVALID_PAGE_SIZE, INVALID_PAGE_TOKEN. The page begins
  // after `after`.
  static absl::Status CheckPage(const v1::ListSharesRequest& request, ShareName* after);

  // A page: of a node what is for it and what it shared; of nobody in particular all that lies
  // here, with what there is room for. Errors: those of CheckPage.
  absl::StatusOr<v1::ListSharesResponse> List(const v1::ListSharesRequest& request,
                                              const std::string* node) const;

  struct Known {
    v1::Share share;  // with what the source signed, whole
    bool passed_up = false;
  };
  // May wait for the disk.
  std::optional<Known> Get(const v1::ShareKey& key) const;

  // Removes it here, or where it was passed on to; waits for the disk. `above` tells that it was
  // passed on up: the parent has to be asked. SHARE_NOT_FOUND.
  absl::Status Remove(const v1::ShareKey& key, bool* at_parent) const;

 private:
  const ShareParts parts_;
  const std::function<void()> changed_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_LOCAL_SHARE_INDEX_H_
