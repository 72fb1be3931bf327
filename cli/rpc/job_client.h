// The relay at the centre as the CLI sees it: jobs, and who is attached. Plain calls that block.
#ifndef MUSTER_CLI_RPC_JOB_CLIENT_H_
#define MUSTER_CLI_RPC_JOB_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/attachment.pb.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/identity/context.h"

namespace muster::cli {

// With an operator's identity. Every call but Watch has a deadline. Errors are marked with
// FromService (exit_code.h). Not thread-safe.
class JobClient {
 public:
  explicit JobClient(const OperatorContext& context);
  ~JobClient();

  // Signs with a key made for this command, with a certificate that the aggregator issues for it,
  // and submits. The command's fleet, job and nonce are filled in.
  absl::StatusOr<v1::Job> Submit(v1::Command command, std::vector<std::string> nodes,
                                 v1::SubmitJobRequest request);
  absl::StatusOr<v1::Job> Get(const std::string& job);
  absl::StatusOr<v1::ListJobsResponse> List(const v1::ListJobsRequest& request);
  absl::StatusOr<v1::Job> Cancel(const std::string& job);

  // Hands every answer to `take`, until the job has ended or `take` says false. A stream that
  // breaks is opened again where it broke, until nothing has come for two minutes. CANCELLED when
  // the user interrupts (interrupt.h). The job as it was told last.
  absl::StatusOr<v1::Job> Watch(v1::WatchJobRequest request,
                                const std::function<bool(const v1::WatchJobResponse&)>& take);

  absl::StatusOr<v1::ListAttachedResponse> ListAttached(const v1::ListAttachedRequest& request);

 private:
  struct Stubs;
  const std::string fleet_;
  std::unique_ptr<Stubs> stubs_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_JOB_CLIENT_H_
