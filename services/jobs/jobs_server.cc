#include "services/jobs/jobs_server.h"

#include <atomic>
#include <string>
#include <utility>

#include "services/common/base/disk_gauges.h"
#include "services/common/base/disk_reserve.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/log.h"
#include "services/common/base/metrics.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/status_macros.h"
#include "services/common/identity/certificate_files.h"
#include "services/common/identity/key_wrap.h"
#include "services/common/identity/recorded_operators.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/service_channel.h"
#include "services/common/rpc/stuck_readers.h"
#include "services/common/service/audit_sender.h"
#include "services/common/service/certificate_renewal.h"
#include "services/common/service/feed_follower.h"
#include "services/common/service/followed_revocations.h"
#include "services/common/service/operator_follower.h"
#include "services/common/service/service_host.h"
#include "services/common/service/service_threads.h"
#include "services/common/store/sqlite/local_database.h"
#include "services/jobs/audit_outbox.h"
#include "services/jobs/command_ca.h"
#include "services/jobs/conformance_service.h"
#include "services/jobs/conformance_store.h"
#include "services/jobs/content_service.h"
#include "services/jobs/content_store.h"
#include "services/jobs/deployment_runner.h"
#include "services/jobs/deployment_service.h"
#include "services/jobs/deployment_store.h"
#include "services/jobs/document_store.h"
#include "services/jobs/jobs_schema.h"
#include "services/jobs/late_outcomes.h"
#include "services/jobs/secret_reads.h"
#include "services/jobs/secret_service.h"
#include "services/jobs/secret_sources.h"
#include "services/jobs/secret_store.h"
#include "services/jobs/template_files.h"
#include "services/jobs/template_service.h"
#include "services/jobs/vault/vault_secrets.h"
#include "services/jobs/workspace_archives.h"
#include "services/jobs/workspace_service.h"
#include "services/jobs/workspace_store.h"

