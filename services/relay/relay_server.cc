#include "services/relay/relay_server.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/executor.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/log.h"
#include "services/common/base/metrics.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/status_macros.h"
#include "services/common/identity/certificate.h"
#include "services/common/rpc/channel_target.h"
#include "services/common/rpc/stuck_readers.h"
#include "services/common/service/certificate_renewal.h"
#include "services/common/service/service_host.h"
#include "services/common/service/service_threads.h"
#include "services/relay/child_role.h"
#include "services/relay/files/shares.h"
#include "services/relay/job_service.h"
#include "services/relay/jobs/command_dispatcher.h"
#include "services/relay/jobs/record_filter.h"
#include "services/relay/known_nodes.h"
#include "services/relay/proxy/forwarding.h"
#include "services/relay/relay_identity.h"
#include "services/relay/relay_role.h"
#include "services/relay/root_role.h"
#include "services/relay/topology/attach_service.h"
#include "services/relay/trust.h"

namespace muster {
namespace {

constexpr size_t kMaxQueue = 65'536;
constexpr size_t kWatchThreads = 2;
// Changes of the topology are sent to the parent this often: many go together.
constexpr absl::Duration kTick = absl::Milliseconds(200);
constexpr int kTicksASecond = 5;

// The peers of the role, once it has started.
class RolePeers final : public SharePeers {
 public:
  explicit RolePeers(const std::unique_ptr<RelayRole>& role) : role_(role) {}

  std::shared_ptr<grpc::Channel> Parent() override {
    return role_ == nullptr ? nullptr : role_->parent();
  }
  std::shared_ptr<grpc::Channel> Aggregator() override {
    return role_ == nullptr ? nullptr : role_->aggregator();
  }

 private:
  const std::unique_ptr<RelayRole>& role_;
};

// The roots of the relay's own certificates, and the revocations that it received.
class RelayTrust final : public ShareTrust {
 public:
  RelayTrust(RelayIdentity& self, const Trust& trust) : self_(self), trust_(trust) {}

  std::vector<Certificate> Roots() const override { return self_.roots(); }
  bool IsRevoked(const Caller& signer) const override { return trust_.IsRevoked(signer); }

 private:
  RelayIdentity& self_;
  const Trust& trust_;
};

class Assembly : public RelayServer {
 public:
  Assembly(RelayConfig config, std::unique_ptr<ServiceThreads> threads,
           std::unique_ptr<RelayIdentity> self, std::function<void(const absl::Status&)> fail)
      : config_(std::move(config)),
        fail_(std::move(fail)),
        threads_(std::move(threads)),
        self_(std::move(self)),
        parents_(config_.parents.empty() ? ParseTargets(self_->relay_targets()) : config_.parents),
        streams_({"watch", kWatchThreads, kMaxQueue}),
        host_(
            self_->fleet(), [this] { return self_->roots(); },
            [this] { return self_->trio().chain.front().NotAfter(); }, clock_, timers_, metrics_),
        topology_({self_->name(), is_root(), static_cast<size_t>(config_.max_nodes)}, clock_),
        known_(PosixFileOps(), config_.state_folder + "/known-nodes", clock_),
        // The root relay bounds its jobs (JobBoard).
        dispatcher_(
            topology_, clock_,
            is_root() ? std::numeric_limits<size_t>::max() : CommandDispatcher::kMaxBytesOfBranch),
        trust_(
            self_->fleet(), [this] { return self_->roots(); }, topology_, host_.canceller(),
            clock_),
        tick_(timers_, threads_->background(), [this] { Tick(); }),
        renewal_([this] { return RenewIfDue(*self_->files(), role_->aggregator(), clock_.Now()); },
                 timers_, threads_->background()) {}

  ~Assembly() override { Stop(); }

  absl::Status Begin();
  void Stop() override;
  int port() const override { return host_.port(); }
  int join_port() const override { return host_.join_port(); }

 private:
  bool is_root() const { return !self_->joined() && parents_.empty(); }
  absl::Status StartRole();
  absl::Status OpenShares();
  absl::Status Forward();
  absl::Status Serve();
  AttachParts MakeAttachParts();
  JobService::Parts MakeJobParts();
  RelaySelf Self() const;
  void AddGauges();
  void OnReachable(const std::vector<std::string>& names);
  void Tick();
  void EverySecond();

