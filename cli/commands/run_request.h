// The request of `muster run`.
#ifndef MUSTER_CLI_COMMANDS_RUN_REQUEST_H_
#define MUSTER_CLI_COMMANDS_RUN_REQUEST_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/rpc/viewer.h"
#include "muster/v1/runs.pb.h"

namespace muster::cli {

// The arguments of the command.
struct RunArguments {
  std::vector<std::string> plugins;
  std::vector<std::string> files;
  std::vector<std::string> nodes;
  std::string nodes_file;
  std::string timeout;
  std::string start_grace;
  std::string lost_after;
  std::string title;
  std::string credentials;
  StatusListenerFiles status_listener;
  bool fail_fast = false;
  bool wait = false;
};

// Makes the request, with a new id, by which the service recognises a repetition. Reads the files
// that the arguments name. A usage error, or the error of a file with its name.
absl::StatusOr<v1::CreateRunRequest> MakeRunRequest(const RunArguments& arguments);

// Names the files of plugin definitions in an error about a definition: the service knows no files.
// Without a file, the name of a plugin is wrong.
absl::Status WithFileNames(const absl::Status& status, const RunArguments& arguments);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_RUN_REQUEST_H_
