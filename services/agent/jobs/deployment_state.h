// The state of a deployment on its node: the folder that its container has at /state.
//
//   parameters.json   the resolved parameters, an object
//   outputs/          the container writes a file for each output; its name is that of the output
//
// While it runs, the container may change all of it, and write other files.
#ifndef MUSTER_SERVICES_AGENT_JOBS_DEPLOYMENT_STATE_H_
#define MUSTER_SERVICES_AGENT_JOBS_DEPLOYMENT_STATE_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "muster/v1/jobs.pb.h"
#include "services/agent/jobs/untrusted_folder.h"
#include "services/common/templates/documents.h"

namespace muster {

// The limits of a state. It is on the disk of the node, which a container must not fill.
inline constexpr FolderLimits kStateLimits = {
    .entries = 10'000, .bytes = int64_t{64} << 20, .levels = 32};

// The outputs that a container has written.
struct WrittenOutputs {
  v1::JobRecord::Outputs outputs;     // sorted by name; the values of sensitive ones are empty
  std::vector<std::string> problems;  // if there are any, the outputs are invalid
};

// The folder `state` in the folder of a job. Thread-compatible; calls block on the disk.
class DeploymentState {
 public:
  explicit DeploymentState(const std::string& job_folder);

  // Returns its absolute path.
  const std::string& folder() const { return folder_; }

  // Creates the folder. Any user in the container may write to it. ALREADY_EXISTS, or another
  // failure of the disk.
  absl::Status Create(std::string_view parameters) const;

  // Returns which of kStateLimits it exceeds; empty if it exceeds none.
  std::string WhyTooLarge() const { return muster::WhyTooLarge(folder_, kStateLimits); }

  // Reads the outputs of an ended container. A file with JSON is this value, another one is its
  // text without one line break at its end. The problems contain no sensitive values.
  WrittenOutputs ReadOutputs(const std::map<std::string, const Output*>& declared) const;

  // As RemoveUntrusted.
  absl::Status Remove() const { return RemoveUntrusted(folder_); }

 private:
  const std::string folder_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_DEPLOYMENT_STATE_H_
