// Generated from templates.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/templates.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status InvalidSchema(std::string_view place, std::string_view problem) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_SCHEMA",
                   absl::StrCat("invalid JSON Schema at ", ToAbsl(place), ": ", ToAbsl(problem)),
                   "Correct the schema. It is JSON Schema draft-07, whose references stay in the document.");
}

absl::Status InvalidDocument(std::string_view problem) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_DOCUMENT",
                   absl::StrCat("invalid document: ", ToAbsl(problem)),
                   "Correct the document, and send it again.");
}

}  // namespace muster::errors
