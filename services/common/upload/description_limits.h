// The limits of the texts that describe a result.
#ifndef MUSTER_SERVICES_COMMON_UPLOAD_DESCRIPTION_LIMITS_H_
#define MUSTER_SERVICES_COMMON_UPLOAD_DESCRIPTION_LIMITS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "muster/v1/results.pb.h"
#include "services/common/errors/runs.h"

namespace muster {

inline constexpr size_t kMaxMediaType = 255;
inline constexpr size_t kMaxFileNameBytes = 1024;

// Returns OK if the aggregator accepts the texts. A relay checks them as well: it must not spool a
// result that will be refused. TEXT_TOO_LONG.
inline absl::Status CheckTexts(const v1::ResultDescription& description) {
  if (description.media_type().size() > kMaxMediaType) {
    return errors::TextTooLong("media_type", kMaxMediaType);
  }
  if (description.file_name().size() > kMaxFileNameBytes) {
    return errors::TextTooLong("file_name", kMaxFileNameBytes);
  }
  return absl::OkStatus();
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_UPLOAD_DESCRIPTION_LIMITS_H_
