#include "services/aggregator/aggregator.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/aggregator/addresses.h"
#include "services/aggregator/archive_service.h"
#include "services/aggregator/audit_service.h"
#include "services/aggregator/change_service.h"
#include "services/aggregator/changes/change_dispatcher.h"
#include "services/aggregator/enrollment_service.h"
#include "services/aggregator/foundation.h"
#include "services/aggregator/identity_service.h"
#include "services/aggregator/join_service.h"
#include "services/aggregator/listener_service.h"
#include "services/aggregator/nodes/command_trust.h"
#include "services/aggregator/result_service.h"
#include "services/aggregator/run_service.h"
#include "services/aggregator/runs/authorities.h"
#include "services/aggregator/runs/lifecycle.h"
#include "services/aggregator/runs/listener_waits.h"
#include "services/aggregator/runs/retention.h"
#include "services/aggregator/runs/run_readers.h"
#include "services/aggregator/runs/runs.h"
#include "services/aggregator/runs/sealer.h"
#include "services/aggregator/runs/status_listeners.h"
#include "services/aggregator/uploads/result_committer.h"
#include "services/aggregator/uploads/uploads.h"
#include "services/aggregator/verdicts/verdict_follower.h"
#include "services/aggregator/verdicts/verdicts.h"
#include "services/aggregator/verification_service.h"
#include "services/aggregator/verify/scrubber.h"
#include "services/common/base/disk_gauges.h"
#include "services/common/base/disk_reserve.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/log.h"
#include "services/common/base/metrics.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/rpc.h"
#include "services/common/identity/certificate_files.h"
#include "services/common/identity/revocation.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/channel_target.h"
#include "services/common/rpc/service_channel.h"
#include "services/common/rpc/stuck_readers.h"
#include "services/common/service/certificate_renewal.h"
#include "services/common/service/service_host.h"
#include "services/common/service/service_threads.h"
#include "services/common/store/sqlite/sqlite_store.h"

