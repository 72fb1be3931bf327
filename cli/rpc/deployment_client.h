// Blocking calls to the jobs service.
#ifndef MUSTER_CLI_RPC_DEPLOYMENT_CLIENT_H_
#define MUSTER_CLI_RPC_DEPLOYMENT_CLIENT_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/deployments.pb.h"
#include "muster/v1/secrets.pb.h"
#include "muster/v1/templates.pb.h"
#include "services/common/identity/context.h"

namespace muster::cli {

// A client of the jobs service with the identity of an operator. Every call has a deadline, and is
// repeated while the service is unavailable: all of them are idempotent. Errors are marked with
// FromService (exit_code.h). Not thread-safe.
class DeploymentClient {
 public:
  // Fails with a usage error if the context names no jobs service.
  static absl::StatusOr<std::unique_ptr<DeploymentClient>> Open(const OperatorContext& context);
  ~DeploymentClient();

  absl::StatusOr<v1::TemplateType> CreateType(const std::string& document);
  absl::StatusOr<v1::TemplateType> GetType(const std::string& reference);
  absl::StatusOr<v1::ListTemplateTypesResponse> ListTypes(
      const v1::ListTemplateTypesRequest& request);

  // `built`: as in CreateTemplateRequest.
  absl::StatusOr<v1::Template> CreateTemplate(const std::string& document, bool built = false);
  absl::StatusOr<v1::Template> GetTemplate(const std::string& reference);
  absl::StatusOr<v1::ListTemplatesResponse> ListTemplates(const v1::ListTemplatesRequest& request);

  absl::StatusOr<v1::DeploymentPlan> Plan(const v1::PlanDeploymentRequest& request);
  absl::StatusOr<v1::Deployment> Create(const v1::CreateDeploymentRequest& request);
  // Returns a deployment with all of its nodes.
  absl::StatusOr<v1::Deployment> Get(const std::string& deployment);
  // The same without nodes, in one small call.
  absl::StatusOr<v1::Deployment> GetWithoutNodes(const std::string& deployment);
  // Returns the deployment without nodes. It may have to be cancelled at the root relay first.
  absl::StatusOr<v1::Deployment> Cancel(const std::string& deployment);
  absl::StatusOr<v1::ListDeploymentsResponse> List(const v1::ListDeploymentsRequest& request);
  // Returns the newest deployments, at most `count`, of 1 to 1,000.
  absl::StatusOr<std::vector<v1::Deployment>> ListNewest(int count);
  // Returns the template, or the type, of each of the newest 1,000 deployments, by its job. Does
  // not wait long for the service: it is for commands that can do without.
  absl::StatusOr<std::map<std::string, std::string>> SubjectsByJob();

  absl::StatusOr<v1::Secret> PutSecret(const std::string& secret, std::string value);
  absl::StatusOr<v1::ListSecretsResponse> ListSecrets(const v1::ListSecretsRequest& request);
  absl::Status DeleteSecret(const std::string& secret);

  // Returns the id of the deployment that `text` names: an id, or a unique prefix of one.
  absl::StatusOr<std::string> Resolve(const std::string& text);

 private:
  struct Stubs;
  explicit DeploymentClient(std::unique_ptr<Stubs> stubs);
  // `limit`: for all calls together.
  absl::StatusOr<std::vector<v1::Deployment>> ListNewest(int count, absl::Duration limit,
                                                         absl::Duration retry_for);
  absl::StatusOr<v1::Deployment> GetPage(const v1::GetDeploymentRequest& request);

  const std::unique_ptr<Stubs> stubs_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_DEPLOYMENT_CLIENT_H_
