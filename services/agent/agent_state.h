// How far an agent is with one result: what a restart has to know.
#ifndef MUSTER_SERVICES_AGENT_AGENT_STATE_H_
#define MUSTER_SERVICES_AGENT_AGENT_STATE_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/agent/module.h"
#include "services/common/base/unique_fd.h"

namespace muster {

enum class AgentPhase {
  kNothing,    // no result yet
  kProduced,   // the module has written its result; it has to be delivered
  kCommitted,  // the genuine result is committed
};

// A folder of its own below the state folder for each (run, plugin, node), held by one process at a
// time. Not thread-safe.
class AgentState {
 public:
  // Makes the folder. ABORTED (ALREADY_RUNNING) if another agent holds it.
  static absl::StatusOr<std::unique_ptr<AgentState>> Open(const std::string& state_dir,
                                                          std::string_view run,
                                                          std::string_view plugin,
                                                          std::string_view node);

  AgentPhase phase() const { return phase_; }
  // Of kProduced.
  const ModuleResult& result() const { return result_; }

  // Empty folders for a module, whatever was there before.
  absl::Status MakeFolders();
  std::string results_dir() const { return folder_ + "/results"; }
  std::string scratch_dir() const { return folder_ + "/scratch"; }

  absl::Status SetProduced(ModuleResult result);
  // Removes the result as well: the fleet has it.
  absl::Status SetCommitted();
  // Nothing is kept: the next start begins anew.
  absl::Status Clear();

 private:
  AgentState(std::string folder, UniqueFd lock);
  absl::Status Save();
  void RemoveFolders();

  const std::string folder_;
  const UniqueFd lock_;
  AgentPhase phase_ = AgentPhase::kNothing;
  ModuleResult result_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_AGENT_STATE_H_