namespace muster {
namespace {

constexpr size_t kMaxQueue = 16'384;
// Strangers do not use the threads and the queue of members.
constexpr size_t kJoinThreads = 2;
constexpr size_t kMaxJoins = 4'096;
constexpr absl::Duration kTick = absl::Seconds(1);
// After this many ticks uploads are swept, and idle streams get a heartbeat.
constexpr int kSweepTicks = 5;
constexpr absl::Duration kLeftBlobs = absl::Seconds(10);
constexpr absl::Duration kFirstRenewal = absl::Seconds(30);

// Returns the limit of the committed results of one run; 0: none, because the size of the disk is
// unknown.
int64_t MaxRunBytes(const AggregatorConfig& config) {
  const double capacity = DiskSize(config.state_folder + "/blobs");
  if (std::isnan(capacity)) return 0;
  return static_cast<int64_t>(capacity / 100 * static_cast<double>(config.run_results_percent));
}

class Assembly : public Aggregator {
 public:
  Assembly(AggregatorConfig config, Foundation foundation)
      : config_(std::move(config)),
        f_(std::move(foundation)),
        threads_(static_cast<size_t>(config_.request_threads), kMaxQueue),
        disk_({"disk", static_cast<size_t>(config_.disk_threads), kMaxQueue}),
        joins_({"joins", kJoinThreads, kMaxJoins}),
        host_(
            f_.authorities->fleet(), [this] { return f_.tls->roots(); },
            [this] { return f_.tls->certificate().NotAfter(); }, clock_, timers_, metrics_),
        committer_(*f_.store, *f_.blobs, requests_, clock_, f_.authorities->fleet(),
                   f_.authorities->root(), revocations_, metrics_, config_.uploads.max_run_bytes),
        proofs_(f_.authorities->fleet(), f_.authorities->root(), *f_.store, clock_,
                [this](const Caller& caller) { return revocations_.IsRevoked(caller); }),
        uploads_(*f_.store, *f_.blobs, committer_, disk_, clock_, host_.streams(), config_.uploads),
        runs_(*f_.store, *f_.blobs, uploads_, *f_.authorities, clock_, config_.advertise,
              config_.legacy_host),
        listener_waits_(*f_.store, clock_, metrics_),
        status_listeners_(*f_.store, *f_.authorities, clock_, config_.advertise),
        verdicts_(*f_.store, clock_, OwnUri()),
        changes_(*f_.store, requests_, &timers_),
        redeliveries_(*f_.store, *f_.blobs, clock_, OwnUri()),
        lifecycle_(std::make_shared<Lifecycle>(*f_.store, uploads_, timers_, requests_, clock_,
                                               redeliveries_, OwnUri())),
        sealer_(
            *f_.store, *f_.blobs, uploads_, PosixFileOps(), config_.state_folder, clock_,
            redeliveries_, OwnUri(),
            [this](const std::string& run) { lifecycle_->ReviewAfter(run, kSealRetry); }, metrics_,
            static_cast<size_t>(config_.seal_threads)),
        runtime_(host_.Runtime(requests_)),
        retention_(*f_.store, runs_, readers_, clock_, timers_, threads_.background(),
                   {config_.keep_age, config_.keep_runs, static_cast<int64_t>(config_.keep_bytes)},
                   OwnUri(), metrics_),
        run_service_(runtime_, runs_, *f_.authorities, listener_waits_, status_listeners_, changes_,
                     *f_.store, retention_, clock_, addresses_),
        result_service_(runtime_, *f_.store, *f_.blobs, uploads_, committer_, proofs_, readers_,
                        clock_),
        archive_service_(runtime_, runs_, *f_.store, *f_.blobs, readers_, clock_),
        change_service_(runtime_, *f_.store, *f_.store, changes_,
                        f_.authorities->operators().prefix(), clock_),
        listener_service_(runtime_, runs_, *f_.authorities, status_listeners_, *f_.store, clock_),
        identity_service_(runtime_, *f_.authorities, *f_.commands, *f_.store, clock_, addresses_,
                          ServiceHosts(config_)),
        enrollment_(*f_.store, clock_),
        enrollment_service_(runtime_, enrollment_, JoinTargetsOf(addresses_),
                            f_.authorities->FleetCaPem(), f_.commands->CaPem()),
        joining_(*f_.store, *f_.authorities, clock_),
        join_answers_(joining_, *f_.store, clock_, addresses_, f_.authorities->FleetCaPem(),
                      f_.commands->CaPem(), metrics_),
        join_service_(joins_, join_answers_),
        relayed_join_service_(runtime_, join_answers_),
        audit_service_(runtime_, *f_.store, clock_),
        verification_service_(runtime_, *f_.store, *f_.blobs, clock_, sealer_.read_failures()),
        scrubber_(*f_.store, *f_.blobs, clock_, timers_, threads_.background(),
                  {static_cast<int64_t>(config_.verify_rate), config_.verify_every, OwnUri(),
                   &sealer_.read_failures()},
                  metrics_),
        tick_(timers_, threads_.background(), [this] { Tick(); }),
        left_blobs_(timers_, threads_.background(), [this] { RemoveLeftBlobs(); }),
        renewal_([this] { return RenewOwnCertificate(); }, timers_, threads_.background()) {}

  ~Assembly() override { Stop(); }
  absl::Status Begin();
  void Stop() override;
  int port() const override { return host_.port(); }
  int health_port() const override { return host_.health_port(); }
  int join_port() const override { return host_.join_port(); }

 private:
  std::string OwnUri() const { return ToUri(f_.tls->identity()).value_or(""); }
  absl::Status LoadRevocations();
  void Observe(const ChangeRecord& change);
  void CancelRevoked();
  absl::Status CatchUp();
  absl::Status Serve();
  void FollowVerdicts();
  void Tick();
  void RemoveLeftBlobs();
  absl::Status RenewOwnCertificate();
  void AddGauges();

