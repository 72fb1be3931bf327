#include "services/status/status_server.h"

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/inspection_server.h"
#include "services/common/base/log.h"
#include "services/common/base/metrics.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/status_macros.h"
#include "services/common/identity/certificate_files.h"
#include "services/common/identity/revocation.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/open_streams.h"
#include "services/common/rpc/server.h"
#include "services/common/service/certificate_renewal.h"
#include "services/common/service/feed_follower.h"
#include "services/common/service/service_threads.h"
#include "services/status/board/board.h"
#include "services/status/board/figures.h"
#include "services/status/heartbeat_subsystem.h"
#include "services/status/status_service.h"
#include "services/status/status_store.h"
#include "services/status/verdict_service.h"

namespace muster {
namespace {

constexpr size_t kMaxQueue = 16'384;
constexpr size_t kWatchThreads = 2;
constexpr absl::Duration kRenewalCheck = absl::Seconds(30);
constexpr absl::Duration kTick = absl::Seconds(1);
// After a crash at most this much progress is lost.
constexpr int kTicksBetweenProgress = 10;
// A client that receives no message for so long is cancelled.
constexpr absl::Duration kStuckReader = absl::Seconds(60);

class Assembly : public StatusServer {
 public:
  Assembly(StatusConfig config, std::unique_ptr<CertificateFiles> tls)
      : config_(std::move(config)),
        tls_(std::move(tls)),
        threads_(static_cast<size_t>(config_.request_threads), kMaxQueue),
        streams_({"watch", kWatchThreads, kMaxQueue}),
        rpc_metrics_(metrics_),
        callers_(tls_->identity().fleet, clock_, [this] { return tls_->roots(); }),
        hub_(timers_, clock_),
        board_(BoardOptions()),
        figures_(metrics_),
        service_(
            Runtime(requests_), Runtime(streams_), board_, hub_,
            [this](const std::string& node) { return store_->Events(node); }, clock_),
        verdict_service_(Runtime(streams_), verdicts_, clock_),
        aggregator_(
            MakeChannel(config_.aggregator_targets,
                        MakeChannelCredentials(
                            ChannelIdentityFolder{tls_->identity().fleet, tls_->published_folder()},
                            {ServiceRole::kAggregator}))),
        tick_(timers_, threads_.background(), [this] { Tick(); }),
        renewal_(timers_, threads_.background(), [this] { RenewCertificate(); }) {}

  ~Assembly() override { Stop(); }

  absl::Status Begin();
  void Stop() override;
  int port() const override { return server_->port(); }

 private:
  RpcRuntime Runtime(Executor& executor) {
    return {&callers_, &executor,      &live_,          &rpc_metrics_,
            &timers_,  &open_streams_, &request_memory_};
  }
  Board::Options BoardOptions();
  void AddGauges();
  absl::Status Remember();
  void Apply(const v1::FollowChangesResponse& event);
  absl::Status Serve();
  void RenewCertificate();
  void Tick();
  void StoreProgress();

