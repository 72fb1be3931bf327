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
//   collect: [hostfacts]                 # modules that runs may start; default: all
//
// Each element of `argv` is a pattern for one argument. `*` matches any characters, except `/` in
// the path of the program, and `\` quotes the next character. A final `**` matches any number of
// further arguments; `**` alone matches any command. The first matching rule applies. A remote run
// of Rudder may have no argv. The node then runs the first rule for rudder whose argv has no
// patterns, and appends `-D` and the classes.
#ifndef MUSTER_SERVICES_AGENT_JOBS_NODE_POLICY_H_
#define MUSTER_SERVICES_AGENT_JOBS_NODE_POLICY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/mutex.h"

namespace muster {

// An action beside exec and rudder (identity/signed_command.h): plugins with a command of a run.
inline constexpr std::string_view kCollectAction = "collect";

struct CommandRule {
  std::vector<std::string> argv;
  std::string user;
  std::string directory = "/";
  std::vector<std::string> environment;
  absl::Duration time_limit = absl::Hours(1);
  int64_t max_output = int64_t{16} << 20;
  std::vector<std::string> actions = {"exec"};
  std::vector<std::string> signers;  // empty: all
  std::vector<std::string> classes;
};

// The properties of a command that the policy checks.
struct CommandRequest {
  std::string action;
  // The name of an operator, or "gateway/NAME"; empty for unsigned actions (collect).
  std::string signer;
  std::vector<std::string> argv;
  std::vector<std::string> variables;  // names
  std::vector<std::string> classes;
};

// The rules of one file. Immutable; thread-safe.
class NodePolicy {
 public:
  // INVALID_ARGUMENT (POLICY_UNUSABLE) lists every mistake, a line each: "file:line: field: ...".
  static absl::StatusOr<NodePolicy> Parse(std::string_view yaml, std::string_view file);

  // Returns the first rule that matches, with the argv to run. PERMISSION_DENIED (POLICY_REFUSED)
  // states the argv and the file. The program must be an absolute path without "." and "..".
  absl::StatusOr<CommandRule> Allow(const CommandRequest& request) const;

  // Returns OK if a run may start this built-in module, otherwise PERMISSION_DENIED
  // (POLICY_REFUSED).
  absl::Status AllowModule(std::string_view module) const;

 private:
  // Checks variables and classes of a command against its rule.
  absl::Status CheckExtras(const CommandRule& rule, const CommandRequest& request) const;

  std::string file_;
  std::vector<CommandRule> commands_;
  std::optional<std::vector<std::string>> modules_;  // nothing: all
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
