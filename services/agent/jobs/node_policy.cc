#include "services/agent/jobs/node_policy.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "services/agent/jobs/argument_pattern.h"
#include "services/agent/jobs/policy_hint.h"
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
    if (!MayRun(rule, request)) continue;
    if (is_build && !FitsOne(rule.repositories, request.repository)) continue;
    const std::string lacking = NotAdmittedBy(rule, request);
    if (!lacking.empty()) {
      const PolicyHint hint = ChangesOf(rule, request);
      return errors::ContainerNotAdmitted(
          absl::StrCat("the rule for the image in ", file_, " does not admit ", lacking),
          hint.place, hint.lines);
    }
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
  const PolicyHint hint = HintFor(rules_.containers, request);
  return errors::ContainerNotAdmitted(why, hint.place, hint.lines);
}

absl::Status NodePolicy::CheckExtras(const CommandRule& rule, const CommandRequest& request) const {
  for (const std::string& variable : request.variables) {
    if (Contains(rule.environment, variable)) continue;
    return errors::PolicyRefused(absl::StrCat("the rule for \"", Show(rule.argv), "\" in ", file_,
                                              " does not admit the variable ", variable));
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
