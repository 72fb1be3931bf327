// The policy of a node: policy.yaml in its folder.
//
//   commands:                            # default: no command is admitted
//     - argv: [/usr/bin/systemctl, restart, "app-*"]
//       user: deploy                     # default: the user of the agent
//       directory: /srv                  # default: /
//       environment: [LANG]              # variables that a command may set; default: none
//       time_limit: 5m                   # at most 24h; default: 1h
//       max_output: 1MiB                 # at most 1GiB; default: 16MiB
//       actions: [exec, rudder, collect] # default: [exec]
//       signers: [alice, gateway/g1]     # operators, and gateways for rudder; default: all
//       classes: ["app_*"]               # of Rudder, which a command may set; default: none
//   containers:                          # default: no container is admitted
//     - images: ["registry.example/tools/*@sha256:*"]
//       argv: ["**"]                     # default: any command, also that of the image
//       user: "1000:1000"                # in the container; default: 65532:65532
//       network: none                    # or the name of a network of Docker; default: none
//       memory: 1GiB                     # 8MiB to 1TiB; default: 512MiB; swap is not used
//       cpus: 0.5                        # default: 1
//       processes: 100                   # default: 256
//       actions: [container, deployment, ad-hoc, build]  # default: [container]
//       secrets: ["prod/*"]              # that a deployment may have; default: none
//       workspaces: ["net-*"]            # that a deployment may have; default: none
//       repositories: ["registry.example/templates/*"]  # only with build, which requires it
//       environment, time_limit, max_output and signers as above
//   collect: [hostfacts]                 # modules that runs may start; default: all
//
// Each element of `argv` is a pattern for one argument. `*` matches any characters, except `/` in
// the path of the program, and `\` quotes the next character. A final `**` matches any number of
// further arguments; `**` alone matches any command. The first matching rule applies. A remote run
// of Rudder may have no argv. The node then runs the first rule for rudder whose argv has no
// patterns, and appends `-D` and the classes.
#ifndef MUSTER_SERVICES_AGENT_JOBS_NODE_POLICY_H_
#define MUSTER_SERVICES_AGENT_JOBS_NODE_POLICY_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "services/agent/jobs/command_rule.h"
#include "services/common/base/mutex.h"

namespace muster {

// The rules of one file. Immutable; thread-safe.
class NodePolicy {
 public:
  // INVALID_ARGUMENT (POLICY_UNUSABLE) lists every mistake, a line each: "file:line: field: ...".
  static absl::StatusOr<NodePolicy> Parse(std::string_view yaml, std::string_view file);

  // Returns the first rule that matches, with the argv to run. PERMISSION_DENIED (POLICY_REFUSED)
  // states the argv and the file. The program must be an absolute path without "." and "..", unless
  // the command runs in a container.
  absl::StatusOr<CommandRule> Allow(const CommandRequest& request) const;

  // Returns OK if a run may start this built-in module, otherwise PERMISSION_DENIED
  // (POLICY_REFUSED).
  absl::Status AllowModule(std::string_view module) const;

 private:
  absl::StatusOr<CommandRule> AllowContainer(const CommandRequest& request) const;
  // Names all lines that would admit the container, in the first rule that may have it.
  absl::Status RefuseContainer(const CommandRequest& request) const;
  // Checks variables and classes of a command against its rule.
  absl::Status CheckExtras(const CommandRule& rule, const CommandRequest& request) const;

  std::string file_;
  PolicyRules rules_;
};

// Reads the file again after a change. Thread-safe; calls may block on the disk.
class PolicyFile {
 public:
  explicit PolicyFile(std::string path) : path_(std::move(path)) {}

  // Returns a policy without commands if there is no file. FAILED_PRECONDITION (POLICY_UNUSABLE) if
  // users other than root and the agent's may write it, or it cannot be read; the errors of Parse.
  absl::StatusOr<std::shared_ptr<const NodePolicy>> Current();

 private:
  const std::string path_;
  Mutex mutex_;
  std::string version_ ABSL_GUARDED_BY(mutex_);  // of the file that was read
  absl::Status fault_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const NodePolicy> current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_NODE_POLICY_H_
