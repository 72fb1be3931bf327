// A jobs service over real mutual TLS with a real aggregator and a scripted root relay, for tests.
#ifndef MUSTER_SERVICES_JOBS_TESTING_JOBS_FIXTURE_H_
#define MUSTER_SERVICES_JOBS_TESTING_JOBS_FIXTURE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "muster/v1/audit.pb.h"
#include "muster/v1/deployments.pb.h"
#include "muster/v1/templates.pb.h"
#include "services/jobs/config.h"
#include "services/jobs/jobs_server.h"
#include "services/jobs/testing/scripted_relay.h"
#include "testing/fixtures/test_fleet.h"

namespace muster::testing {

class JobsFixture : public ::testing::Test {
 protected:
  JobsFixture();
  ~JobsFixture() override;

  // Restarts the service with the same state.
  void StartService();
  void StopService();

  std::shared_ptr<grpc::Channel> Connect(const TestIdentity& identity) const;

  // Return the document of the type "greet" in this version, and of a template of it.
  static std::string TypeDocument(const std::string& version);
  static std::string TemplateDocument(const std::string& version);

  // These call the service as the operator.
  absl::StatusOr<v1::TemplateType> CreateType(const std::string& document);
  absl::StatusOr<v1::Template> CreateTemplate(const std::string& document, bool built = false);
  absl::StatusOr<v1::DeploymentPlan> Plan(const v1::PlanDeploymentRequest& request);
  absl::StatusOr<v1::Deployment> Create(const v1::CreateDeploymentRequest& request);
  absl::StatusOr<v1::Deployment> Get(const std::string& deployment);
  absl::StatusOr<v1::Deployment> Cancel(const std::string& deployment);

  // Returns the signed request for a deployment of "greet@1.0.0", which is stored, on these nodes;
  // on all nodes if there are none.
  v1::CreateDeploymentRequest Request(const std::vector<std::string>& nodes);
  v1::CreateDeploymentRequest SignedRequest(v1::Command command,
                                            const std::vector<std::string>& nodes);
  v1::CreateDeploymentRequest SignedRequest(const TestIdentity& signer, v1::Command command,
                                            const std::vector<std::string>& nodes);
  // Calls the service as another operator, again until it knows the command authority.
  absl::StatusOr<v1::Deployment> CreateAs(const TestIdentity& caller,
                                          const v1::CreateDeploymentRequest& request);
  // Creates a deployment of "greet@1.0.0" with a new id as another operator.
  absl::StatusOr<v1::Deployment> CreateAs(const TestIdentity& signer,
                                          const std::vector<std::string>& nodes);
  static v1::Command CommandOf(const v1::CreateDeploymentRequest& request);

  // Creates a deployment while the root relay is down, and waits until its submission was tried.
  v1::Deployment CreatePending(const TestIdentity& creator);
  // Creates deployments, the last of which waits for the others of this creator.
  std::vector<v1::Deployment> CreateUntilOneWaits(const TestIdentity& creator);

  // Waits until the deployment has this state, at most 30 s.
  v1::Deployment AwaitState(const std::string& deployment, v1::DeploymentState state);

  // Waits until the audit log of the aggregator has at least `count` records of this subject, and
  // returns them, the oldest first.
  std::vector<v1::AuditRecord> AwaitAuditRecords(const std::string& subject, size_t count);

  TestFleet fleet_;
  ScriptedRelay relay_{fleet_};
  JobsServiceConfig config_;
  std::unique_ptr<JobsServer> service_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_JOBS_TESTING_JOBS_FIXTURE_H_
