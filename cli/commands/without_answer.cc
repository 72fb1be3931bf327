#include "cli/commands/without_answer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/output/format.h"
#include "services/common/base/names.h"
#include "services/common/base/strings.h"

namespace muster::cli {
namespace {

constexpr size_t kNodesNamed = 10;

std::string NamedText(const std::string& what, const std::vector<std::string>& nodes) {
  if (nodes.empty()) return "";
  return absl::StrCat(what, ": ", Printable(ListNames(nodes, kNodesNamed)), "\n");
}

}  // namespace

std::string WithoutAnswerText(const std::vector<std::string>& nodes,
                              const absl::StatusOr<AttachedMap>& attached) {
  if (!attached.ok()) {
    return NamedText(
        absl::StrCat("attachment unknown (", Printable(ToStd(attached.status().message())), ")"),
        nodes);
  }
  const auto is_attached = [&attached](const std::string& node) {
    const auto child = attached->find(node);
    return child != attached->end() && child->second.attached();
  };
  std::vector<std::string> not_responding;
  std::vector<std::string> unreachable;
  for (const std::string& node : nodes) {
    (is_attached(node) ? not_responding : unreachable).push_back(node);
  }
  return NamedText("not responding", std::move(not_responding)) +
         NamedText("unreachable", std::move(unreachable));
}

}  // namespace muster::cli
