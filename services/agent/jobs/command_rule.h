// The rules of a node's policy, and the commands that they are compared with.
#ifndef MUSTER_SERVICES_AGENT_JOBS_COMMAND_RULE_H_
#define MUSTER_SERVICES_AGENT_JOBS_COMMAND_RULE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace muster {

// An action beside those of identity/signed_command.h: plugins with a command of a run.
inline constexpr std::string_view kCollectAction = "collect";
// Deployments of ad-hoc types. Their operator chooses files and command, and not only parameters.
inline constexpr std::string_view kAdHocAction = "ad-hoc";

// The properties of a command that the policy checks.
struct CommandRequest {
  std::string action;
  // The name of an operator, or "gateway/NAME"; empty for unsigned actions (collect).
  std::string signer;
  std::vector<std::string> argv;
  std::string image;                   // of a command in a container, or the base of a build
  std::string repository;              // of a build
  std::vector<std::string> variables;  // names
  std::vector<std::string> classes;
  std::vector<std::string> secrets;  // names such as "prod/db"
  std::string workspace;             // empty: none
  std::string network;               // that the type of a deployment requires; empty: none
};

// The limits of a container.
struct ContainerLimits {
  std::string network = "none";  // or the name of a network of the node's Docker
  int64_t memory = int64_t{512} << 20;
  int64_t nano_cpus = 1'000'000'000;  // one CPU
  int64_t processes = 256;
  // The size of the files of a deployment that the node reads from the jobs service.
  int64_t max_files = int64_t{1} << 30;
};

// A rule for commands on the node, or in containers.
struct CommandRule {
  std::vector<std::string> argv;
  // The user on the node (empty: that of the agent), or in the container.
  std::string user;
  std::string directory = "/";
  std::vector<std::string> environment;
  absl::Duration time_limit = absl::Hours(1);
  int64_t max_output = int64_t{16} << 20;
  std::vector<std::string> actions = {"exec"};  // of a rule for containers: {"container"}
  std::vector<std::string> signers;             // empty: all
  std::vector<std::string> classes;
  // In a rule for containers: patterns of their images, and their limits.
  std::vector<std::string> images;
  // For builds on top of these images: patterns of the repositories to which they are pushed.
  std::vector<std::string> repositories;
  ContainerLimits container;
  std::vector<std::string> secrets;     // patterns of the names of secrets; empty: none
  std::vector<std::string> workspaces;  // patterns of the names of workspaces; empty: none
};

// The content of a policy file.
struct PolicyRules {
  std::vector<CommandRule> commands;
  std::vector<CommandRule> containers;
  std::optional<std::vector<std::string>> modules;  // nothing: all
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_COMMAND_RULE_H_
