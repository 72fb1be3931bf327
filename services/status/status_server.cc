#include "services/status/status_server.h"

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/log.h"
#include "services/common/base/metrics.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/status_macros.h"
#include "services/common/identity/certificate_files.h"
#include "services/common/identity/recorded_operators.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/service_channel.h"
#include "services/common/rpc/stuck_readers.h"
#include "services/common/service/certificate_renewal.h"
#include "services/common/service/feed_follower.h"
#include "services/common/service/followed_revocations.h"
#include "services/common/service/operator_follower.h"
#include "services/common/service/service_host.h"
#include "services/common/service/service_threads.h"
#include "services/status/board/board.h"
#include "services/status/board/board_metrics.h"
#include "services/status/heartbeat_subsystem.h"
#include "services/status/heartbeats/sender.h"
#include "services/status/pair_reader.h"
#include "services/status/status_service.h"
#include "services/status/status_store.h"
#include "services/status/verdict_service.h"

namespace muster {
namespace {

constexpr size_t kMaxQueue = 16'384;
constexpr size_t kWatchThreads = 2;
constexpr absl::Duration kFirstRenewal = absl::Seconds(30);
constexpr absl::Duration kTick = absl::Seconds(1);
// After a crash at most this much progress is lost.
constexpr int kTicksBetweenProgress = 10;

class Assembly : public StatusServer {
 public:
  Assembly(StatusConfig config, std::unique_ptr<CertificateFiles> tls)
      : config_(std::move(config)),
        tls_(std::move(tls)),
        threads_(static_cast<size_t>(config_.request_threads), kMaxQueue),
        streams_({"watch", kWatchThreads, kMaxQueue}),
        host_(
            tls_->identity().fleet, [this] { return tls_->roots(); },
            [this] { return tls_->certificate().NotAfter(); }, clock_, timers_, metrics_),
        hub_(timers_, clock_),
        board_(BoardOptions()),
        board_metrics_(metrics_),
        service_(
            host_.Runtime(requests_), host_.Runtime(streams_), board_, hub_,
            [this](const std::string& node) { return store_->Events(node); }, clock_),
        verdict_service_(host_.Runtime(streams_), verdicts_, clock_),
        aggregator_(config_.aggregator_targets,
                    MakeChannelCredentials(
                        ChannelIdentityFolder{tls_->identity().fleet, tls_->published_folder()},
                        {ServiceRole::kAggregator}),
                    timers_, threads_.background()),
        tick_(timers_, threads_.background(), [this] { Tick(); }),
        renewal_([this] { return RenewIfDue(*tls_, aggregator_.Get(), clock_.Now()); }, timers_,
                 threads_.background()) {}

  ~Assembly() override { Stop(); }

  absl::Status Begin();
  void Stop() override;
  int port() const override { return host_.port(); }

