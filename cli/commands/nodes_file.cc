#include "cli/commands/nodes_file.h"

#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/commands/file_argument.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "services/common/base/new_name.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"

namespace muster::cli {
namespace {

// A name has at most 253 bytes: this is enough for the largest run.
constexpr size_t kMaxNodesFile = size_t{64} << 20;

absl::StatusOr<std::string> ReadText(const std::string& file) {
  return ReadFileArgument(file, kMaxNodesFile);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseNodesFile(std::string_view text,
                                                        const std::string& file) {
  std::vector<std::string> nodes;
  std::set<std::string> seen;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(ToAbsl(text), '\n')) {
    ++number;
    const absl::string_view name = absl::StripAsciiWhitespace(line);
    if (name.empty() || name.front() == '#') continue;
    const absl::Status valid = ValidateNewName("node", ToStd(name));
    if (!valid.ok()) return AsUsageError(valid, absl::StrCat(Printable(file), ":", number));
    if (seen.insert(std::string(name)).second) nodes.emplace_back(name);
  }
  if (!nodes.empty()) return nodes;
  return UsageError(absl::StrCat(Printable(file), " contains no name of a node"),
                    "Write one name on each line.");
}

absl::Status AddNodesOfFile(const std::string& file, std::vector<std::string>* nodes) {
  if (file.empty()) return absl::OkStatus();
  const auto text = ReadText(file);
  if (!text.ok()) return WithSubject(text.status(), absl::StrCat("file ", file));
  ASSIGN_OR_RETURN(auto listed, ParseNodesFile(*text, file));
  const std::set<std::string> named(nodes->begin(), nodes->end());
  for (std::string& node : listed) {
    if (!named.contains(node)) nodes->push_back(std::move(node));
  }
  return absl::OkStatus();
}

}  // namespace muster::cli
