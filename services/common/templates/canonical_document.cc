#include "services/common/templates/canonical_document.h"

#include "nlohmann/json.hpp"
#include "services/common/base/status_macros.h"
#include "services/common/errors/templates.h"
#include "services/common/identity/signed_command.h"
#include "services/common/templates/exact_json.h"
#include "services/common/templates/yaml_to_json.h"

namespace muster {

absl::StatusOr<std::string> CanonicalDocument(std::string_view text) {
  ASSIGN_OR_RETURN(const nlohmann::json json, YamlToJson(text));
  std::string document = ExactJsonText(json);
  if (document.size() > kMaxDocument) return errors::DocumentTooLarge(kMaxDocument >> 10);
  return document;
}

}  // namespace muster
