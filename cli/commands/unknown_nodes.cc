#include "cli/commands/unknown_nodes.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "cli/output/format.h"
#include "services/common/base/suggestion.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxWarnings = 10;

}  // namespace

std::vector<std::string> UnknownNodeWarnings(const std::vector<std::string>& nodes,
                                             const std::vector<v1::EnrolledNode>& enrolled) {
  std::vector<std::string> warnings;
  if (enrolled.empty()) return warnings;
  std::map<std::string, const v1::EnrolledNode*> known;
  std::vector<std::string> names;
  for (const v1::EnrolledNode& node : enrolled) {
    known[node.name()] = &node;
    names.push_back(node.name());
  }
  size_t more = 0;
  for (const std::string& node : std::set(nodes.begin(), nodes.end())) {
    const auto found = known.find(node);
    const std::string fault =
        found == known.end() ? absl::StrCat("no enrolled node has the name ", Printable(node),
                                            Suggestion(node, names))
        : found->second->is_relay() ? node + " is a relay, and relays run no plugins"
        : found->second->revoked()  ? "node " + node + " is revoked"
                                    : "";
    if (fault.empty()) continue;
    if (warnings.size() == kMaxWarnings) {
      ++more;
      continue;
    }
    warnings.push_back(absl::StrCat(
        "Warning: ", fault, fault.back() == '?' ? "" : ".",
        " If that is a mistake, cancel the run and correct it. Otherwise its results need a "
        "run credential (muster credentials export)."));
  }
  if (more > 0) warnings.push_back(absl::StrCat("... and ", more, " more"));
  return warnings;
}

}  // namespace muster::cli
