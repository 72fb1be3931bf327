#include "cli/commands/without_answer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/output/format.h"
#include "services/common/base/names.h"
#include "services/common/base/strings.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

constexpr size_t kNodesNamed = 10;
// After this time, twice this time and so on, the nodes without an answer are named.
constexpr absl::Duration kReminderAfter = absl::Seconds(5);

std::string NamedText(const std::string& what, const std::vector<std::string>& nodes) {
  if (nodes.empty()) return "";
  return absl::StrCat(what, ": ", Printable(ListNames(nodes, kNodesNamed)), "\n");
}

// Names the nodes without an answer, if they are not those in `*printed`.
void PrintWithoutAnswer(JobOutput& output, const OperatorContext& context,
                        std::vector<std::string> nodes, const std::string& cancel,
                        std::string* printed) {
  const auto attached = ListAllAttached(context);
  if (nodes.empty() && attached.ok()) {
    for (const auto& [name, child] : *attached) {
      if (!child.is_relay()) nodes.push_back(name);
    }
  }
  const std::string text = WithoutAnswerText(output.WithoutAnswer(nodes), attached);
  if (text == *printed) return;
  *printed = text;
  if (text.empty()) return;
  const v1::Job& job = output.job();
  output.PrintNotice(absl::StrCat("Nodes without an answer:\n", text, "The job ends at ",
                                  HumanTime(FromProto(job.deadline()), absl::Now()),
                                  " at the latest.\nCancel it: ", cancel));
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
  std::vector<std::string> silent;  // they may load an image or read files before the start
  std::vector<std::string> unreachable;
  for (const std::string& node : nodes) {
    (is_attached(node) ? silent : unreachable).push_back(node);
  }
  return NamedText("attached, nothing reported yet", std::move(silent)) +
         NamedText("unreachable", std::move(unreachable));
}

WatchReminder RemindOfSilentNodes(JobOutput& output, const OperatorContext& context,
                                  const std::vector<std::string>& nodes,
                                  const std::string& cancel) {
  return {kReminderAfter, [&output, &context, nodes, cancel, printed = std::string()]() mutable {
            PrintWithoutAnswer(output, context, nodes, cancel, &printed);
          }};
}

}  // namespace muster::cli
