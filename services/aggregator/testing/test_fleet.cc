#include "services/aggregator/testing/test_fleet.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/v1/listeners.grpc.pb.h"
#include "muster/v1/results.grpc.pb.h"
#include "muster/v1/runs.grpc.pb.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/sha256.h"
#include "services/common/identity/authority.h"
#include "services/common/identity/bootstrap.h"
#include "services/common/identity/context.h"
#include "services/common/identity/signing_request.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/process.h"
#include "services/common/rpc/status.h"
#include "services/common/store/sqlite/sqlite_store.h"

namespace muster::testing {
namespace {

// A test that cannot be set up ends with the reason.
template <typename T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) throw std::runtime_error(value.status().ToString());
  return *std::move(value);
}

void Must(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

void Must(const grpc::Status& status) { Must(FromGrpc(status)); }

std::string TemporaryFolder() {
  const char* base = std::getenv("TEST_TMPDIR");
  std::string folder = absl::StrCat(base != nullptr ? base : "/tmp", "/fleet-XXXXXX");
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  return folder;
}

}  // namespace

TestFleet::TestFleet() : home_(TemporaryFolder()) {
  RequireTls13();
  BootstrapOptions options;
  options.operator_name = "tester";
  fleet_ = Must(Bootstrap(home_, options, absl::Now())).fleet;
  const OperatorContext context = Must(ReadContext(home_.ContextFile()));
  operator_ = {context.certificate_chain_pem, std::string(context.private_key_pem.view())};
  config.state_folder = home_.ServiceFolder(ServiceRole::kAggregator);
  config.listen = {"127.0.0.1", 0};
  config.join_listen = {"127.0.0.1", 0};
  config.log.level = "error";
  Start();
}

TestFleet::~TestFleet() {
  Stop();
  std::error_code ignored;
  std::filesystem::remove_all(home_.path(), ignored);
}

void TestFleet::Start() {
  aggregator_ = Must(Aggregator::Start(config, [](const absl::Status&) {}));
}

void TestFleet::Stop() {
  if (aggregator_ != nullptr) aggregator_->Stop();
  aggregator_.reset();
}

std::string TestFleet::fleet_ca_pem() const {
  return Must(ReadFileBounded(home_.RootCertificate(), kMaxSecretFile));
}

TestIdentity TestFleet::Issue(const FleetName& name) const {
  const Intermediate intermediate = Must(Intermediate::Load(
      fleet_, Must(PrivateKey::FromPem(Must(ReadSecretFile(home_.IntermediateKey())))),
      Must(Certificate::FromPem(
          Must(ReadFileBounded(home_.IntermediateCertificate(), kMaxSecretFile)))),
      Must(Certificate::FromPem(fleet_ca_pem()))));
  const PrivateKey key = Must(PrivateKey::Generate());
  const Certificate leaf = Must(
      intermediate.Issue(name, key.public_key(), {}, absl::Now(), absl::Now() + absl::Hours(1)));
  return {absl::StrCat(leaf.ToPem(), intermediate.certificate().ToPem()),
          std::string(Must(key.ToPkcs8Pem()).view())};
}

std::shared_ptr<grpc::Channel> TestFleet::Connect(const TestIdentity& identity) const {
  const ChannelIdentity channel = {fleet_, fleet_ca_pem(), identity.chain_pem, identity.key_pem};
  return MakeChannel(absl::StrCat("127.0.0.1:", port()),
                     MakeChannelCredentials(channel, {ServiceRole::kAggregator}), true);
}

std::shared_ptr<grpc::Channel> TestFleet::ConnectToJoin() const {
  return MakeChannel(absl::StrCat("127.0.0.1:", join_port()),
                     MakeOpenChannelCredentials(fleet_, fleet_ca_pem(), {ServiceRole::kAggregator}),
                     true);
}

v1::Run TestFleet::CreateRun(const std::vector<std::string>& plugins,
                             const std::vector<std::string>& nodes, int timeout_seconds,
                             int seal_grace_seconds) {
  v1::CreateRunRequest request;
  request.mutable_plugins()->Assign(plugins.begin(), plugins.end());
  request.mutable_nodes()->Assign(nodes.begin(), nodes.end());
  request.mutable_timeout()->set_seconds(timeout_seconds);
  request.mutable_seal_grace()->set_seconds(seal_grace_seconds);
  v1::Run run;
  grpc::ClientContext create;
  Must(v1::RunService::NewStub(Connect(operator_))->CreateRun(&create, request, &run));
  v1::ReportListenerRequest report;
  report.set_run(run.id());
  report.set_port(1);
  report.set_open(true);
  grpc::ClientContext open;
  const TestIdentity gateway = Issue(ServiceIdentity{ServiceRole::kGateway, "test"});
  Must(v1::ListenerService::NewStub(Connect(gateway))->ReportListener(&open, report, &run));
  return run;
}

