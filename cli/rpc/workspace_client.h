// Blocking calls about workspaces to the jobs service.
#ifndef MUSTER_CLI_RPC_WORKSPACE_CLIENT_H_
#define MUSTER_CLI_RPC_WORKSPACE_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/workspaces.grpc.pb.h"
#include "services/common/identity/context.h"

namespace muster::cli {

// As DeploymentClient: every call has a deadline, and is repeated while the service is unavailable.
// Errors are marked with FromService (exit_code.h). Not thread-safe.
class WorkspaceClient {
 public:
  // Fails with a usage error if the context names no jobs service.
  static absl::StatusOr<WorkspaceClient> Open(const OperatorContext& context);

  // Returns all workspaces by name, without their versions.
  absl::StatusOr<std::vector<v1::Workspace>> List();
  absl::StatusOr<v1::Workspace> Get(const std::string& workspace);
  absl::StatusOr<v1::Workspace> Restore(const std::string& workspace, int64_t version);
  // `deployment`: the one that has it; empty: any.
  absl::StatusOr<v1::Workspace> Unlock(const std::string& workspace, const std::string& deployment);
  // `deployment`: the ended one that may have it; empty: none.
  absl::Status Delete(const std::string& workspace, const std::string& deployment);

 private:
  explicit WorkspaceClient(std::unique_ptr<v1::WorkspaceService::Stub> stub)
      : stub_(std::move(stub)) {}

  std::unique_ptr<v1::WorkspaceService::Stub> stub_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_WORKSPACE_CLIENT_H_