namespace muster {
namespace {

constexpr size_t kMaxQueue = 16'384;
// They store the records of deployments.
constexpr size_t kFollowThreads = 4;
constexpr size_t kMaxFollowed = 100;
// They hash contents of files, and wait for their bytes on the disk.
constexpr size_t kContentThreads = 2;
// They wait for a Vault. A request waits behind so many others at most.
constexpr size_t kVaultThreads = 4;
constexpr size_t kMaxVaultQueue = 4'096;
constexpr absl::Duration kFirstRenewal = absl::Seconds(30);
constexpr absl::Duration kTick = absl::Seconds(10);
constexpr absl::Duration kAuditPoll = absl::Seconds(1);

std::unique_ptr<VaultSecrets> MakeVault(const JobsServiceConfig& config, const Clock& clock) {
  if (config.vault.address.empty()) return nullptr;
  VaultOptions options = config.vault;
  options.unwrapped_file = config.state_folder + "/vault-secret-id";
  return std::make_unique<VaultSecrets>(options, clock);
}

class Assembly : public JobsServer {
 public:
  Assembly(JobsServiceConfig config, std::unique_ptr<DiskReserve> reserve,
           std::unique_ptr<CertificateFiles> tls, std::unique_ptr<sqlite::LocalDatabase> database,
           std::unique_ptr<ContentStore> contents, std::unique_ptr<WorkspaceArchives> archives,
           KeyWrap key_wrap)
      : config_(std::move(config)),
        reserve_(std::move(reserve)),
        tls_(std::move(tls)),
        database_(std::move(database)),
        contents_(std::move(contents)),
        archives_(std::move(archives)),
        threads_(static_cast<size_t>(config_.request_threads), kMaxQueue),
        following_({"deployments", kFollowThreads, kMaxQueue}),
        content_calls_({"contents", kContentThreads, kMaxQueue}),
        vault_calls_({"vault", kVaultThreads, kMaxVaultQueue}),
        host_(
            tls_->identity().fleet, [this] { return tls_->roots(); },
            [this] { return tls_->certificate().NotAfter(); }, clock_, timers_, metrics_),
        documents_(*database_),
        template_files_(*database_),
        deployments_(*database_),
        unsettled_(*database_),
        conformance_(*database_),
        secrets_(*database_, std::move(key_wrap)),
        vault_(MakeVault(config_, clock_)),
        sources_(secrets_, vault_.get()),
        secret_reads_(*database_),
        workspaces_(*database_, static_cast<int64_t>(config_.workspace_quota)),
        audit_outbox_(*database_),
        aggregator_(config_.aggregator_targets, CredentialsFor(ServiceRole::kAggregator), timers_,
                    threads_.background()),
        relay_(config_.relay_targets, CredentialsFor(ServiceRole::kRelay), timers_,
               threads_.background()),
        command_ca_([this] { return aggregator_.Get(); }, timers_, threads_.background()),
        runner_(
            {deployments_, [this] { return relay_.Get(); },
             [this](const std::string& creator) { return revocations_.list().Contains(creator); },
             clock_, timers_, following_},
            kMaxFollowed),
        late_({unsettled_, [this] { return relay_.Get(); },
               [this](DeploymentOfCreator deployment) { runner_.Add(std::move(deployment)); },
               timers_, following_}),
        templates_(host_.Runtime(requests_), documents_, template_files_, *reserve_, clock_),
        deployment_service_(
            host_.Runtime(requests_),
            {documents_, template_files_, deployments_, sources_, workspaces_,
             host_.Runtime(vault_calls_), runner_, conformance_, command_ca_, *reserve_, clock_}),
        conformance_service_(host_.Runtime(requests_), conformance_, *reserve_, clock_),
        content_service_(host_.Runtime(content_calls_), *contents_, archives_->reader()),
        secret_service_(host_.Runtime(requests_), {.secrets = secrets_,
                                                   .sources = sources_,
                                                   .reads = secret_reads_,
                                                   .fleet = tls_->identity().fleet,
                                                   .chains = host_.chains(),
                                                   .revocations = revocations_.list(),
                                                   .identity = [this] { return SigningIdentity(); },
                                                   .reserve = *reserve_,
                                                   .vault_calls = vault_calls_,
                                                   .clock = clock_}),
        workspace_service_(host_.Runtime(requests_), host_.Runtime(content_calls_),
                           {.workspaces = workspaces_,
                            .archives = *archives_,
                            .fleet = tls_->identity().fleet,
                            .chains = host_.chains(),
                            .revocations = revocations_.list(),
                            .identity = [this] { return SigningIdentity(); },
                            .reserve = *reserve_,
                            .clock = clock_}),
        tick_(timers_, threads_.background(), [this] { Tick(); }),
        renewal_([this] { return RenewIfDue(*tls_, aggregator_.Get(), clock_.Now()); }, timers_,
                 threads_.background()) {}

  ~Assembly() override { Stop(); }

  absl::Status Begin();
  void Stop() override;
  int port() const override { return host_.port(); }

 private:
  std::shared_ptr<grpc::ChannelCredentials> CredentialsFor(ServiceRole role) const {
    return MakeChannelCredentials(
        ChannelIdentityFolder{tls_->identity().fleet, tls_->published_folder()}, {role});
  }
  SigningFiles SigningIdentity() const {
    const CertificateTrio trio = tls_->trio();
    return {trio.key, ChainToPem(trio.chain)};
  }
  void AddGauges();
  void SendAuditRecords();
  absl::Status Serve();
  void Tick();
  void KeepVaultSession();