  const RelayConfig config_;
  const std::function<void(const absl::Status&)> fail_;
  const Clock& clock_ = SystemClock();
  const std::unique_ptr<ServiceThreads> threads_;
  TimerService& timers_ = threads_->timers();
  Executor& requests_ = threads_->requests();
  const std::unique_ptr<RelayIdentity> self_;
  const std::vector<HostPort> parents_;
  Metrics metrics_;
  Executor streams_;
  ServiceHost host_;
  Topology topology_;
  KnownNodes known_;
  CommandDispatcher dispatcher_;
  RecordFilter record_filter_{topology_};
  Trust trust_;
  // Only the root relay gets them from the aggregator.
  RecordedOperators operators_{self_->fleet(), clock_};
  StatementBudget statements_{clock_, metrics_};
  RelayTrust share_trust_{*self_, trust_};
  std::unique_ptr<RelayRole> role_;
  RolePeers share_peers_{role_};
  std::unique_ptr<Shares> shares_;
  std::unique_ptr<AttachService> attach_service_;
  std::unique_ptr<JobService> job_service_;
  std::unique_ptr<Forwarding> forwarding_;
  bool served_ = false;  // set by Begin
  int64_t ticks_ = 0;    // used by Tick
  // Last: they use the members above.
  ScheduledTask tick_;
  CertificateRenewal renewal_;
};

RelaySelf Assembly::Self() const {
  return {self_->uri(), self_->trio().key.public_key().Sha256().value_or("")};
}

void Assembly::AddGauges() {
  metrics_.AddSampledGauge("muster_relay_children", "Nodes and relays attached to this relay.",
                           [this] { return static_cast<double>(topology_.children()); });
  metrics_.AddSampledGauge("muster_relay_attached", "Attached descendants of this relay.",
                           [this] { return static_cast<double>(topology_.attached()); });
  metrics_.AddSampledGauge("muster_relay_upstream_connected",
                           "1 while the upstream connection works.",
                           [this] { return role_->upstream().connected() ? 1.0 : 0.0; });
  metrics_.AddSampledGauge("muster_relay_open_commands",
                           "Jobs with a command that waits for a node or for its result.",
                           [this] { return static_cast<double>(dispatcher_.open()); });
  metrics_.AddSampledCounter("muster_relay_foreign_records_total",
                             "Job records that a child relay sent for a node that is not its "
                             "descendant. They are dropped.",
                             [this] { return static_cast<double>(record_filter_.removed()); });
  metrics_.AddSampledGauge("muster_relay_jobs_running", "Running jobs (root relay).", [this] {
    const JobBoard* board = role_->job_board();
    return board == nullptr ? 0.0 : static_cast<double>(board->running());
  });
  metrics_.AddSampledGauge("muster_relay_redelivery_requests",
                           "Damaged results that are requested from their nodes (root relay).",
                           [this] { return static_cast<double>(role_->redelivery_requests()); });
}

absl::Status Assembly::Begin() {
  topology_.Listen(
      [this](const std::vector<std::string>& names) { OnReachable(names); },
      [this](const std::string& relay, bool attached) { role_->OnRelayChanged(relay, attached); });
  AddGauges();
  RETURN_IF_ERROR(OpenShares());
  RETURN_IF_ERROR(StartRole());
  shares_->Start();
  RETURN_IF_ERROR(Forward());
  RETURN_IF_ERROR(Serve());
  served_ = true;
  tick_.RunAfter(absl::ZeroDuration());
  if (self_->files() != nullptr && role_->aggregator() != nullptr) {
    renewal_.Start(absl::ZeroDuration());
  }
  return absl::OkStatus();
}

absl::Status Assembly::OpenShares() {
  const SharesConfig& config = config_.shares;
  SharesOptions options;
  options.store = {config.folder.empty() ? config_.state_folder + "/shares" : config.folder,
                   topology_.name(),
                   static_cast<int64_t>(config.quota),
                   config.max_files,
                   static_cast<int64_t>(config.max_size),
                   fail_};
  // After a start the nodes attach again within a while. A node that does not may be attached
  // elsewhere.
  options.times.settling = 3 * config_.interval;
  options.times.elsewhere = 4 * config_.interval;
  options.fleet = self_->fleet();
  options.is_root = is_root();
  ASSIGN_OR_RETURN(shares_,
                   Shares::Open(std::move(options),
                                {topology_, share_peers_, share_trust_, clock_, timers_, metrics_},
                                host_.Runtime(requests_)));
  return absl::OkStatus();
}

absl::Status Assembly::StartRole() {
  RETURN_IF_ERROR(known_.Load(self_->fleet(), clock_.Now(), topology_));
  const RoleParts parts = {config_,    *self_,         topology_, dispatcher_, trust_,
                           operators_, host_.chains(), clock_,    *threads_};
  if (is_root()) {
    ASSIGN_OR_RETURN(role_, RootRole::Start(parts));
  } else {
    ASSIGN_OR_RETURN(role_,
                     ChildRole::Start(parts, parents_, [this](const v1::AttachResponse& message) {
                       shares_->HandleMessage(message);
                     }));
  }
  return absl::OkStatus();
}

AttachParts Assembly::MakeAttachParts() {
  return {topology_,        role_->records(),          record_filter_,
          trust_,           role_->upstream(),         clock_,
          config_.interval, [this] { return Self(); }, statements_};
}

JobService::Parts Assembly::MakeJobParts() {
  return {*role_, topology_, trust_, PosixFileOps(), clock_};
}

absl::Status Assembly::Forward() {
  const std::string roots = ChainToPem(self_->roots());
  ASSIGN_OR_RETURN(
      forwarding_,
      Forwarding::Start(config_.forwarding,
                        {role_->upstream(), host_.Runtime(requests_), clock_, metrics_,
                         topology_.name(), self_->fleet(), roots, config_.state_folder + "/spool",
                         timers_, threads_->background(), fail_}));
  return absl::OkStatus();
}

absl::Status Assembly::Serve() {
  attach_service_ = std::make_unique<AttachService>(host_.Runtime(requests_), MakeAttachParts());
  job_service_ = std::make_unique<JobService>(host_.Runtime(requests_), host_.Runtime(streams_),
                                              MakeJobParts());
  ServiceHost::Options options;
  options.name = "relay";
  options.listen = config_.listen;
  options.health_port = config_.health_port;
  options.inspection_port = config_.inspection_port;
  options.addresses_file = config_.addresses_file;
  options.certificate_folder = self_->published_folder();
  options.is_revoked = [this](const Caller& caller) { return trust_.IsRevoked(caller); };
  options.check_caller = [this](const Caller& caller) { return operators_.Check(caller); };
  options.ready = [this] { return role_->Ready(); };
  if (!config_.join_listen.host.empty()) {
    options.join_listen = config_.join_listen;
    options.join_service = forwarding_->join_service();
  }
  std::vector<grpc::Service*> services = forwarding_->services();
  services.insert(services.end(), {attach_service_.get(), job_service_.get(), shares_->service()});
  return host_.Serve(std::move(options), services);
}

void Assembly::OnReachable(const std::vector<std::string>& names) {
  dispatcher_.OnReachable(names);
  shares_->Wake();
  role_->OnReachable(names);
}

void Assembly::Tick() {
  // At least twice an interval, so that no heartbeat is late.
  const int64_t between_ticks = std::clamp<int64_t>(config_.interval / 2 / kTick, 1, kTicksASecond);
  role_->Tick();
  if (ticks_ % between_ticks == 0) {
    for (const auto& child : topology_.Children()) child->Tick();
  }
  if (ticks_ % kTicksASecond == 0) EverySecond();
  ++ticks_;
  tick_.RunAfter(kTick);
}

void Assembly::EverySecond() {
  topology_.Tick();
  dispatcher_.Tick();
  host_.Tick(kStuckReader);
  if (absl::Status s = known_.Tick(topology_); !s.ok()) {
    LogLimited(LogLevel::kError, "cannot store the known nodes", "", {{"error", s}});
  }
}

void Assembly::Stop() {
  if (!host_.BeginStop()) return;
  tick_.Stop();
  renewal_.Stop();
  // The children would keep their streams open.
  if (attach_service_ != nullptr) attach_service_->EndStreams();
  if (forwarding_ != nullptr) forwarding_->EndStreams();
  host_.StopServing(config_.drain);
  host_.StopInspection();  // its gauges read what is destroyed next
  forwarding_.reset();
  // Tasks of sessions and of calls use the role: all of them end first.
  requests_.Drain(absl::InfiniteDuration()).IgnoreError();
  streams_.Drain(absl::InfiniteDuration()).IgnoreError();
  if (shares_ != nullptr) shares_->StopRouter();
  if (role_ != nullptr) role_->Disconnect();
  shares_.reset();
  role_.reset();
  self_->Stop();
  threads_->Stop(config_.drain);
  if (served_) known_.Store(topology_).IgnoreError();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunningService>> RelayServer::Start(
    const RelayConfig& config, std::function<void(const absl::Status&)> fail) {
  auto threads =
      std::make_unique<ServiceThreads>(static_cast<size_t>(config.request_threads), kMaxQueue);
  ASSIGN_OR_RETURN(auto self, RelayIdentity::Open(config.state_folder, threads->timers(),
                                                  threads->background()));
  auto assembly =
      std::make_unique<Assembly>(config, std::move(threads), std::move(self), std::move(fail));
  RETURN_IF_ERROR(assembly->Begin());
  return assembly;
}

}  // namespace muster
