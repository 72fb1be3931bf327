// The reason that an error result carries.
#ifndef MUSTER_SERVICES_COMMON_UPLOAD_ERROR_REASON_H_
#define MUSTER_SERVICES_COMMON_UPLOAD_ERROR_REASON_H_

#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "services/common/base/strings.h"
#include "services/common/base/utf8.h"
#include "services/common/store/records.h"

namespace muster {

// Returns the text of an error result as it is stored: valid UTF-8, at most kMaxErrorText bytes,
// and never empty.
inline std::string ErrorReason(std::string_view content) {
  const std::string text(CutUtf8(CleanUtf8(content), kMaxErrorText));
  if (absl::StripAsciiWhitespace(text).empty()) return "the sender gave no reason";
  return text;
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_UPLOAD_ERROR_REASON_H_
