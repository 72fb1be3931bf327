// The secrets of jobs in the memory of the node: a folder for each job, in a tmpfs of the node.
#ifndef MUSTER_SERVICES_AGENT_JOBS_SECRET_FOLDERS_H_
#define MUSTER_SERVICES_AGENT_JOBS_SECRET_FOLDERS_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/secrets.pb.h"
#include "services/common/base/mutex.h"

namespace muster {

// Returns /dev/shm, and the user's runtime folder ($XDG_RUNTIME_DIR) if it is set.
std::vector<std::string> DefaultMemoryFolders();

// The folders of one agent. They survive the agent, and no restart of the machine. Thread-safe.
class SecretFolders {
 public:
  // Uses the first of `memory_folders` that is a tmpfs. The folder and the node of the agent tell
  // its folders from those of other agents.
  SecretFolders(const std::string& agent_folder, const std::string& node,
                const std::vector<std::string>& memory_folders);

  // Returns the path of a job's folder, which need not exist. UNAVAILABLE (SECRET_UNAVAILABLE) if
  // no folder of the node is in memory.
  absl::StatusOr<std::string> PathOf(const std::string& job) const;

  // Writes a file for each value, with its name, for the user of the container as the policy names
  // it. An agent that is root gives the files to a user with a number, who alone may read them;
  // otherwise every user may, if it can enter the folder, which only this agent and the container
  // can. Replaces what an earlier process left. UNAVAILABLE (SECRET_UNAVAILABLE).
  absl::Status Create(const std::string& job, const std::string& user,
                      const v1::SecretValues& values) const;

  // Reads the values that Create wrote, with their names alone, and no other file. NOT_FOUND, or
  // another failure.
  absl::StatusOr<v1::SecretValues> Read(const std::string& job) const;

  // Succeeds if there is none. Removes the folder of all jobs with the last one.
  absl::Status Remove(const std::string& job) const;

  // Removes the folders of all jobs that are not in use.
  void RemoveOthers(absl::FunctionRef<bool(const std::string& job)> in_use) const;

 private:
  absl::Status CheckBase() const;
  // Removes the folder of all jobs if it is empty.
  void RemoveBase() const;

  // Held while the folder of all jobs is created or removed.
  mutable Mutex mutex_;
  std::string base_;  // of all jobs; empty: none is possible
  std::string why_;   // none is possible
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_SECRET_FOLDERS_H_
