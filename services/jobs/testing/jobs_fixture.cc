#include "services/jobs/testing/jobs_fixture.h"

#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <stdexcept>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/v1/audit.grpc.pb.h"
#include "muster/v1/deployments.grpc.pb.h"
#include "muster/v1/identities.grpc.pb.h"
#include "muster/v1/templates.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/random_id.h"
#include "services/common/identity/signed_command.h"
#include "services/common/identity/signing_key.h"
#include "services/common/identity/target_set.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/proto_time.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/test_call.h"

namespace muster::testing {
namespace {

constexpr char kImage[] =
    "registry.example/greet@sha256:"
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

// The service follows so many deployments of one operator at a time.
constexpr int kFollowedOfOne = 50;

}  // namespace

JobsFixture::JobsFixture() {
  const std::filesystem::path home =
      std::filesystem::path(fleet_.config.state_folder).parent_path();
  config_.state_folder = home / "jobs";
  config_.listen = {"127.0.0.1", 0};
  config_.aggregator_targets = {{"127.0.0.1", static_cast<uint16_t>(fleet_.port())}};
  config_.relay_targets = {{"127.0.0.1", static_cast<uint16_t>(relay_.port())}};
  config_.log.level = "error";
  config_.drain = absl::Milliseconds(500);
  StartService();
}

JobsFixture::~JobsFixture() { StopService(); }

void JobsFixture::StartService() {
  auto server = JobsServer::Start(config_, [](const absl::Status&) {});
  if (!server.ok()) throw std::runtime_error(server.status().ToString());
  service_ = *std::move(server);
}

void JobsFixture::StopService() {
  if (service_ != nullptr) service_->Stop();
  service_.reset();
}

std::shared_ptr<grpc::Channel> JobsFixture::Connect(const TestIdentity& identity) const {
  const ChannelIdentity channel = {fleet_.name(), fleet_.fleet_ca_pem(), identity.chain_pem,
                                   identity.key_pem, ""};
  return MakeChannel(absl::StrCat("127.0.0.1:", service_->port()),
                     MakeChannelCredentials(channel, {ServiceRole::kJobs}), true);
}

std::string JobsFixture::TypeDocument(const std::string& version) {
  return absl::StrCat("apiVersion: muster/v1\nkind: TemplateType\nname: greet\nversion: ", version,
                      "\nimage: ", kImage,
                      "\ncontract: 1\nparameters:\n"
                      "  name: {schema: {type: string, maxLength: 20}, required: true}\n"
                      "  greeting: {schema: {type: string}, delegation: default, value: hello}\n"
                      "  token: {schema: {type: string}, sensitive: true}\n"
                      "outputs:\n  text: {schema: {type: string}, required: true}\n");
}

std::string JobsFixture::TemplateDocument(const std::string& version) {
  return absl::StrCat("apiVersion: muster/v1\nkind: Template\nname: hi\nversion: ", version,
                      "\ntype: greet@1.0.0\nparameters:\n"
                      "  greeting: {delegation: fixed, value: hi}\n");
}

absl::StatusOr<v1::TemplateType> JobsFixture::CreateType(const std::string& document) {
  v1::CreateTemplateTypeRequest request;
  request.set_document(document);
  return CallUnary<v1::TemplateService>(Connect(fleet_.admin()),
                                        &v1::TemplateService::Stub::CreateTemplateType, request);
}

absl::StatusOr<v1::Template> JobsFixture::CreateTemplate(const std::string& document, bool built) {
  v1::CreateTemplateRequest request;
  request.set_document(document);
  request.set_built(built);
  return CallUnary<v1::TemplateService>(Connect(fleet_.admin()),
                                        &v1::TemplateService::Stub::CreateTemplate, request);
}

absl::StatusOr<v1::DeploymentPlan> JobsFixture::Plan(const v1::PlanDeploymentRequest& request) {
  return CallUnary<v1::DeploymentService>(Connect(fleet_.admin()),
                                          &v1::DeploymentService::Stub::PlanDeployment, request);
}

absl::StatusOr<v1::Deployment> JobsFixture::Create(const v1::CreateDeploymentRequest& request) {
  return CreateAs(fleet_.admin(), request);
}

absl::StatusOr<v1::Deployment> JobsFixture::CreateAs(const TestIdentity& caller,
                                                     const v1::CreateDeploymentRequest& request) {
  absl::StatusOr<v1::Deployment> created;
  EXPECT_TRUE(Await([&] {
    created = CallUnary<v1::DeploymentService>(
        Connect(caller), &v1::DeploymentService::Stub::CreateDeployment, request);
    return ReasonOf(created.status()) != "NO_COMMAND_AUTHORITY";
  }));
  return created;
}

absl::StatusOr<v1::Deployment> JobsFixture::Get(const std::string& deployment) {
  v1::GetDeploymentRequest request;
  request.set_deployment(deployment);
  return CallUnary<v1::DeploymentService>(Connect(fleet_.admin()),
                                          &v1::DeploymentService::Stub::GetDeployment, request);
}

absl::StatusOr<v1::Deployment> JobsFixture::Cancel(const std::string& deployment) {
  v1::CancelDeploymentRequest request;
  request.set_deployment(deployment);
  return CallUnary<v1::DeploymentService>(Connect(fleet_.admin()),
                                          &v1::DeploymentService::Stub::CancelDeployment, request);
}

v1::CreateDeploymentRequest JobsFixture::Request(const std::vector<std::string>& nodes) {
  EXPECT_TRUE(CreateType(TypeDocument("1.0.0")).ok());
  v1::PlanDeploymentRequest wanted;
  wanted.set_type("greet@1.0.0");
  wanted.set_parameters(R"({"name": "Ada", "token": "s3cret"})");
  const auto plan = Plan(wanted);
  EXPECT_TRUE(plan.ok()) << plan.status();
  v1::Command command;
  command.set_action(std::string(kDeploymentAction));
  command.mutable_container()->set_image(plan->image());
  *command.mutable_container()->mutable_deployment() = plan->deployment();
  command.mutable_container()->mutable_deployment()->set_deployment(RandomHex(16));
  command.set_job(RandomHex(16));
  ToProto(absl::Now(), command.mutable_not_before());
  ToProto(absl::Now() + absl::Minutes(5), command.mutable_not_after());
  command.mutable_time_limit()->set_seconds(60);
  return SignedRequest(std::move(command), nodes);
}

v1::CreateDeploymentRequest JobsFixture::SignedRequest(v1::Command command,
                                                       const std::vector<std::string>& nodes) {
  return SignedRequest(fleet_.admin(), std::move(command), nodes);
}

absl::StatusOr<v1::Deployment> JobsFixture::CreateAs(const TestIdentity& signer,
                                                     const std::vector<std::string>& nodes) {
  v1::Command command = CommandOf(Request(nodes));
  command.set_job(RandomHex(16));
  command.mutable_container()->mutable_deployment()->set_deployment(RandomHex(16));
  return CreateAs(signer, SignedRequest(signer, std::move(command), nodes));
}

v1::CreateDeploymentRequest JobsFixture::SignedRequest(const TestIdentity& signer,
                                                       v1::Command command,
                                                       const std::vector<std::string>& nodes) {
  const SigningKey key = SigningKey::Generate().value();
  v1::IssueCommandCertificateRequest issue;
  issue.set_public_key_pem(key.public_key().ToPem().value());
  const auto certificate = CallUnary<v1::IdentityService>(
      fleet_.Connect(signer), &v1::IdentityService::Stub::IssueCommandCertificate, issue);
  EXPECT_TRUE(certificate.ok()) << certificate.status();
  command.set_fleet(fleet_.name());
  command.set_nonce(absl::HexStringToBytes(RandomHex(16)));
  const TargetSet targets(nodes);
  if (nodes.empty()) {
    command.mutable_targets()->set_all(true);
  } else {
    command.mutable_targets()->set_nodes_sha256(targets.root());
    command.mutable_targets()->set_count(static_cast<int64_t>(targets.size()));
  }
  v1::CreateDeploymentRequest request;
  *request.mutable_command() =
      SignCommand(command, key, certificate->certificate_chain_pem()).value();
  for (const std::string& node : targets.names()) request.add_nodes(node);
  return request;
}

v1::Command JobsFixture::CommandOf(const v1::CreateDeploymentRequest& request) {
  v1::Command command;
  command.ParseFromString(request.command().command());
  return command;
}

v1::Deployment JobsFixture::CreatePending(const TestIdentity& creator) {
  relay_.Stop();
  const auto created = CreateAs(creator, {"n1"});
  EXPECT_TRUE(created.ok()) << created.status();
  EXPECT_TRUE(Await([&] { return !Get(created->deployment())->problem().empty(); }));
  return *created;
}

std::vector<v1::Deployment> JobsFixture::CreateUntilOneWaits(const TestIdentity& creator) {
  std::vector<v1::Deployment> created;
  for (int i = 0; i <= kFollowedOfOne; ++i) {
    auto one = CreateAs(creator, {"n1"});
    EXPECT_TRUE(one.ok()) << one.status();
    created.push_back(*std::move(one));
  }
  for (int i = 0; i < kFollowedOfOne; ++i) {
    EXPECT_TRUE(relay_.AwaitJob(created[static_cast<size_t>(i)].job())) << i;
  }
  return created;
}

v1::Deployment JobsFixture::AwaitState(const std::string& deployment, v1::DeploymentState state) {
  v1::Deployment last;
  EXPECT_TRUE(Await([&] {
    auto got = Get(deployment);
    if (got.ok()) last = *std::move(got);
    return last.state() == state;
  })) << last.ShortDebugString();
  return last;
}

std::vector<v1::AuditRecord> JobsFixture::AwaitAuditRecords(const std::string& subject,
                                                            size_t count) {
  v1::ListAuditRecordsRequest request;
  request.set_subject(subject);
  std::vector<v1::AuditRecord> records;
  EXPECT_TRUE(Await([&] {
    const auto page = CallUnary<v1::AuditService>(
        fleet_.Connect(fleet_.admin()), &v1::AuditService::Stub::ListAuditRecords, request);
    if (page.ok()) records.assign(page->records().begin(), page->records().end());
    return records.size() >= count;
  })) << subject;
  return records;
}

}  // namespace muster::testing