TestIdentity TestFleet::Credential(const std::string& run, const std::string& plugin,
                                   const std::string& node) {
  const PrivateKey key = Must(PrivateKey::Generate());
  v1::IssueCredentialRequest request;
  request.set_run(run);
  request.set_plugin(plugin);
  request.set_node(node);
  request.set_any_node(node.empty());
  request.set_csr_pem(Must(CreateSigningRequest(key)));
  v1::Credential credential;
  grpc::ClientContext context;
  Must(
      v1::RunService::NewStub(Connect(operator_))->IssueCredential(&context, request, &credential));
  return {absl::StrCat(credential.certificate_pem(), credential.chain_pem()),
          std::string(Must(key.ToPkcs8Pem()).view())};
}

std::vector<AuditRecord> TestFleet::Audit(const std::string& run) {
  Stop();
  SqliteStoreOptions options;
  options.path = config.state_folder + "/state.db";
  std::vector<AuditRecord> records =
      Must(Must(OpenSqliteStore(std::move(options)))->Audit(run, "", 1000)).items;
  Start();
  return records;
}

v1::Run TestFleet::WaitForEnd(const std::string& run) {
  v1::WatchRunRequest request;
  request.set_run(run);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  const auto stub = v1::RunService::NewStub(Connect(operator_));
  const auto stream = stub->WatchRun(&context, request);
  v1::Run last;
  while (stream->Read(&last)) {
  }
  Must(stream->Finish());
  return last;
}

v1::SubmitResultRequest SmallResult(const std::string& run, const std::string& plugin,
                                    const std::string& node, const std::string& body) {
  v1::SubmitResultRequest request;
  v1::ResultDescription* description = request.mutable_description();
  description->mutable_key()->set_run(run);
  description->mutable_key()->set_plugin(plugin);
  description->mutable_key()->set_node(node);
  description->set_attempt(1);
  description->set_media_type("application/json");
  description->set_file_name("result.json");
  request.set_crc32c(Crc32c(body));
  request.set_sha256(DigestBytes(Sha256::Of(body)));
  request.set_body(body);
  return request;
}

absl::StatusOr<v1::Result> UploadAll(const std::shared_ptr<grpc::Channel>& channel,
                                     const std::string& run, const std::string& plugin,
                                     const std::string& node, const std::string& body,
                                     size_t chunk) {
  const auto stub = v1::ResultService::NewStub(channel);
  v1::OpenUploadRequest open;
  *open.mutable_description() = SmallResult(run, plugin, node, "").description();
  open.set_size(static_cast<int64_t>(body.size()));
  v1::OpenUploadResponse opened;
  grpc::ClientContext open_context;
  const grpc::Status status = stub->OpenUpload(&open_context, open, &opened);
  if (!status.ok()) return FromGrpc(status);
  if (opened.has_committed()) return opened.committed();

  grpc::ClientContext context;
  const auto stream = stub->Upload(&context);
  v1::UploadRequest request;
  request.mutable_start()->set_upload_id(opened.upload_id());
  request.mutable_start()->set_epoch(opened.epoch());
  stream->Write(request);
  for (size_t offset = opened.offset(); offset < body.size(); offset += chunk) {
    const std::string piece = body.substr(offset, chunk);
    v1::UploadRequest::Chunk* message = request.mutable_chunk();
    message->set_offset(static_cast<int64_t>(offset));
    message->set_raw_size(static_cast<int64_t>(piece.size()));
    message->set_crc32c(Crc32c(piece));
    message->set_data(piece);
    if (!stream->Write(request)) break;
  }
  v1::UploadRequest::Finish* finish = request.mutable_finish();
  finish->set_size(static_cast<int64_t>(body.size()));
  finish->set_crc32c(Crc32c(body));
  finish->set_sha256(DigestBytes(Sha256::Of(body)));
  stream->Write(request);
  stream->WritesDone();
  v1::UploadResponse response;
  v1::Result committed;
  while (stream->Read(&response)) {
    if (response.has_committed()) committed = response.committed();
  }
  const grpc::Status finished = stream->Finish();
  if (!finished.ok()) return FromGrpc(finished);
  return committed;
}

}  // namespace muster::testing
