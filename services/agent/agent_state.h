// The state of an agent's work for one result, which survives restarts.
#ifndef MUSTER_SERVICES_AGENT_AGENT_STATE_H_
#define MUSTER_SERVICES_AGENT_AGENT_STATE_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/agent/kept_results.h"
#include "services/agent/module.h"
#include "services/client/client.h"
#include "services/common/base/unique_fd.h"

namespace muster {

enum class AgentPhase {
  kNothing,    // no result yet
  kProduced,   // the module has written its result, which is not delivered yet
  kCommitted,  // the genuine result is committed
  kFailed,     // the module has failed, and its error is not delivered yet
  // There is no genuine result. An error or another result is committed.
  kSettled,
};

// Kills the plugins that an agent left running in `state_dir` when it was killed, unless another
// agent has locked their folders.
void EndOrphanedPlugins(const std::string& state_dir);

// Removes the state of one result, with the result and the state of its delivery. Returns false if
// another process uses it.
bool RemoveState(const std::string& state_dir, std::string_view run, std::string_view plugin,
                 std::string_view node);

// Returns whether the state says that the genuine result is committed.
bool IsCommitted(const std::string& state_dir, std::string_view run, std::string_view plugin,
                 std::string_view node);

// Returns the bytes in the folder of a produced result that is not delivered. A state that cannot
// be read may have one.
std::optional<int64_t> UndeliveredBytes(const std::string& state_dir, std::string_view run,
                                        std::string_view plugin, std::string_view node);

struct UndeliveredResult {
  ResultName name;
  int64_t bytes = 0;
};

// Returns the produced results of `node` that are not delivered.
std::vector<UndeliveredResult> ListUndeliveredResults(const std::string& state_dir,
                                                      std::string_view node);

// A folder for each (run, plugin, node) in the state folder, locked by one process at a time. Not
// thread-safe.
class AgentState {
 public:
  // Creates the folder. Fails with ABORTED (ALREADY_RUNNING) if another agent has locked it. Kills
  // the plugin that an earlier process left running there. `kept` (may be null) gets the committed
  // result; it outlives the state.
  static absl::StatusOr<std::unique_ptr<AgentState>> Open(const std::string& state_dir,
                                                          std::string_view run,
                                                          std::string_view plugin,
                                                          std::string_view node,
                                                          KeptResults* kept = nullptr);

  AgentPhase phase() const { return phase_; }
  // In phase kProduced.
  const ModuleResult& result() const { return result_; }
  // In the phases kFailed and kSettled.
  const client::Status& failure() const { return failure_; }

  // Makes empty folders for a module.
  absl::Status MakeFolders();
  std::string results_dir() const;
  std::string scratch_dir() const { return folder_ + "/scratch"; }

  // Records the plugin's process, so that the next process can end it.
  absl::Status NoteProcess(pid_t pid);
  // Makes the result durable first, if the agent owns it.
  absl::Status SetProduced(ModuleResult result);
  absl::Status SetFailed(client::Status why);
  // Also removes the local result: the fleet has it. With `kept` it is moved there, if it is the
  // file of `receipt` and belongs to the agent.
  absl::Status SetCommitted(const client::Receipt& receipt);
  // Also removes the local result: it cannot be delivered. Keeps the error.
  absl::Status SetSettled(client::Status why);
  // Removes everything: the next start begins with kNothing.
  absl::Status Clear();

 private:
  friend std::vector<UndeliveredResult> ListUndeliveredResults(const std::string& state_dir,
                                                               std::string_view node);
  friend bool IsCommitted(const std::string& state_dir, std::string_view run,
                          std::string_view plugin, std::string_view node);
  friend std::optional<int64_t> UndeliveredBytes(const std::string& state_dir, std::string_view run,
                                                 std::string_view plugin, std::string_view node);

  AgentState(std::string folder, UniqueFd lock);
  static void Prune(const std::string& state_dir);
  bool MustRemain();
  absl::Status Load();
  absl::Status Save();
  bool PrepareToKeep(const client::Receipt& receipt);
  absl::Status SaveError(AgentPhase phase, client::Status why);
  void RemoveFolders();

  const std::string folder_;
  const UniqueFd lock_;
  KeptResults* kept_ = nullptr;
  ResultName name_;
  AgentPhase phase_ = AgentPhase::kNothing;
  ModuleResult result_;
  client::Status failure_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_AGENT_STATE_H_
