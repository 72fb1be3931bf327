#include "services/agent/jobs/node_policy.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "services/agent/jobs/argument_pattern.h"
#include "services/agent/jobs/policy_reader.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/utf8.h"
#include "services/common/errors/jobs.h"
#include "services/common/identity/signed_command.h"

namespace muster {
namespace {

constexpr size_t kMaxPolicyFile = size_t{1} << 20;
constexpr size_t kMaxShownArgv = 300;

bool OthersMayWrite(const struct stat& info) {
  const bool foreign = info.st_uid != 0 && info.st_uid != geteuid();
  return foreign || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

bool Contains(const std::vector<std::string>& list, std::string_view value) {
  return std::ranges::find(list, value) != list.end();
}

bool FitsOne(const std::vector<std::string>& patterns, const std::string& value) {
  return std::ranges::any_of(
      patterns, [&](const std::string& pattern) { return FitsArgument(pattern, value); });
}

std::vector<std::string> Quoted(std::vector<std::string> texts) {
  for (std::string& text : texts) text = absl::StrCat("\"", text, "\"");
  return texts;
}

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

// Returns the pattern that fits only this argument.
std::string PatternOf(const std::string& argument) {
  return absl::StrReplaceAll(argument, {{"*", "\\*"}, {"\\", "\\\\"}});
}

// Returns the line of a rule that admits this command in any content of the image's name, and no
// other command.
std::string NarrowRule(const CommandRequest& request) {
  const std::string name = request.image.substr(0, request.image.find('@'));
  const std::string image = name == request.image ? name : absl::StrCat(name, "@sha256:*");
  std::vector<std::string> argv;
  size_t size = 0;
  for (const std::string& argument : request.argv) {
    // JSON is YAML.
    argv.push_back(nlohmann::json(PatternOf(argument))
                       .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    size += argv.back().size();
  }
  if (size > kMaxShownArgv) argv = {"the program and its arguments"};
  // Without the field any command is admitted; a deployment of most types has none, and a build
  // runs none.
  const bool is_build = request.action == kBuildAction;
  const std::string list = is_build ? absl::StrCat(", repositories: [\"", request.repository, "\"]")
                           : argv.empty() && request.action == kDeploymentAction
                               ? ""
                               : absl::StrCat(", argv: [", absl::StrJoin(argv, ", "), "]");
  return absl::StrCat("- {images: [\"", image, "\"], actions: [", request.action, "]", list, "}");
}

}  // namespace

absl::StatusOr<NodePolicy> NodePolicy::Parse(std::string_view yaml, std::string_view file) {
  NodePolicy policy;
  policy.file_ = std::string(file);
  ASSIGN_OR_RETURN(policy.rules_, ReadPolicy(yaml, file));
  return policy;
}

absl::StatusOr<CommandRule> NodePolicy::Allow(const CommandRequest& request) const {
  if (!request.image.empty()) return AllowContainer(request);
  const bool chosen_here = request.argv.empty() && request.action == kRudderAction;
  if (!chosen_here && (request.argv.empty() || !IsPlainAbsolutePath(request.argv[0]))) {
    return errors::PolicyRefused(
        absl::StrCat("the program of \"", Show(request.argv),
                     "\" is not a plain absolute path, such as /usr/bin/uptime; rules "
                     "are in ",
                     file_));
  }
  for (const CommandRule& rule : rules_.commands) {
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
      rules_.commands.empty()
          ? absl::StrCat(file_, " does not exist, or has no rule for commands, to admit")
          : absl::StrCat("no rule in ", file_, " admits");
  const std::string why =
      absl::StrCat(refusal, " \"", Show(request.argv), "\" (action ", request.action, ", ",
                   request.signer.empty() ? "unsigned" : request.signer, ")");
  return request.action == kCollectAction ? errors::PluginNotAdmitted(why)
                                          : errors::PolicyRefused(why);
}

absl::StatusOr<CommandRule> NodePolicy::AllowContainer(const CommandRequest& request) const {
  const bool is_build = request.action == kBuildAction;
  for (const CommandRule& rule : rules_.containers) {
    if (!Contains(rule.actions, request.action)) continue;
    if (!rule.signers.empty() && !Contains(rule.signers, request.signer)) continue;
    if (!FitsOne(rule.images, request.image)) continue;
    if (is_build && !FitsOne(rule.repositories, request.repository)) continue;
    // Without argv it is the command of the image. A build runs none.
    const bool fits_argv = request.argv.empty()
                               ? is_build || rule.argv.empty() || rule.argv.front() == "**"
                               : FitsCommand(rule.argv, request.argv);
    if (!fits_argv) continue;
    RETURN_IF_ERROR(CheckExtras(rule, request));
    CommandRule permit = rule;
    permit.argv = request.argv;
    return permit;
  }
  return RefuseContainer(request);
}

absl::Status NodePolicy::RefuseContainer(const CommandRequest& request) const {
  const bool is_build = request.action == kBuildAction;
  std::string why = rules_.containers.empty()
                        ? absl::StrCat(file_, " does not exist, or has no rule for containers, to ")
                        : absl::StrCat("no rule for containers in ", file_, " ");
  absl::StrAppend(&why, rules_.containers.empty() ? "admit " : "admits ");
  if (!request.argv.empty()) absl::StrAppend(&why, "\"", Show(request.argv), "\" in ");
  absl::StrAppend(&why, "the image ", request.image);
  if (is_build) absl::StrAppend(&why, " for ", request.repository);
  absl::StrAppend(&why, " (action ", request.action, ", ", request.signer, ")");
  const std::string repository = absl::StrCat("\"", request.repository, "\"");
  for (const CommandRule& rule : rules_.containers) {
    const auto image = std::ranges::find_if(rule.images, [&](const std::string& pattern) {
      return FitsArgument(pattern, request.image);
    });
    if (image == rule.images.end()) continue;
    const auto more = [](const std::vector<std::string>& list, const std::string& one) {
      return absl::StrCat("[", absl::StrJoin(list, ", "), list.empty() ? "" : ", ", one, "]");
    };
    const bool has_action = Contains(rule.actions, request.action);
    const bool has_signer = rule.signers.empty() || Contains(rule.signers, request.signer);
    const bool has_repository = !is_build || FitsOne(rule.repositories, request.repository);
    // Another rule admits other commands: this one needs its own.
    if (has_action && has_signer && has_repository) break;
    const std::string repositories =
        absl::StrCat("repositories: ", more(Quoted(rule.repositories), repository));
    return errors::ContainerNotAdmitted(
        why, absl::StrCat("in the rule with the image \"", *image, "\""),
        !has_action   ? absl::StrCat("actions: ", more(rule.actions, request.action),
                                   has_repository ? "" : ", " + repositories)
        : !has_signer ? absl::StrCat("signers: ", more(rule.signers, request.signer))
                      : repositories);
  }
  return errors::ContainerNotAdmitted(why, "below containers", NarrowRule(request));
}

absl::Status NodePolicy::CheckExtras(const CommandRule& rule, const CommandRequest& request) const {
  for (const std::string& variable : request.variables) {
    if (Contains(rule.environment, variable)) continue;
    return errors::PolicyRefused(absl::StrCat("the rule for \"", Show(rule.argv), "\" in ", file_,
                                              " does not admit the variable ", variable));
  }
  const auto fits_workspace = [&](const std::string& pattern) {
    return FitsArgument(pattern, request.workspace);
  };
  if (!request.workspace.empty() && std::ranges::none_of(rule.workspaces, fits_workspace)) {
    return errors::ContainerNotAdmitted(
        absl::StrCat("the rule with the image \"", rule.images.front(), "\" in ", file_,
                     " does not admit the workspace ", request.workspace),
        "in that rule", absl::StrCat("workspaces: [", request.workspace, "]"));
  }
  for (const std::string& name : request.secrets) {
    const auto fits = [&](const std::string& pattern) { return FitsArgument(pattern, name); };
    if (std::ranges::any_of(rule.secrets, fits)) continue;
    return errors::ContainerNotAdmitted(
        absl::StrCat("the rule with the image \"", rule.images.front(), "\" in ", file_,
                     " does not admit the secret ", name),
        "in that rule", absl::StrCat("secrets: [", name, "]"));
  }
  for (const std::string& name : request.classes) {
    if (FitsOne(rule.classes, name)) continue;
    return errors::PolicyRefused(absl::StrCat("the rule for \"", Show(rule.argv), "\" in ", file_,
                                              " does not admit the class ", name));
  }
  return absl::OkStatus();
}

absl::Status NodePolicy::AllowModule(std::string_view module) const {
  if (!rules_.modules || Contains(*rules_.modules, module)) return absl::OkStatus();
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