  const JobsServiceConfig config_;
  const Clock& clock_ = SystemClock();
  const std::unique_ptr<DiskReserve> reserve_;
  const std::unique_ptr<CertificateFiles> tls_;
  const std::unique_ptr<sqlite::LocalDatabase> database_;
  const std::unique_ptr<ContentStore> contents_;       // uses the database
  const std::unique_ptr<WorkspaceArchives> archives_;  // likewise
  Metrics metrics_;
  ServiceThreads threads_;
  TimerService& timers_ = threads_.timers();
  Executor& requests_ = threads_.requests();
  Executor following_;
  Executor content_calls_;
  Executor vault_calls_;
  ServiceHost host_;
  FollowedRevocations revocations_{host_.canceller()};
  RecordedOperators operators_{tls_->identity().fleet, clock_};
  OperatorFollower followed_operators_{operators_};  // used by follower_
  DocumentStore documents_;
  TemplateFiles template_files_;
  DeploymentStore deployments_;
  UnsettledDeployments unsettled_;
  ConformanceStore conformance_;
  SecretStore secrets_;
  const std::unique_ptr<VaultSecrets> vault_;  // null: none is configured
  SecretSources sources_;
  SecretReads secret_reads_;
  WorkspaceStore workspaces_;
  AuditOutbox audit_outbox_;
  ServiceChannel aggregator_;
  ServiceChannel relay_;
  CommandCa command_ca_;
  DeploymentRunner runner_;
  LateOutcomes late_;
  TemplateService templates_;
  DeploymentService deployment_service_;
  ConformanceService conformance_service_;
  ContentService content_service_;
  SecretService secret_service_;
  WorkspaceService workspace_service_;
  std::unique_ptr<FeedFollower> follower_;
  std::atomic<bool> keeps_vault_ = false;  // a task of vault_calls_
  std::unique_ptr<AuditSender<AuditOutbox::Record>> audit_sender_;
  // Last: they use the members above.
  ScheduledTask tick_;
  CertificateRenewal renewal_;
};

void Assembly::AddGauges() {
  AddFeedGauges(metrics_, follower_);
  metrics_.AddSampledGauge("muster_jobs_deployments_followed",
                           "Deployments that have not ended and are followed.",
                           [this] { return static_cast<double>(runner_.followed()); });
  metrics_.AddSampledGauge("muster_jobs_deployments_waiting",
                           "Deployments that wait until others have ended.",
                           [this] { return static_cast<double>(runner_.waiting()); });
  metrics_.AddSampledGauge("muster_jobs_content_bytes",
                           "Bytes of the contents of files, with those that are being uploaded.",
                           [this] { return static_cast<double>(contents_->Usage().bytes); });
  metrics_.AddSampledGauge("muster_jobs_workspace_bytes",
                           "Bytes of the versions of workspaces, with those that are being saved.",
                           [this] { return static_cast<double>(workspaces_.Usage()); });
  metrics_.AddSampledGauge(
      "muster_jobs_audit_records_waiting", "Audit records that the aggregator does not have yet.",
      [this] { return static_cast<double>(audit_outbox_.Count().value_or(0)); });
  AddReserveGauge(metrics_, *reserve_, config_.disk_reserve);
}

absl::Status Assembly::Begin() {
  AddGauges();
  follower_ = std::make_unique<FeedFollower>([this] { return aggregator_.Get(); },
                                             [this](const v1::FollowChangesResponse& event) {
                                               followed_operators_.HandleChange(event);
                                               if (revocations_.HandleChange(event))
                                                 runner_.HandleRevocations();
                                             },
                                             timers_, threads_.background());
  command_ca_.Start();
  RETURN_IF_ERROR(runner_.Start());
  late_.Start();
  RETURN_IF_ERROR(Serve());
  SendAuditRecords();
  renewal_.Start(kFirstRenewal);
  KeepVaultSession();
  tick_.RunAfter(kTick);
  return absl::OkStatus();
}

void Assembly::SendAuditRecords() {
  using Record = AuditOutbox::Record;
  audit_sender_ = std::make_unique<AuditSender<Record>>(
      AuditSender<Record>::Parts{
          .unaudited =
              [this](size_t limit) {
                auto records = audit_outbox_.List(limit);
                if (records.ok()) return *std::move(records);
                LogLimited(LogLevel::kError, "cannot read the audit records that wait", "",
                           {{"error", records.status()}});
                return std::vector<Record>();
              },
          .mark_audited = [this](const Record& record) { return audit_outbox_.Remove(record); },
          .send =
              [this](const Record& record, AuditSender<Record>::Done done) {
                SendAuditRequest<v1::RecordServiceChangeRequest, v1::RecordServiceChangeResponse>(
                    aggregator_.Get(), &v1::AuditService::Stub::async::RecordServiceChange,
                    record.request, std::move(done));
              },
          .subject_of = [](const Record& record) { return record.request.subject(); },
          .log_lost = [](const Record& record,
                         const std::string& why) { LogLostAuditRecord(record.request, why); },
          .poll_after = kAuditPoll},
      timers_, threads_.background());
}

absl::Status Assembly::Serve() {
  ServiceHost::Options options;
  options.name = "jobs";
  options.listen = config_.listen;
  options.health_port = config_.health_port;
  options.inspection_port = config_.inspection_port;
  options.addresses_file = config_.addresses_file;
  options.certificate_folder = tls_->published_folder();
  options.is_revoked = [this](const Caller& caller) { return revocations_.IsRevoked(caller); };
  options.check_caller = [this](const Caller& caller) { return operators_.Check(caller); };
  return host_.Serve(std::move(options),
                     {&templates_, &deployment_service_, &conformance_service_, &content_service_,
                      &secret_service_, &workspace_service_});
}

void Assembly::Tick() {
  host_.Tick(kStuckReader);
  reserve_->Restore();
  contents_->Sweep();
  KeepVaultSession();
  archives_->Sweep();
  tick_.RunAfter(kTick);
}

void Assembly::KeepVaultSession() {
  if (vault_ == nullptr || keeps_vault_.exchange(true)) return;
  const bool posted = vault_calls_.Post([this] {
    vault_->Maintain();
    keeps_vault_ = false;
  });
  if (!posted) keeps_vault_ = false;
}

void Assembly::Stop() {
  if (!host_.BeginStop()) return;
  if (vault_ != nullptr) vault_->Stop();
  host_.StopServing(config_.drain);
  runner_.Stop();
  if (follower_ != nullptr) follower_->Stop();
  audit_sender_.reset();
  tick_.Stop();
  renewal_.Stop();
  threads_.Stop(config_.drain);
  following_.Drain(config_.drain).IgnoreError();
  content_calls_.Drain(absl::InfiniteDuration()).IgnoreError();
  vault_calls_.Drain(absl::InfiniteDuration()).IgnoreError();
  host_.StopInspection();
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobsServer>> JobsServer::Start(
    const JobsServiceConfig& config, std::function<void(const absl::Status&)> fail) {
  RETURN_IF_ERROR(CheckJobsServiceConfig(config));
  // First: the rest of the start may need the reserved space.
  auto reserve =
      std::make_unique<DiskReserve>(PosixFileOps(), config.state_folder + "/" + kDiskReserveFile,
                                    static_cast<int64_t>(config.disk_reserve));
  reserve->Start();
  ASSIGN_OR_RETURN(auto tls, CertificateFiles::Open(config.state_folder + "/tls",
                                                    config.state_folder + "/tls-published",
                                                    ServiceRole::kJobs, SystemClock().Now()));
  ASSIGN_OR_RETURN(auto database, sqlite::LocalDatabase::Open(config.state_folder + "/jobs.db",
                                                              kJobsSchema, std::move(fail)));
  ASSIGN_OR_RETURN(auto key_wrap, KeyWrap::OpenOrCreate(config.state_folder + "/store.key"));
  const ContentLimits limits = {.quota = static_cast<int64_t>(config.content_quota),
                                .max_contents = config.max_contents};
  ASSIGN_OR_RETURN(auto contents, ContentStore::Open(*database, config.state_folder + "/contents",
                                                     limits, SystemClock()));
  // Each owner of the key has a copy of it.
  ASSIGN_OR_RETURN(auto archive_key, KeyWrap::Open(config.state_folder + "/store.key"));
  ASSIGN_OR_RETURN(auto archives,
                   WorkspaceArchives::Open(
                       *database, std::move(archive_key), config.state_folder + "/workspaces",
                       {.quota = static_cast<int64_t>(config.workspace_quota)}, SystemClock()));
  auto assembly =
      std::make_unique<Assembly>(config, std::move(reserve), std::move(tls), std::move(database),
                                 std::move(contents), std::move(archives), std::move(key_wrap));
  RETURN_IF_ERROR(assembly->Begin());
  return assembly;
}

}  // namespace muster
