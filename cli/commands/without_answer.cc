#include "cli/commands/without_answer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/output/format.h"
#include "services/common/base/strings.h"

namespace muster::cli {
namespace {

constexpr size_t kNodesNamed = 10;

std::string NamedText(const std::string& what, std::vector<std::string> nodes) {
  if (nodes.empty()) return "";
  const size_t more = nodes.size() - std::min(nodes.size(), kNodesNamed);
  nodes.resize(nodes.size() - more);
  return absl::StrCat(what, ": ", Printable(absl::StrJoin(nodes, ", ")),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "", "\n");
}

}  // namespace

std::string WithoutAnswerText(const std::vector<std::string>& nodes,
                              const absl::StatusOr<AttachedMap>& attached) {
  if (!attached.ok()) {
    return NamedText(
        absl::StrCat("attachment unknown (", Printable(ToStd(attached.status().message())), ")"),
        nodes);
  }
  std::vector<std::string> not_responding;
  std::vector<std::string> unreachable;
  for (const std::string& node : nodes) {
    const auto child = attached->find(node);
    const bool is_attached = child != attached->end() && child->second.attached();
    (is_attached ? not_responding : unreachable).push_back(node);
  }
  return NamedText("not responding", std::move(not_responding)) +
         NamedText("unreachable", std::move(unreachable));
}

}  // namespace muster::cli
