#include "cli/commands/run_request.h"

#include <set>
#include <string_view>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/commands/nodes_file.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "services/common/base/error.h"
#include "services/common/base/random_id.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/utf8.h"
#include "services/common/errors/cli.h"

namespace muster::cli {
namespace {

constexpr size_t kRequestIdBytes = 16;
constexpr size_t kMaxDefinition = size_t{1} << 20;

absl::StatusOr<std::string> ReadDefinition(const std::string& file) {
  return file == "-" ? ReadStdinBounded(kMaxDefinition) : ReadFileBounded(file, kMaxDefinition);
}

// Sets the field if the option was given. "0" disables the limit.
absl::Status SetDuration(const char* option, const std::string& text, auto mutable_field) {
  if (text.empty()) return absl::OkStatus();
  if (text == "0") {
    mutable_field()->set_seconds(0);
    return absl::OkStatus();
  }
  const auto duration = DurationArgument(text);
  if (!duration.ok()) return AsUsageError(duration.status(), option);
  mutable_field()->set_seconds(absl::ToInt64Seconds(*duration));
  return absl::OkStatus();
}

absl::Status SetDurations(const RunArguments& arguments, v1::CreateRunRequest& request) {
  absl::Status status =
      SetDuration("--timeout", arguments.timeout, [&] { return request.mutable_timeout(); });
  status.Update(SetDuration("--start-grace", arguments.start_grace,
                            [&] { return request.mutable_start_grace(); }));
  status.Update(SetDuration("--lost-after", arguments.lost_after,
                            [&] { return request.mutable_lost_after(); }));
  return status;
}

// Returns the first name that the list contains twice, or an empty text.
std::string NamedTwice(const std::vector<std::string>& names) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) return name;
  }
  return "";
}

// Returns `line` with "FILE" for "plugins[3]", the position in the request, if that is a file.
// Otherwise returns `line`.
std::string WithFileName(std::string_view line, const RunArguments& arguments) {
  constexpr std::string_view kField = "plugins[";
  const size_t begin = line.find(kField);
  const size_t end = begin == std::string_view::npos ? begin : line.find(']', begin);
  if (end == std::string_view::npos) return std::string(line);
  const std::string_view digits = line.substr(begin + kField.size(), end - begin - kField.size());
  const size_t built_in = arguments.plugins.size();
  size_t index = 0;
  if (!absl::SimpleAtoi(ToAbsl(digits), &index) || index < built_in ||
      index - built_in >= arguments.files.size()) {
    return std::string(line);
  }
  return absl::StrCat(ToAbsl(line.substr(0, begin)), Printable(arguments.files[index - built_in]),
                      ToAbsl(line.substr(end + 1)));
}

}  // namespace

absl::StatusOr<v1::CreateRunRequest> MakeRunRequest(const RunArguments& arguments) {
  v1::CreateRunRequest request;
  request.set_request_id(RandomHex(kRequestIdBytes));  // to recognise a repeated request
  request.set_title(arguments.title);
  request.set_fail_fast(arguments.fail_fast);
  for (const std::string& plugin : arguments.plugins) request.add_plugins(plugin);
  for (const std::string& file : arguments.files) {
    absl::StatusOr<std::string> definition = ReadDefinition(file);
    if (!definition.ok()) {
      return WithSubject(definition.status(), absl::StrCat("plugin file ", file));
    }
    if (!IsUtf8(*definition)) {
      return UsageError(absl::StrCat("plugin file ", file, " is not UTF-8"),
                        "Convert it, for example with `iconv -f LATIN1 -t UTF-8`.");
    }
    request.add_plugins(*std::move(definition));
  }
  if (request.plugins().empty()) {
    return UsageError("a plugin is required",
                      "Name a built-in plugin with --plugin (hostfacts, systemd-logs), or a "
                      "definition with -f FILE.");
  }
  if (const std::string twice = NamedTwice(arguments.plugins); !twice.empty()) {
    return UsageError(absl::StrCat("plugin ", Printable(twice), " is named twice"),
                      "Name it once.");
  }
  if (arguments.nodes_file == "-" && absl::c_linear_search(arguments.files, "-")) {
    return UsageError("-f and --nodes-file both name standard input", "Name a file for one.");
  }
  std::vector<std::string> nodes = arguments.nodes;
  RETURN_IF_ERROR(AddNodesOfFile(arguments.nodes_file, &nodes));
  for (const std::string& node : nodes) request.add_nodes(node);
  RETURN_IF_ERROR(SetDurations(arguments, request));
  if (arguments.status_listener.any()) {
    ASSIGN_OR_RETURN(*request.mutable_status_listener(),
                     ReadStatusListener(arguments.status_listener));
  }
  return request;
}

absl::Status WithFileNames(const absl::Status& status, const RunArguments& arguments) {
  const std::vector<std::string>& files = arguments.files;
  if (ReasonOf(status) != "INVALID_PLUGIN") return status;
  if (files.empty() || absl::StrContains(status.message(), ": the built-in plugins are ")) {
    return FromService(errors::UnknownPlugin(ToStd(status.message())), SubjectOf(status));
  }
  std::vector<std::string> lines;  // each has one mistake
  for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    lines.push_back(WithFileName(ToStd(line), arguments));
  }
  if (const std::string text = absl::StrJoin(lines, "\n"); text != status.message()) {
    return FromService(errors::InvalidDefinition(text), SubjectOf(status));
  }
  return Annotate(status, absl::StrCat(files.size() == 1 ? "plugin file " : "plugin files ",
                                       Printable(absl::StrJoin(files, ", "))));
}

}  // namespace muster::cli