 private:
  Board::Options BoardOptions();
  std::vector<const RelayState*> LostRelays() const;
  void AddGauges();
  absl::Status Remember();
  void RestorePairs(const std::string& run);
  void Apply(const v1::FollowChangesResponse& event);
  absl::Status Serve();
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
  ServiceHost host_;
  FollowedRevocations revocations_{host_.canceller()};
  RecordedOperators operators_{tls_->identity().fleet, clock_};
  OperatorFollower followed_operators_{operators_};  // used by Apply
  std::unique_ptr<StatusStore> store_;
  WatchHub hub_;
  VerdictLog verdicts_;
  Board board_;
  BoardMetrics board_metrics_;
  StatusService service_;
  VerdictService verdict_service_;
  std::unique_ptr<HeartbeatSubsystem> heartbeats_;
  ServiceChannel aggregator_;
  PairReader pairs_{[this] { return aggregator_.Get(); }, timers_, threads_.background()};
  std::unique_ptr<FeedFollower> follower_;
  int ticks_ = 0;  // used by Tick
  // Last: they use the members above.
  ScheduledTask tick_;
  CertificateRenewal renewal_;
};

void Assembly::AddGauges() {
  AddFeedGauges(metrics_, follower_);
  metrics_.AddSampledGauge("muster_status_watchers", "Streams that follow a run.",
                           [this] { return static_cast<double>(hub_.watchers()); });
  metrics_.AddSampledGauge("muster_status_verdicts",
                           "Verdicts from missing heartbeats that apply now.",
                           [this] { return static_cast<double>(verdicts_.standing()); });
  metrics_.AddSampledGauge("muster_status_text_bytes",
                           "Memory for long messages and names that senders report.",
                           [this] { return static_cast<double>(board_.texts().used()); });
  metrics_.AddSampledCounter(
      "muster_status_texts_shortened_total",
      "Reports of which texts were shortened, because there was no memory for them.",
      [this] { return static_cast<double>(board_.texts().shortened()); });
}

absl::Status Assembly::Begin() {
  AddGauges();
  RETURN_IF_ERROR(Remember());
  follower_ = std::make_unique<FeedFollower>(
      [this] { return aggregator_.Get(); },
      [this](const v1::FollowChangesResponse& event) { Apply(event); }, timers_,
      threads_.background());
  RETURN_IF_ERROR(Serve());
  heartbeats_->Begin(host_.port());
  renewal_.Start(kFirstRenewal);
  tick_.RunAfter(kTick);
  return absl::OkStatus();
}

// The heartbeats are made after the board, which is not used before.
Board::Options Assembly::BoardOptions() {
  Board::Options options;
  options.clock = &clock_;
  options.hub = &hub_;
  options.verdicts = &verdicts_;
  options.doubt = [this] { return heartbeats_->registry().doubt(); };
  options.lost_relays = [this] { return LostRelays(); };
  options.event = [this](const std::string& node, const v1::NodeEvent& event) {
    store_->AddEvent(node, event);
  };
  options.gone = [this](const std::string& run) { store_->ForgetRun(run); };
  options.known = [this](const std::set<std::string>& runs) { store_->ForgetRunsExcept(runs); };
  options.done = [this](const std::shared_ptr<const Sender>& sender) {
    heartbeats_->registry().SetFinished(sender);
  };
  options.read_pairs = [this](const std::string& run, EndedRuns::Add add, EndedRuns::Done done) {
    pairs_.Read(run, std::move(add), std::move(done));
  };
  options.restore = [this](const std::string& run) { RestorePairs(run); };
  return options;
}

// No node waits for a revoked relay: it does not return.
std::vector<const RelayState*> Assembly::LostRelays() const {
  const Registry& registry = heartbeats_->registry();
  std::vector<const RelayState*> lost = registry.lost_relays();
  std::erase_if(lost, [&](const RelayState* relay) {
    return revocations_.list().Contains(registry.CertificateOf(*relay));
  });
  return lost;
}

absl::Status Assembly::Remember() {
  ASSIGN_OR_RETURN(store_, StatusStore::Open(config_.state_folder, clock_, metrics_));
  ASSIGN_OR_RETURN(const auto senders, store_->LoadSenders());
  heartbeats_ = std::make_unique<HeartbeatSubsystem>(
      config_.heartbeats, host_.Runtime(requests_), threads_, clock_, board_, *store_,
      [this](const Caller& caller) { return revocations_.IsRevoked(caller); }, metrics_);
  heartbeats_->registry().Restore(senders);
  return absl::OkStatus();
}

void Assembly::RestorePairs(const std::string& run) {
  auto stored = store_->LoadPairs(run);
  if (!stored.ok()) {
    Log(LogLevel::kError, "cannot restore the progress of a run",
        {{"run", run}, {"error", stored.status()}});
    return;
  }
  for (const ContactRecord& contact : stored->contacts) {
    board_.RestoreContact(contact.key, contact.uri, contact.first);
  }
  for (auto& [key, progress] : stored->progress) board_.RestoreProgress(key, std::move(progress));
}

void Assembly::Apply(const v1::FollowChangesResponse& event) {
  board_.Apply(event);
  revocations_.HandleChange(event);
  followed_operators_.HandleChange(event);
}

absl::Status Assembly::Serve() {
  ServiceHost::Options options;
  options.name = "status";
  options.listen = config_.listen;
  options.health_port = config_.health_port;
  options.inspection_port = config_.inspection_port;
  options.addresses_file = config_.addresses_file;
  options.certificate_folder = tls_->published_folder();
  options.is_revoked = [this](const Caller& caller) { return revocations_.IsRevoked(caller); };
  options.check_caller = [this](const Caller& caller) { return operators_.Check(caller); };
  options.ready = [this] { return board_.Ready(); };
  options.max_message_bytes = kMaxSmallMessageBytes;
  return host_.Serve(std::move(options), {&service_, &verdict_service_, &heartbeats_->service()});
}

void Assembly::StoreProgress() {
  for (auto& [key, progress] : board_.DrainNewProgress()) {
    store_->PutProgress(key, std::move(progress));
  }
}

void Assembly::Tick() {
  board_.Tick();
  board_metrics_.Update(board_.MakeTally());
  if (++ticks_ % kTicksBetweenProgress == 0) {
    StoreProgress();
    host_.Tick(kStuckReader);
  }
  tick_.RunAfter(kTick);
}

void Assembly::Stop() {
  if (!host_.BeginStop()) return;
  // Streams without an end are not waited for, and calls do not wait for the aggregator.
  verdicts_.Close();
  pairs_.Stop();
  if (heartbeats_ != nullptr) heartbeats_->Stop();
  host_.StopServing(config_.drain);
  if (follower_ != nullptr) follower_->Stop();
  tick_.Stop();
  renewal_.Stop();
  threads_.Stop(config_.drain);
  streams_.Drain(config_.drain).IgnoreError();
  if (store_ != nullptr) StoreProgress();
  host_.StopInspection();
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