  const AggregatorConfig config_;
  const Addresses addresses_ = MakeAddresses(config_);
  const Clock& clock_ = SystemClock();
  Foundation f_;
  Metrics& metrics_ = *f_.metrics;
  ServiceThreads threads_;
  TimerService& timers_ = threads_.timers();
  Executor& requests_ = threads_.requests();
  Executor disk_;
  Executor joins_;
  ServiceHost host_;
  RevocationList revocations_;
  ResultCommitter committer_;
  SpooledProofs proofs_;
  Uploads uploads_;
  Runs runs_;
  ListenerWaits listener_waits_;
  StatusListeners status_listeners_;
  Verdicts verdicts_;
  ChangeDispatcher changes_;
  RedeliveryWait redeliveries_;
  std::shared_ptr<Lifecycle> lifecycle_;
  Sealer sealer_;
  const RpcRuntime runtime_;
  RunReaders readers_;
  Retention retention_;
  RunService run_service_;
  ResultService result_service_;
  ArchiveService archive_service_;
  ChangeService change_service_;
  ListenerService listener_service_;
  IdentityService identity_service_;
  Enrollment enrollment_;
  EnrollmentService enrollment_service_;
  Joining joining_;
  JoinHandler join_answers_;
  JoinService join_service_;
  RelayedJoinService relayed_join_service_;
  AuditService audit_service_;
  VerificationService verification_service_;
  std::optional<ServiceChannel> status_;  // used by follower_
  std::unique_ptr<VerdictFollower> follower_;
  int ticks_ = 0;  // used by Tick
  // Last: they use the members above.
  Scrubber scrubber_;
  ScheduledTask tick_;
  ScheduledTask left_blobs_;
  CertificateRenewal renewal_;
};

absl::Status Assembly::Begin() {
  RETURN_IF_ERROR(uploads_.Recover());
  RETURN_IF_ERROR(LoadRevocations());
  changes_.AddObserver([this](const ChangeRecord& change) { Observe(change); });
  changes_.OnGap([this] { return CatchUp(); });
  RETURN_IF_ERROR(changes_.Start());
  RETURN_IF_ERROR(lifecycle_->Start([this](const std::string& run) { return sealer_.Seal(run); }));
  FollowVerdicts();
  AddGauges();
  RETURN_IF_ERROR(Serve());
  tick_.RunAfter(kTick);
  left_blobs_.RunAfter(kLeftBlobs);
  scrubber_.Start();
  retention_.Start();
  renewal_.Start(kFirstRenewal);
  return absl::OkStatus();
}

absl::Status Assembly::LoadRevocations() {
  ASSIGN_OR_RETURN(const auto revocations, f_.store->Revocations());
  for (const RevocationRecord& revocation : revocations) revocations_.Add(revocation.subject);
  return absl::OkStatus();
}

void Assembly::Observe(const ChangeRecord& change) {
  switch (change.kind) {
    case ChangeKind::kRun:
    case ChangeKind::kRunCreated:
      lifecycle_->ReviewSoon(change.run);
      listener_waits_.Check();
      break;
    case ChangeKind::kRevoked:
      revocations_.Add(change.text);
      CancelRevoked();
      break;
    case ChangeKind::kResult:
      // A result that replaced a time-out may be the last one that the seal waits for.
      if (change.generation > 1) lifecycle_->ReviewSoon(change.run);
      break;
    case ChangeKind::kRunDeleted:
    case ChangeKind::kRedelivery:
    case ChangeKind::kOperator:  // recorded by the handler
      break;
  }
}

void Assembly::CancelRevoked() {
  host_.canceller().EndIf([this](const Caller& caller) { return revocations_.IsRevoked(caller); },
                          errors::CallerRevoked());
}

// Does what Observe would have done for changes that the feed dropped.
absl::Status Assembly::CatchUp() {
  RETURN_IF_ERROR(LoadRevocations());
  CancelRevoked();
  listener_waits_.Check();
  return lifecycle_->ReviewAll();
}

absl::Status Assembly::Serve() {
  ServiceHost::Options options;
  options.name = "aggregator";
  options.listen = config_.listen;
  options.health_port = config_.health_port;
  options.inspection_port = config_.inspection_port;
  options.addresses_file = config_.addresses_file;
  options.certificate_folder = f_.tls->published_folder();
  options.is_revoked = [this](const Caller& caller) { return revocations_.IsRevoked(caller); };
  options.check_caller = [this](const Caller& caller) {
    return f_.authorities->operators().Check(caller);
  };
  options.memory_bytes = kUploadServerMemoryBytes;
  options.join_listen = config_.join_listen;
  options.join_service = &join_service_;
  return host_.Serve(std::move(options),
                     {&run_service_, &result_service_, &archive_service_, &change_service_,
                      &listener_service_, &identity_service_, &enrollment_service_,
                      &relayed_join_service_, &audit_service_, &verification_service_});
}

void Assembly::FollowVerdicts() {
  if (config_.status_targets.empty()) return;
  const ChannelIdentityFolder identity{f_.tls->identity().fleet, f_.tls->published_folder()};
  status_.emplace(ParseTargets(config_.status_targets),
                  MakeChannelCredentials(identity, {ServiceRole::kStatus}), timers_,
                  threads_.background());
  follower_ = std::make_unique<VerdictFollower>([this] { return status_->Get(); }, verdicts_,
                                                clock_, timers_, threads_.background());
}

void Assembly::AddGauges() {
  metrics_.AddSampledGauge("muster_upload_streams", "Upload streams that are attached.",
                           [this] { return static_cast<double>(uploads_.quota().streams()); });
  metrics_.AddSampledGauge("muster_staged_bytes",
                           "Bytes of unfinished uploads, as charged to their senders.",
                           [this] { return static_cast<double>(uploads_.quota().staged()); });
  metrics_.AddSampledGauge("muster_requests_queued", "Requests that wait for a thread.",
                           [this] { return static_cast<double>(requests_.queued()); });
  metrics_.AddSampledGauge("muster_joins_queued", "Requests to join that wait for a thread.",
                           [this] { return static_cast<double>(joins_.queued()); });
  metrics_.AddSampledGauge("muster_disk_queued", "Chunks of uploads that wait for a thread.",
                           [this] { return static_cast<double>(disk_.queued()); });
  metrics_.AddSampledGauge("muster_verdicts_connected",
                           "1 while verdicts of the status service are received.",
                           [this] { return follower_ != nullptr && follower_->connected(); });
  metrics_.AddSampledCounter("muster_lost_pairs_total",
                             "Pairs timed out because of missing heartbeats.",
                             [this] { return static_cast<double>(verdicts_.lost()); });
  metrics_.AddSampledCounter(
      "muster_abandoned_runs_total",
      "Runs that failed because no node reported within the start grace.",
      [this] { return static_cast<double>(verdicts_.start_grace_expired()); });
  metrics_.AddSampledCounter("muster_store_commands_total", "Changes committed to the store.",
                             [this] { return static_cast<double>(f_.store->stats().commands); });
  metrics_.AddSampledCounter("muster_store_commits_total", "Transactions of the store.",
                             [this] { return static_cast<double>(f_.store->stats().batches); });
  metrics_.AddSampledCounter("muster_store_refused_total",
                             "Changes refused because too many waited for the store.",
                             [this] { return static_cast<double>(f_.store->stats().refused); });
  AddDiskGauges(metrics_, config_.state_folder);
  AddReserveGauge(metrics_, *f_.reserve, config_.disk_reserve);
}

void Assembly::Tick() {
  ++ticks_;
  listener_waits_.Check();
  changes_.RetryFailedRead();
  if (ticks_ % kSweepTicks == 0) {
    uploads_.Sweep();
    changes_.WakeAll();
    f_.reserve->Restore();
    host_.Tick(kStuckUploader);
  }
  tick_.RunAfter(kTick);
}

void Assembly::RemoveLeftBlobs() {
  if (const absl::Status status = runs_.RemoveLeftBlobs(); !status.ok()) {
    Log(LogLevel::kError, "cannot remove the files of deleted runs and try again",
        {{"error", status}});
  }
  left_blobs_.RunAfter(kLeftBlobs);
}

// The aggregator signs its own certificate.
absl::Status Assembly::RenewOwnCertificate() {
  const absl::Time now = clock_.Now();
  RETURN_IF_ERROR(f_.tls->Refresh(now));
  if (!f_.tls->NeedsRenewal(now)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto request, f_.tls->BeginRenewal());
  const Identity identity = f_.tls->identity();
  ASSIGN_OR_RETURN(const auto issued,
                   f_.authorities->SignForFleet(std::get<ServiceIdentity>(identity.name), request,
                                                f_.tls->certificate().Hosts(), kServiceValidity,
                                                ToUri(identity).value_or("")));
  return f_.tls->CompleteRenewal(absl::StrCat(issued.leaf_pem, issued.chain_pem), now);
}

void Assembly::Stop() {
  if (!host_.BeginStop()) return;
  listener_waits_.Stop();
  sealer_.Stop();
  host_.StopServing(config_.drain);
  if (follower_ != nullptr) follower_->Stop();
  tick_.Stop();
  left_blobs_.Stop();
  scrubber_.Stop();
  retention_.Stop();
  renewal_.Stop();
  lifecycle_->Stop();
  changes_.Stop();
  threads_.Stop(config_.drain);
  disk_.Drain(config_.drain).IgnoreError();
  joins_.Drain(config_.drain).IgnoreError();
  host_.StopInspection();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Aggregator>> Aggregator::Start(
    const AggregatorConfig& config, std::function<void(const absl::Status&)> fail) {
  ASSIGN_OR_RETURN(auto foundation, OpenFoundation(config, std::move(fail)));
  AggregatorConfig complete = config;
  complete.uploads.max_run_bytes = MaxRunBytes(config);
  auto assembly = std::make_unique<Assembly>(std::move(complete), std::move(foundation));
  RETURN_IF_ERROR(assembly->Begin());
  return assembly;
}

}  // namespace muster
