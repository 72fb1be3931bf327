// Blocking calls about conformance to the jobs service.
#ifndef MUSTER_CLI_RPC_CONFORMANCE_CLIENT_H_
#define MUSTER_CLI_RPC_CONFORMANCE_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/conformance.grpc.pb.h"
#include "services/common/identity/context.h"

namespace muster::cli {

// As DeploymentClient: every call has a deadline, and is repeated while the service is unavailable.
// Errors are marked with FromService (exit_code.h). Not thread-safe.
class ConformanceClient {
 public:
  // Fails with a usage error if the context names no jobs service.
  static absl::StatusOr<ConformanceClient> Open(const OperatorContext& context);

  // Returns all nodes with a report, by name.
  absl::StatusOr<std::vector<v1::NodeConformance>> List();
  absl::StatusOr<v1::NodeConformance> Get(const std::string& node);

  absl::StatusOr<v1::ConformanceBaseline> GetBaseline();
  // `max_age`: 0 leaves the default to the service.
  absl::StatusOr<v1::ConformanceBaseline> SetBaseline(const std::string& node,
                                                      absl::Duration max_age);
  absl::StatusOr<v1::ConformanceBaseline> RemoveBaseline();

 private:
  explicit ConformanceClient(std::unique_ptr<v1::ConformanceService::Stub> stub)
      : stub_(std::move(stub)) {}

  std::unique_ptr<v1::ConformanceService::Stub> stub_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_CONFORMANCE_CLIENT_H_
