#include "cli/commands/labels.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/exit_code.h"

namespace muster::cli {

absl::Status AddLabels(const std::vector<std::string>& texts, LabelMap* labels) {
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return UsageError(absl::StrCat("\"", text, "\" is not a label"),
                        "Write key=value, such as rack=b1.");
    }
    if (!labels->insert({text.substr(0, equals), text.substr(equals + 1)}).second) {
      return UsageError(absl::StrCat("label \"", text.substr(0, equals), "\" is repeated"),
                        "Name each key once.");
    }
  }
  return absl::OkStatus();
}

std::string LabelText(const LabelMap& labels) {
  if (labels.empty()) return "-";
  const std::map<std::string, std::string> sorted(labels.begin(), labels.end());
  return absl::StrJoin(sorted, ",", absl::PairFormatter("="));
}

}  // namespace muster::cli