  const StatusConfig config_;
  const Clock& clock_ = SystemClock();
  const std::unique_ptr<CertificateFiles> tls_;
  Metrics metrics_;
  ServiceThreads threads_;
  TimerService& timers_ = threads_.timers();
  Executor& requests_ = threads_.requests();
  Executor streams_;
  OpenStreams open_streams_{metrics_};
  RequestMemory request_memory_;
  RpcMetrics rpc_metrics_;
  CallerResolver callers_;
  LiveCalls live_;
  RevocationList revocations_;
  std::set<std::string> snapshot_revoked_;  // used by Apply
  bool in_snapshot_ = false;                // used by Apply
  std::unique_ptr<StatusStore> store_;
  WatchHub hub_;
  VerdictLog verdicts_;
  Board board_;
  BoardFigures figures_;
  StatusService service_;
  VerdictService verdict_service_;
  std::unique_ptr<HeartbeatSubsystem> beats_;
  const std::shared_ptr<grpc::Channel> aggregator_;
  std::unique_ptr<FeedFollower> follower_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<InspectionServer> inspection_;
  std::atomic<bool> stopping_ = false;
  int ticks_ = 0;  // used by Tick
  // Last: they use the members above.
  ScheduledTask tick_;
  ScheduledTask renewal_;
};

void Assembly::AddGauges() {
  metrics_.AddProcessMetrics();
  metrics_.AddSampledGauge("muster_feed_connected",
                           "1 while events of the aggregator's feed arrive.",
                           [this] { return follower_ != nullptr && follower_->connected(); });
  metrics_.AddSampledGauge(
      "muster_feed_silence_seconds",
      "The time since the last message of the aggregator's change feed.",
      [this] { return follower_ == nullptr ? 0 : absl::ToDoubleSeconds(follower_->silence()); });
  metrics_.AddSampledGauge("muster_status_watchers", "Streams that follow a run.",
                           [this] { return static_cast<double>(hub_.watchers()); });
  metrics_.AddSampledGauge("muster_status_verdicts", "Conclusions from silence that stand.",
                           [this] { return static_cast<double>(verdicts_.standing()); });
  metrics_.AddSampledGauge(
      "muster_certificate_expires_timestamp_seconds",
      "When the service's certificate ends, in Unix time.",
      [this] { return static_cast<double>(absl::ToUnixSeconds(tls_->certificate().NotAfter())); });
}

absl::Status Assembly::Begin() {
  AddGauges();
  RETURN_IF_ERROR(Remember());
  follower_ = std::make_unique<FeedFollower>(
      aggregator_, [this](const v1::FollowChangesResponse& event) { Apply(event); }, timers_,
      threads_.background());
  RETURN_IF_ERROR(Serve());
  beats_->Begin(server_->port());
  renewal_.RunAfter(kRenewalCheck);
  tick_.RunAfter(kTick);
  return absl::OkStatus();
}

// The heartbeats are made after the board, which is not used before.
Board::Options Assembly::BoardOptions() {
  Board::Options options;
  options.clock = &clock_;
  options.hub = &hub_;
  options.verdicts = &verdicts_;
  options.doubt = [this] { return beats_->registry().doubt(); };
  options.event = [this](const std::string& node, const v1::NodeEvent& event) {
    store_->AddEvent(node, event);
  };
  options.gone = [this](const std::string& run) { store_->ForgetRun(run); };
  options.done = [this](const std::shared_ptr<const Sender>& sender) {
    beats_->registry().SetFinished(sender);
  };
  return options;
}

absl::Status Assembly::Remember() {
  ASSIGN_OR_RETURN(store_, StatusStore::Open(config_.state_folder, clock_, metrics_));
  ASSIGN_OR_RETURN(auto known, store_->Load());
  beats_ = std::make_unique<HeartbeatSubsystem>(
      config_.heartbeats, Runtime(requests_), threads_, clock_, board_, *store_,
      [this](const Caller& caller) { return revocations_.IsRevoked(caller); }, metrics_);
  beats_->registry().Restore(known.senders);
  for (const ContactRecord& contact : known.contacts) {
    board_.RestoreContact(contact.key, contact.uri, contact.first);
  }
  for (auto& [key, progress] : known.progress) board_.RestoreProgress(key, std::move(progress));
  return absl::OkStatus();
}

void Assembly::Apply(const v1::FollowChangesResponse& event) {
  board_.Apply(event);
  switch (event.event_case()) {
    case v1::FollowChangesResponse::kSnapshotBegin:
      in_snapshot_ = true;
      snapshot_revoked_.clear();
      return;
    case v1::FollowChangesResponse::kSnapshotEnd:
      in_snapshot_ = false;
      revocations_.Replace(std::exchange(snapshot_revoked_, {}));
      break;
    case v1::FollowChangesResponse::kRevoked:
      if (in_snapshot_) {
        snapshot_revoked_.insert(event.revoked().subject());
        return;
      }
      revocations_.Add(event.revoked().subject());
      break;
    default:
      return;
  }
  live_.CancelIf([this](const Caller& caller) { return revocations_.IsRevoked(caller); });
}

absl::Status Assembly::Serve() {
  RpcServerOptions options;
  options.max_message_bytes = kMaxSmallMessageBytes;
  options.listen = config_.listen.ToString();
  options.health_listen = absl::StrCat("127.0.0.1:", config_.health_port);
  options.certificate_folder = tls_->published_folder();
  options.is_revoked = [this](const Caller& caller) { return revocations_.IsRevoked(caller); };
  ASSIGN_OR_RETURN(server_, RpcServer::Start(std::move(options), callers_, live_, rpc_metrics_,
                                             {&service_, &verdict_service_, &beats_->service()}));
  InspectionServer::Options inspection;
  inspection.port = static_cast<uint16_t>(config_.inspection_port);
  inspection.ready = [this] {
    return stopping_ ? absl::UnavailableError("stopping") : board_.Ready();
  };
  ASSIGN_OR_RETURN(inspection_, InspectionServer::Start(metrics_, std::move(inspection)));
  return WriteAddresses(
      config_.addresses_file,
      {{"status", HostPort{config_.listen.host, static_cast<uint16_t>(server_->port())}.ToString()},
       {"health", absl::StrCat("127.0.0.1:", server_->health_port())},
       {"inspection", absl::StrCat("127.0.0.1:", inspection_->port())}});
}

void Assembly::RenewCertificate() {
  if (absl::Status s = RenewIfDue(*tls_, aggregator_, clock_.Now()); !s.ok()) {
    Log(LogLevel::kError, "cannot renew the certificate", {{"error", s}});
  }
  renewal_.RunAfter(kRenewalCheck);
}

void Assembly::StoreProgress() {
  for (auto& [key, progress] : board_.DrainNewProgress()) {
    store_->PutProgress(key, std::move(progress));
  }
}

void Assembly::Tick() {
  board_.Tick();
  figures_.Show(board_.MakeTally());
  if (++ticks_ % kTicksBetweenProgress == 0) {
    StoreProgress();
    live_.CancelStuck(clock_.MonotonicNow(), kStuckReader);
  }
  tick_.RunAfter(kTick);
}

void Assembly::Stop() {
  if (stopping_.exchange(true)) return;
  // Streams without an end are not waited for.
  verdicts_.Close();
  if (beats_ != nullptr) beats_->Stop();
  if (server_ != nullptr) server_->Stop(clock_.Now() + config_.drain);
  follower_.reset();
  tick_.Stop();
  renewal_.Stop();
  threads_.Stop(config_.drain);
  streams_.Drain(config_.drain).IgnoreError();
  if (store_ != nullptr) StoreProgress();
  inspection_.reset();
}

}  // namespace

absl::StatusOr<std::unique_ptr<StatusServer>> StatusServer::Start(const StatusConfig& config) {
  ASSIGN_OR_RETURN(auto tls, CertificateFiles::Open(config.state_folder + "/tls",
                                                    config.state_folder + "/tls-published",
                                                    ServiceRole::kStatus, SystemClock().Now()));
  auto assembly = std::make_unique<Assembly>(config, std::move(tls));
  RETURN_IF_ERROR(assembly->Begin());
  return assembly;
}

}  // namespace muster
