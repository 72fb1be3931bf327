#include "services/agent/jobs/node_policy.h"

#include <sys/stat.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "services/agent/jobs/argument_pattern.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/suggestion.h"
#include "services/common/base/text_values.h"
#include "services/common/base/utf8.h"
#include "services/common/errors/jobs.h"
#include "services/common/identity/signed_command.h"

namespace muster {
namespace {

constexpr size_t kMaxPolicyFile = size_t{1} << 20;
constexpr size_t kMaxRules = 1'000;
constexpr size_t kMaxShownArgv = 300;
constexpr absl::Duration kMostTime = absl::Hours(24);
constexpr uint64_t kMostOutput = uint64_t{1} << 30;

bool OthersMayWrite(const struct stat& info) {
  const bool foreign = info.st_uid != 0 && info.st_uid != geteuid();
  return foreign || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

bool Contains(const std::vector<std::string>& list, std::string_view value) {
  return std::ranges::find(list, value) != list.end();
}

// Reads one document and collects its mistakes.
class PolicyReader {
 public:
  explicit PolicyReader(std::string_view file) : file_(file) {}

  void ReadTop(const YAML::Node& top, std::vector<CommandRule>* commands,
               std::optional<std::vector<std::string>>* modules) {
    if (top.IsNull()) return;  // an empty file
    if (!top.IsMap()) return Mistake(top, "", "a policy is a map with commands and collect");
    ReadFields(top, "",
               {{"commands", [&](const YAML::Node& n) { ReadCommands(n, commands); }},
                {"collect", [&](const YAML::Node& n) { *modules = ReadList(n, "collect"); }}});
  }

  absl::Status Result() const {
    if (mistakes_.empty()) return absl::OkStatus();
    return errors::InvalidPolicy(absl::StrJoin(mistakes_, "\n"));
  }

 private:
  using FieldReader = std::function<void(const YAML::Node&)>;

  void Mistake(const YAML::Node& at, std::string_view field, std::string_view problem) {
    constexpr size_t kMaxMistakes = 20;  // a longer list is not useful
    if (mistakes_.size() >= kMaxMistakes) return;
    mistakes_.push_back(absl::StrCat(ToAbsl(file_), ":", at.Mark().line + 1, ": ", ToAbsl(field),
                                     field.empty() ? "" : ": ", ToAbsl(problem)));
  }

  void ReadFields(const YAML::Node& map, const std::string& prefix,
                  const std::vector<std::pair<std::string, FieldReader>>& fields) {
    std::vector<std::string> seen;
    for (const auto& entry : map) {
      const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "?";
      const auto field =
          std::ranges::find(fields, name, &std::pair<std::string, FieldReader>::first);
      if (field == fields.end()) {
        std::vector<std::string> known;
        for (const auto& [key, reader] : fields) known.push_back(key);
        Mistake(entry.first, prefix + name, absl::StrCat("no such field", Suggestion(name, known)));
      } else if (Contains(seen, name)) {
        Mistake(entry.first, prefix + name, "duplicate field");
      } else {
        seen.push_back(name);
        field->second(entry.second);
      }
    }
  }

  std::vector<std::string> ReadList(const YAML::Node& list, const std::string& field) {
    std::vector<std::string> values;
    if (!list.IsSequence()) {
      Mistake(list, field, "must be a list");
      return values;
    }
    for (const YAML::Node& element : list) {
      if (element.IsScalar()) {
        values.push_back(element.Scalar());
      } else {
        Mistake(element, field, "an element must be plain text");
      }
    }
    return values;
  }

  void ReadCommands(const YAML::Node& list, std::vector<CommandRule>* commands) {
    if (!list.IsSequence()) return Mistake(list, "commands", "must be a list of rules");
    if (list.size() > kMaxRules) {
      return Mistake(list, "commands", absl::StrCat("more than ", kMaxRules, " rules"));
    }
    for (const YAML::Node& rule : list) commands->push_back(ReadRule(rule));
  }

  CommandRule ReadRule(const YAML::Node& node) {
    CommandRule rule;
    bool is_argv_wrong = false;
    if (!node.IsMap()) {
      Mistake(node, "commands", "a rule is a map with argv");
      return rule;
    }
    ReadFields(
        node, "commands.",
        {{"argv",
          [&](const YAML::Node& n) {
            rule.argv = ReadList(n, "argv");
            is_argv_wrong = rule.argv.empty() && !(n.IsSequence() && n.size() == 0);
          }},
         {"user", [&](const YAML::Node& n) { ReadText(n, "user", &rule.user); }},
         {"directory", [&](const YAML::Node& n) { ReadText(n, "directory", &rule.directory); }},
         {"environment",
          [&](const YAML::Node& n) { rule.environment = ReadList(n, "environment"); }},
         {"time_limit", [&](const YAML::Node& n) { ReadLimit(n, &rule.time_limit); }},
         {"max_output", [&](const YAML::Node& n) { ReadSize(n, &rule.max_output); }},
         {"actions", [&](const YAML::Node& n) { rule.actions = ReadActions(n); }},
         {"signers", [&](const YAML::Node& n) { rule.signers = ReadSigners(n); }},
         {"classes", [&](const YAML::Node& n) { rule.classes = ReadList(n, "classes"); }}});
    if (!is_argv_wrong) CheckRule(node, rule);
    return rule;
  }

  void CheckRule(const YAML::Node& node, const CommandRule& rule) {
    if (rule.argv.empty()) return Mistake(node, "argv", "is missing or empty");
    if (rule.argv[0] != "**" && !rule.argv[0].starts_with("/")) {
      Mistake(node, "argv", "the program must be an absolute path, such as /usr/bin/uptime");
    }
    for (size_t i = 0; i + 1 < rule.argv.size(); ++i) {
      if (rule.argv[i] == "**") Mistake(node, "argv", "** must be the last element");
    }
    if (!rule.directory.starts_with("/")) {
      Mistake(node, "directory", "must be an absolute path");
    }
  }

  void ReadText(const YAML::Node& node, const std::string& field, std::string* value) {
    if (!node.IsScalar() || node.Scalar().empty()) {
      return Mistake(node, field, "must be plain text");
    }
    *value = node.Scalar();
  }

  void ReadLimit(const YAML::Node& node, absl::Duration* limit) {
    const auto value = node.IsScalar() ? ParseDuration(node.Scalar()) : std::nullopt;
    if (!value || *value < absl::Seconds(1) || *value > kMostTime) {
      return Mistake(node, "time_limit", "must be a time from 1s to 24h, such as 5m");
    }
    *limit = *value;
  }

  void ReadSize(const YAML::Node& node, int64_t* size) {
    const auto value = node.IsScalar() ? ParseByteSize(node.Scalar()) : std::nullopt;
    if (!value || *value > kMostOutput) {
      return Mistake(node, "max_output", "must be a size up to 1GiB, such as 16MiB");
    }
    *size = static_cast<int64_t>(*value);
  }

  std::vector<std::string> ReadActions(const YAML::Node& node) {
    std::vector<std::string> actions = ReadList(node, "actions");
    for (const std::string& action : actions) {
      if (action != kExecAction && action != kRudderAction && action != kCollectAction) {
        Mistake(node, "actions", "an action is exec, rudder or collect");
      }
    }
    return actions;
  }

  // An empty list would admit all signers, which its writer did not mean.
  std::vector<std::string> ReadSigners(const YAML::Node& node) {
    std::vector<std::string> signers = ReadList(node, "signers");
    if (node.IsSequence() && node.size() == 0)
      Mistake(node, "signers", "must not be empty; remove it to admit all signers");
    return signers;
  }

  const std::string_view file_;
  std::vector<std::string> mistakes_;
};

bool IsWithoutPatterns(const std::vector<std::string>& argv) {
  return std::ranges::none_of(argv, [](const std::string& element) {
    return element.find_first_of("*\\") != std::string::npos;
  });
}

// Returns an argv as one short, printable line. An argument of several lines, such as a script, is
// cut after the first one.
std::string Show(const std::vector<std::string>& argv) {
  std::string shown;
  for (const std::string& argument : argv) {
    if (!shown.empty()) shown += ' ';
    const size_t line_end = std::min(argument.find_first_of("\r\n"), argument.size());
    std::string_view left(argument.data(), line_end);
    while (!left.empty() && shown.size() < kMaxShownArgv) {
      const size_t length = PrintableLength(left);
      shown += length == 0 ? "?" : left.substr(0, length);
      left.remove_prefix(std::max<size_t>(length, 1));
    }
    if (shown.size() >= kMaxShownArgv || line_end < argument.size()) return shown + " ...";
  }
  return shown;
}

}  // namespace

absl::StatusOr<NodePolicy> NodePolicy::Parse(std::string_view yaml, std::string_view file) {
  NodePolicy policy;
  policy.file_ = std::string(file);
  PolicyReader reader(policy.file_);
  try {
    reader.ReadTop(YAML::Load(std::string(yaml)), &policy.commands_, &policy.modules_);
  } catch (const YAML::Exception& e) {
    return errors::InvalidPolicy(
        absl::StrCat(policy.file_, ":", e.mark.line + 1, ": not YAML: ", e.msg));
  }
  RETURN_IF_ERROR(reader.Result());
  return policy;
}

absl::StatusOr<CommandRule> NodePolicy::Allow(const CommandRequest& request) const {
  const bool chosen_here = request.argv.empty() && request.action == kRudderAction;
  if (!chosen_here && (request.argv.empty() || !IsPlainAbsolutePath(request.argv[0]))) {
    return errors::PolicyRefused(
        absl::StrCat("the program of \"", Show(request.argv),
                     "\" is not a plain absolute path, such as /usr/bin/uptime; rules "
                     "are in ",
                     file_));
  }
  for (const CommandRule& rule : commands_) {
    const bool signer_fits = rule.signers.empty() || Contains(rule.signers, request.signer);
    const bool fits =
        chosen_here ? IsWithoutPatterns(rule.argv) : FitsCommand(rule.argv, request.argv);
    if (!Contains(rule.actions, request.action) || !signer_fits || !fits) continue;
    RETURN_IF_ERROR(CheckExtras(rule, request));
    CommandRule permit = rule;
    if (!chosen_here) {
      permit.argv = request.argv;
    } else if (!request.classes.empty()) {
      permit.argv.insert(permit.argv.end(), {"-D", absl::StrJoin(request.classes, ",")});
    }
    return permit;
  }
  // A new node has no policy file.
  const std::string refusal =
      commands_.empty()
          ? absl::StrCat(file_, " does not exist, or has no rule for commands, to admit")
          : absl::StrCat("no rule in ", file_, " admits");
  const std::string why =
      absl::StrCat(refusal, " \"", Show(request.argv), "\" (action ", request.action, ", ",
                   request.signer.empty() ? "unsigned" : request.signer, ")");
  return request.action == kCollectAction ? errors::PluginNotAdmitted(why)
                                          : errors::PolicyRefused(why);
}

absl::Status NodePolicy::CheckExtras(const CommandRule& rule, const CommandRequest& request) const {
  for (const std::string& variable : request.variables) {
    if (Contains(rule.environment, variable)) continue;
    return errors::PolicyRefused(absl::StrCat("the rule for \"", Show(rule.argv), "\" in ", file_,
                                              " does not admit the variable ", variable));
  }
  for (const std::string& name : request.classes) {
    const auto fits = [&](const std::string& pattern) { return FitsArgument(pattern, name); };
    if (std::ranges::any_of(rule.classes, fits)) continue;
    return errors::PolicyRefused(absl::StrCat("the rule for \"", Show(rule.argv), "\" in ", file_,
                                              " does not admit the class ", name));
  }
  return absl::OkStatus();
}

absl::Status NodePolicy::AllowModule(std::string_view module) const {
  if (!modules_ || Contains(*modules_, module)) return absl::OkStatus();
  return errors::ModuleNotAdmitted(file_, module);
}

absl::StatusOr<std::shared_ptr<const NodePolicy>> PolicyFile::Current() {
  MutexLock lock(mutex_);
  struct stat info = {};
  std::string version = "none";
  if (stat(path_.c_str(), &info) == 0) {
    version =
        absl::StrCat(info.st_dev, ".", info.st_ino, ".", info.st_size, ".", info.st_mtim.tv_sec,
                     ".", info.st_mtim.tv_nsec, ".", info.st_mode, ".", info.st_uid);
  } else if (errno != ENOENT) {
    return errors::PolicyUnusable(ToStd(ErrnoError(errno, "read", path_).message()));
  }
  struct stat folder = {};
  const std::string folder_path = std::filesystem::path(path_).parent_path();
  if (version != "none") {
    if (stat(folder_path.c_str(), &folder) != 0) {
      return errors::PolicyUnusable(ToStd(ErrnoError(errno, "read", folder_path).message()));
    }
    absl::StrAppend(&version, ".", folder.st_mode, ".", folder.st_uid);
  }
  if (version != version_) {
    version_ = version;
    current_.reset();
    // Users that may write to the folder could replace the file, unless the folder is sticky.
    const bool replaceable = OthersMayWrite(folder) && (folder.st_mode & S_ISVTX) == 0;
    if (version != "none" && (OthersMayWrite(info) || replaceable)) {
      fault_ = errors::PolicyUnusable(
          absl::StrCat(OthersMayWrite(info) ? path_ : folder_path,
                       ": users other than root and the agent's user may write it"));
      return fault_;
    }
    const auto text = version == "none" ? absl::StatusOr<std::string>("")
                                        : ReadFileBounded(path_, kMaxPolicyFile);
    auto policy = text.ok() ? NodePolicy::Parse(*text, path_)
                            : errors::PolicyUnusable(ToStd(text.status().message()));
    fault_ = policy.status();
    if (policy.ok()) current_ = std::make_shared<const NodePolicy>(*std::move(policy));
  }
  if (!current_) return fault_;
  return current_;
}

}  // namespace muster
