// The stored deployments, and what became of each on its nodes.
#ifndef MUSTER_SERVICES_JOBS_DEPLOYMENT_STORE_H_
#define MUSTER_SERVICES_JOBS_DEPLOYMENT_STORE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/deployments.pb.h"
#include "services/common/store/sqlite/local_database.h"
#include "services/common/templates/resolved_deployment.h"
#include "services/jobs/audit_outbox.h"
#include "services/jobs/deployment_limits.h"
#include "services/jobs/deployment_source.h"

namespace muster {

// A deployment that has not ended.
struct OpenDeployment {
  v1::Deployment message;  // without nodes
  v1::CreateDeploymentRequest request;
  int64_t position = 0;    // of WatchJob: the records before it are stored
  bool attempted = false;  // the root relay may have its command
};

// A deployment and its creator (a URI).
struct DeploymentOfCreator {
  std::string deployment;
  std::string creator;
  bool cancelled = false;  // by an operator; it may still run
};

// Thread-safe; calls wait for the disk.
class DeploymentStore {
 public:
  using Limits = DeploymentLimits;

  // `database` with the schema of jobs_schema.h outlives this object.
  explicit DeploymentStore(sqlite::LocalDatabase& database) : DeploymentStore(database, Limits()) {}
  DeploymentStore(sqlite::LocalDatabase& database, const Limits& limits)
      : database_(database), limits_(limits) {}

  // Checks in the transaction of Create what the new deployment tries again or destroys.
  using CheckSource = absl::FunctionRef<absl::Status(const DeploymentSource& source)>;

  // Stores a deployment. Returns what is stored, and whether it is new: an earlier call may have
  // had the same request. If it names a source, calls `check`, which may be called twice, fails as
  // it does, and marks the nodes of the source. ALREADY_EXISTS (DEPLOYMENT_EXISTS), NOT_FOUND
  // (DEPLOYMENT_NOT_FOUND: the source), FAILED_PRECONDITION (CONTENT_MISSING), RESOURCE_EXHAUSTED
  // (TOO_MANY_DEPLOYMENTS, DISK_FULL); those of AcquireWorkspace (workspace_rows.h). `vouched_by`:
  // as in ChangeOrigin.
  struct Created {
    v1::Deployment message;
    bool is_new = false;
  };
  absl::StatusOr<Created> Create(
      const v1::Deployment& message, const v1::CreateDeploymentRequest& request,
      CheckSource check = [](const DeploymentSource&) { return absl::OkStatus(); },
      const std::string& vouched_by = "");

  // NOT_FOUND (DEPLOYMENT_NOT_FOUND). Without nodes.
  absl::StatusOr<v1::Deployment> Get(const std::string& deployment);

  // NOT_FOUND (DEPLOYMENT_NOT_FOUND).
  absl::StatusOr<DeploymentSource> GetSource(const std::string& deployment);

  // Adds nodes by name, from the one after `token` on: at most `limit`, and as many as fit into
  // `max_bytes`, but at least one. Sets the token of the next page.
  absl::Status AddNodes(std::string_view token, size_t limit, size_t max_bytes,
                        v1::Deployment* message);

  // Sets the first of the nodes of its request that have no record. Reads the whole request.
  absl::Status AddSilentNodes(v1::Deployment* message);

  // Returns deployments without nodes, the newest first, from the one after `token` on: at most
  // `limit`, and as many as fit into kMaxPageBytes (page_size.h), but at least one.
  // INVALID_ARGUMENT (INVALID_PAGE_TOKEN).
  absl::StatusOr<std::vector<v1::Deployment>> List(std::string_view token, size_t limit,
                                                   std::string* next);

  // Returns all that have not ended, the oldest first.
  absl::StatusOr<std::vector<DeploymentOfCreator>> ListOpen();

  // NOT_FOUND (DEPLOYMENT_NOT_FOUND) if it has ended, unless it was reopened.
  absl::StatusOr<OpenDeployment> GetOpen(const std::string& deployment);

  // Stores that `by` (a URI) cancels the deployment, and returns it. It ends if its submission was
  // not begun. A call for one that has ended, or is cancelled already, changes nothing. NOT_FOUND
  // (DEPLOYMENT_NOT_FOUND), RESOURCE_EXHAUSTED (DISK_FULL).
  absl::StatusOr<v1::Deployment> RequestCancel(const std::string& deployment,
                                               const ChangeOrigin& by, absl::Time time);

  // Each of the following functions changes a deployment that has not ended, or was reopened. For
  // another one it fails with NOT_FOUND (DEPLOYMENT_NOT_FOUND).

  // Stores that the root relay may have the command. To be called before the first submission: a
  // deployment that is cancelled before that is never submitted. Removes its problem.
  absl::Status BeginSubmission(const std::string& deployment);

  // Sets why a deployment is pending.
  absl::Status SetProblem(const std::string& deployment, const std::string& problem);

  // Stores the records and the position of a response. The deployment is running. `content` is that
  // of its command; null: outputs are not checked.
  absl::Status AddRecords(const std::string& deployment, const v1::WatchJobResponse& response,
                          const ResolvedDeployment* content);

  // Ends a deployment whose job has ended, in the state that follows from its nodes. It may be
  // unsettled then (unsettled_deployments.h). That of a build that succeeded creates the version of
  // its template in the same transaction (built_version.h).
  absl::Status EndWithJob(const std::string& deployment, const v1::Job& job);

  // Ends a cancelled deployment whose command will not run.
  absl::Status EndCancelled(const std::string& deployment, absl::Time time);

  // Ends a deployment whose command will not run, or about which nothing more will be known.
  // `never_sent`: the root relay never had the command.
  absl::Status Fail(const std::string& deployment, const std::string& problem, bool never_sent,
                    absl::Time time);

 private:
  absl::Status Change(
      const std::string& deployment,
      absl::FunctionRef<void(sqlite::Connection& db, int64_t id, v1::Deployment* message)> change,
      bool ends);

  sqlite::LocalDatabase& database_;
  const Limits limits_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_DEPLOYMENT_STORE_H_
