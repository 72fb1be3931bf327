// muster.v1.JobService: jobs at the root relay.
#ifndef MUSTER_SERVICES_RELAY_JOB_SERVICE_H_
#define MUSTER_SERVICES_RELAY_JOB_SERVICE_H_

#include <string>

#include "absl/status/statusor.h"
#include "muster/v1/jobs.grpc.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/file_ops.h"
#include "services/common/rpc/call.h"
#include "services/relay/jobs/job_board.h"
#include "services/relay/jobs/job_request.h"
#include "services/relay/relay_role.h"
#include "services/relay/topology/topology_view.h"
#include "services/relay/trust.h"

namespace muster {

// Thread-safe.
class JobService : public v1::JobService::CallbackService {
 public:
  // All outlive the service.
  struct Parts {
    RelayRole& role;  // which has the jobs and the fleet's command authority, at the root relay
    const TopologyView& topology;  // which has the name of this relay
    const Trust& trust;
    FileOps& files;
    const Clock& clock;
  };

  // `requests` runs short calls. `streams` runs watches, which read the disk, and SubmitJob, which
  // may wait for the aggregator: the handling of children must not wait for that.
  JobService(const RpcRuntime& requests, const RpcRuntime& streams, const Parts& parts)
      : requests_(requests), streams_(streams), parts_(parts) {}

  grpc::ServerUnaryReactor* SubmitJob(grpc::CallbackServerContext* context,
                                      const v1::SubmitJobRequest* request,
                                      v1::Job* response) override;
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const v1::GetJobRequest* request, v1::Job* response) override;
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                     const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override;
  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* context,
                                      const v1::CancelJobRequest* request,
                                      v1::Job* response) override;
  grpc::ServerWriteReactor<v1::WatchJobResponse>* WatchJob(
      grpc::CallbackServerContext* context, const v1::WatchJobRequest* request) override;

 private:
  // Returns the jobs if the caller may access them.
  absl::StatusOr<JobBoard*> Allowed(Call& call) const;
  absl::Status Submit(Call& call, const v1::SubmitJobRequest& request, v1::Job* response);
  struct Submission {
    JobRequest request;
    std::string submitter;  // the URI of the signer
  };
  absl::StatusOr<Submission> Verify(Call& call, const v1::SubmitJobRequest& request) const;
  absl::StatusOr<JobChange> Cancel(Call& call, JobBoard& board,
                                   const v1::CancelJobRequest& request) const;
  absl::StatusOr<JobChange> CancelDeployment(Call& call, JobBoard& board,
                                             const v1::CancelJobRequest& request) const;
  absl::Status List(Call& call, const v1::ListJobsRequest& request,
                    v1::ListJobsResponse* response) const;

  const RpcRuntime requests_;
  const RpcRuntime streams_;
  const Parts parts_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOB_SERVICE_H_
