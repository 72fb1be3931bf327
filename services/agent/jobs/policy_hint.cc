#include "services/agent/jobs/policy_hint.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "services/agent/jobs/argument_pattern.h"
#include "services/common/identity/signed_command.h"

namespace muster {
namespace {

constexpr size_t kMaxShownList = 300;

using Texts = std::vector<std::string>;

bool Contains(const Texts& list, std::string_view value) {
  return std::ranges::find(list, value) != list.end();
}

bool FitsOne(const Texts& patterns, const std::string& value) {
  return std::ranges::any_of(
      patterns, [&](const std::string& pattern) { return FitsArgument(pattern, value); });
}

// JSON is YAML.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Returns the pattern that fits only this text.
std::string PatternOf(const std::string& text) {
  return Quoted(absl::StrReplaceAll(text, {{"*", "\\*"}, {"\\", "\\\\"}}));
}

Texts PatternsOf(const Texts& texts) {
  Texts patterns;
  for (const std::string& text : texts) patterns.push_back(PatternOf(text));
  return patterns;
}

// Returns a line with the elements that the rule has and those to add.
std::string Line(std::string_view field, const Texts& elements, const Texts& added) {
  Texts all = elements;
  all.insert(all.end(), added.begin(), added.end());
  std::string list = absl::StrJoin(all, ", ");
  if (list.size() > kMaxShownList && !elements.empty()) {
    list = absl::StrCat("those that it has, ", absl::StrJoin(added, ", "));
  }
  return absl::StrCat(std::string(field), ": [", list, "]");
}

std::string LineOfPatterns(std::string_view field, const Texts& patterns, const Texts& added) {
  Texts quoted;
  for (const std::string& pattern : patterns) quoted.push_back(Quoted(pattern));
  return Line(field, quoted, PatternsOf(added));
}

bool FitsArgv(const CommandRule& rule, const CommandRequest& request) {
  // Without argv it is the command of the image. A build runs none.
  if (!request.argv.empty()) return FitsCommand(rule.argv, request.argv);
  return request.action == kBuildAction || rule.argv.empty() || rule.argv.front() == "**";
}

// The parts of a request that a rule may lack beside image, command, action, signer and repository.
struct Missing {
  Texts variables;
  Texts workspaces;
  Texts secrets;
  Texts networks;  // at most one
};

Missing MissingIn(const CommandRule& rule, const CommandRequest& request) {
  Missing missing;
  for (const std::string& name : request.variables) {
    if (!Contains(rule.environment, name)) missing.variables.push_back(name);
  }
  if (!request.workspace.empty() && !FitsOne(rule.workspaces, request.workspace)) {
    missing.workspaces.push_back(request.workspace);
  }
  for (const std::string& name : request.secrets) {
    if (!FitsOne(rule.secrets, name)) missing.secrets.push_back(name);
  }
  if (!request.network.empty() && request.network != rule.container.network) {
    missing.networks.push_back(request.network);
  }
  return missing;
}

void AddLines(const CommandRule& rule, const Missing& missing, Texts* lines) {
  if (!missing.variables.empty()) {
    lines->push_back(Line("environment", rule.environment, missing.variables));
  }
  if (!missing.workspaces.empty()) {
    lines->push_back(LineOfPatterns("workspaces", rule.workspaces, missing.workspaces));
  }
  if (!missing.secrets.empty()) {
    lines->push_back(LineOfPatterns("secrets", rule.secrets, missing.secrets));
  }
  for (const std::string& network : missing.networks) {
    lines->push_back(absl::StrCat("network: ", Quoted(network)));
  }
}

PolicyHint NewRule(const CommandRequest& request) {
  const std::string name = request.image.substr(0, request.image.find('@'));
  const std::string image = name == request.image ? name : absl::StrCat(name, "@sha256:*");
  Texts argv = PatternsOf(request.argv);
  size_t size = 0;
  for (const std::string& argument : argv) size += argument.size();
  if (size > kMaxShownList) argv = {"the program and its arguments"};
  Texts lines = {absl::StrCat("images: [\"", image, "\"]"),
                 absl::StrCat("actions: [", request.action, "]")};
  // Without the field any command is admitted; a deployment of most types has none, and a build
  // runs none.
  if (request.action == kBuildAction) {
    lines.push_back(LineOfPatterns("repositories", {}, {request.repository}));
  } else if (!argv.empty() || request.action != kDeploymentAction) {
    lines.push_back(Line("argv", {}, argv));
  }
  const CommandRule empty;
  AddLines(empty, MissingIn(empty, request), &lines);
  return {"missing below containers", absl::StrCat("- {", absl::StrJoin(lines, ", "), "}")};
}

}  // namespace

bool MayRun(const CommandRule& rule, const CommandRequest& request) {
  return FitsOne(rule.images, request.image) && FitsArgv(rule, request);
}

std::string NotAdmittedBy(const CommandRule& rule, const CommandRequest& request) {
  const Missing missing = MissingIn(rule, request);
  Texts parts;
  const auto add = [&](std::string_view what, const Texts& names) {
    for (const std::string& name : names) parts.push_back(absl::StrCat(std::string(what), name));
  };
  add("the variable ", missing.variables);
  add("the workspace ", missing.workspaces);
  add("the secret ", missing.secrets);
  add("the network ", missing.networks);
  return absl::StrJoin(parts, ", ");
}

PolicyHint ChangesOf(const CommandRule& rule, const CommandRequest& request) {
  Texts lines;
  if (!Contains(rule.actions, request.action)) {
    lines.push_back(Line("actions", rule.actions, {request.action}));
  }
  if (!rule.signers.empty() && !Contains(rule.signers, request.signer)) {
    lines.push_back(Line("signers", rule.signers, {request.signer}));
  }
  if (request.action == kBuildAction && !FitsOne(rule.repositories, request.repository)) {
    lines.push_back(LineOfPatterns("repositories", rule.repositories, {request.repository}));
  }
  AddLines(rule, MissingIn(rule, request), &lines);
  const auto image = std::ranges::find_if(
      rule.images, [&](const std::string& one) { return FitsArgument(one, request.image); });
  const std::string shown = image == rule.images.end() ? request.image : *image;
  return {absl::StrCat("set in the rule with the image \"", shown, "\""),
          absl::StrJoin(lines, ", ")};
}

PolicyHint HintFor(const std::vector<CommandRule>& rules, const CommandRequest& request) {
  const auto rule =
      std::ranges::find_if(rules, [&](const CommandRule& one) { return MayRun(one, request); });
  return rule == rules.end() ? NewRule(request) : ChangesOf(*rule, request);
}

}  // namespace muster
