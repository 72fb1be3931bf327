// An operator for tests: signs commands as the CLI does.
#ifndef MUSTER_SERVICES_AGENT_JOBS_TEST_COMMANDS_H_
#define MUSTER_SERVICES_AGENT_JOBS_TEST_COMMANDS_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/identity/command_authority.h"

namespace muster {

inline constexpr char kTestFleet[] = "fleet-0badcafe.muster";

// A fleet's command authority with operators. What fails ends the test program.
class TestCommands {
 public:
  TestCommands();

  const CommandAuthority& authority() const { return authority_; }

  // For all nodes, valid now, with a new id; one minute to run.
  static v1::Command Exec(std::vector<std::string> argv);

  // Signed by an operator of that name.
  v1::SignedCommand Sign(const v1::Command& command, const std::string& operator_name = "alice");

  // As it comes down to `node`, which has 10 s to begin it.
  v1::JobCommand ForNode(const v1::Command& command, const std::string& node,
                         const std::string& operator_name = "alice");

  // `nodes` as its targets.
  static void SetTargets(const std::vector<std::string>& nodes, v1::Command* command);

  v1::CommandRevocations Revoke(const std::string& operator_name, int64_t version);

 private:
  const CommandAuthority authority_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_TEST_COMMANDS_H_
