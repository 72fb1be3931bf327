// Blocking calls to the root relay: jobs, and the attached nodes.
#ifndef MUSTER_CLI_RPC_JOB_CLIENT_H_
#define MUSTER_CLI_RPC_JOB_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/rpc/sign_command.h"
#include "muster/v1/attachment.pb.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/identity/context.h"

namespace muster::cli {

// A function that JobClient::Watch calls between two responses, this time after its start, if the
// job has not ended by then; again after twice this time, and so on.
struct WatchReminder {
  absl::Duration after = absl::InfiniteDuration();
  std::function<void()> remind;
};

// A client of the root relay with the identity of an operator. Every call except Watch has a
// deadline. Errors are marked with FromService (exit_code.h). Not thread-safe.
class JobClient {
 public:
  explicit JobClient(const OperatorContext& context);
  ~JobClient();

  // Submits a signed command, and repeats it while it is not known whether the relay has it, for
  // some seconds. After an error `*may_run` states whether the relay may have accepted the job.
  absl::StatusOr<v1::Job> Submit(CommandForNodes command, v1::SubmitJobRequest request,
                                 bool* may_run);
  absl::StatusOr<v1::Job> Get(const std::string& job);
  absl::StatusOr<v1::ListJobsResponse> List(const v1::ListJobsRequest& request);
  absl::StatusOr<v1::Job> Cancel(const std::string& job);

  // Calls `on_response` with every response until the job has ended or `on_response` returns false.
  // Resumes a broken stream until two minutes have passed without a response. Returns the last
  // state of the job, or CANCELLED when the user interrupts (interrupt.h).
  absl::StatusOr<v1::Job> Watch(v1::WatchJobRequest request,
                                const std::function<bool(const v1::WatchJobResponse&)>& on_response,
                                const WatchReminder& reminder = {});

  // Reads what the relay has stored, in one call of a few seconds. Returns the state of the job.
  absl::StatusOr<v1::Job> Read(const v1::WatchJobRequest& request,
                               const std::function<void(const v1::WatchJobResponse&)>& on_response);

  absl::StatusOr<v1::ListAttachedResponse> ListAttached(const v1::ListAttachedRequest& request);

 private:
  struct Stubs;
  std::unique_ptr<Stubs> stubs_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_JOB_CLIENT_H_
