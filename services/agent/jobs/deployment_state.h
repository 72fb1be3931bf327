// Files that the container of a deployment gets and returns, in the folder of its job:
//
//   state/                  at /state in the container
//     parameters.json       the resolved parameters, an object
//     outputs/              the container writes a file for each output, with its name
//   files/                  the files of the deployment, at /files, read-only; only if it has some
//   workspace/              its workspace, at /state/workspace; only if it has one
//   workspace-unsaved       a mark: the workspace must not be removed yet
//
// While it runs, the container may change all of /state, and write other files there.
#ifndef MUSTER_SERVICES_AGENT_JOBS_DEPLOYMENT_STATE_H_
#define MUSTER_SERVICES_AGENT_JOBS_DEPLOYMENT_STATE_H_

#include <google/protobuf/repeated_field.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "muster/v1/jobs.pb.h"
#include "services/agent/jobs/deployment_files.h"
#include "services/agent/jobs/untrusted_folder.h"
#include "services/common/errors/contents.h"
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

// Thread-compatible; calls block on the disk.
class DeploymentState {
 public:
  explicit DeploymentState(const std::string& job_folder);

  // Returns the absolute path of the folder for /state.
  const std::string& folder() const { return folder_; }
  // Return those of the folders for /files and /state/workspace. They need not exist.
  const std::string& files() const { return files_; }
  const std::string& workspace() const { return workspace_; }

  // Creates the folders. Any user in the container may write to /state, and read `files`, which
  // satisfy CheckFiles. ALREADY_EXISTS, another failure of the disk, or that of `fetch`.
  absl::Status Create(
      std::string_view parameters,
      const google::protobuf::RepeatedPtrField<v1::Command::File>& files = {},
      FetchFile fetch = [](const std::string&, const v1::Command::File& file) {
        return errors::ContentUnreachable(file.path(), "there is no jobs service");
      }) const;

  // Marks that the workspace is to be created, or that it is saved. Durable.
  absl::Status MarkUnsaved() const;
  absl::Status MarkSaved() const;

  // Returns which of kStateLimits, or of the limits of a workspace, it exceeds; empty if it exceeds
  // none.
  std::string WhyTooLarge() const;

  // Reads the outputs of an ended container. A file with JSON is this value, another one is its
  // text without one line break at its end. The problems contain no sensitive values. Unless
  // `requires_outputs`, a required one may be missing. An output that is not sensitive and for
  // which `holds_secret` returns true is a problem, which does not show it.
  WrittenOutputs ReadOutputs(const std::map<std::string, const Output*>& declared,
                             bool requires_outputs = true,
                             const std::function<bool(std::string_view)>& holds_secret = {}) const;

  // Removes the folders, as RemoveUntrusted does; an unsaved workspace only if `with_unsaved`.
  absl::Status Remove(bool with_unsaved = false) const;

 private:
  const std::string folder_;
  const std::string files_;
  const std::string workspace_;
  const std::string unsaved_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_DEPLOYMENT_STATE_H_
