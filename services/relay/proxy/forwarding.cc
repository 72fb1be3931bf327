#include "services/relay/proxy/forwarding.h"

#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/rpc/limits.h"
#include "services/relay/proxy/content_forward.h"
#include "services/relay/proxy/heartbeats/heartbeat_forward.h"
#include "services/relay/proxy/heartbeats/upstream_heartbeats.h"
#include "services/relay/proxy/join_forward.h"
#include "services/relay/proxy/result_forward.h"
#include "services/relay/proxy/run_forward.h"
#include "services/relay/proxy/secret_forward.h"
#include "services/relay/proxy/spool_drain.h"
#include "services/relay/proxy/status_forward.h"
#include "services/relay/proxy/workspace_forward.h"
#include "services/relay/stream_stopper.h"

namespace muster {
namespace {

// A relay forwards the calls of thousands of nodes over one connection of 1,024 streams. Uploads
// leave half of them to short calls, and the calls of one node are limited. Its messages have at
// most 64 KiB each, but for one that is as large as gRPC permits.
constexpr Admission::Limits kCalls = {.calls = 2000,
                                      .calls_of_one = 64,
                                      .bytes = int64_t{64} << 20,
                                      .bytes_of_one = kMaxMessageBytes};
constexpr Admission::Limits kUploads = {.calls = 500, .calls_of_one = 8};

// The memory that all uploads together may use for reading ahead.
constexpr int64_t kAhead = int64_t{64} << 20;

class Assembly : public Forwarding {
 public:
  explicit Assembly(const Parts& parts)
      : parts_(parts),
        disk_({"spool", 2, 4096}),
        deliveries_({"spool-drain", SpoolDrain::kLanes, SpoolDrain::kLanes}),
        calls_(kCalls),
        uploads_(kUploads),
        content_calls_(kContentCalls),
        secret_calls_(kSecretCalls),
        workspace_calls_(kWorkspaceCalls),
        ahead_(kAhead),
        forward_{parts.upstream, parts.runtime, calls_},
        runs_(forward_),
        status_(forward_),
        contents_({parts.upstream, parts.runtime, content_calls_}),
        secrets_({parts.upstream, parts.runtime, secret_calls_}),
        workspaces_({parts.upstream, parts.runtime, workspace_calls_}),
        join_(parts.upstream, parts.runtime, parts.clock, parts.metrics),
        hub_(
            parts.relay,
            [&upstream = parts.upstream](const Caller& caller) {
              return upstream.StatementFor(caller);
            },
            parts.clock, parts.metrics),
        heartbeats_(forward_, hub_, ahead_, parts.clock, stopper_) {}

  ~Assembly() override {
    upstream_heartbeats_.reset();
    // The upstream side of a stream may end after its downstream side.
    calls_.AwaitNone();
    uploads_.AwaitNone();
    content_calls_.AwaitNone();
    secret_calls_.AwaitNone();
    workspace_calls_.AwaitNone();
    // The tasks use the spool and its drain.
    disk_.Drain(absl::InfiniteDuration()).IgnoreError();
    drain_.reset();
  }

  absl::Status Begin(const ForwardingConfig& config) {
    upstream_heartbeats_ = std::make_unique<UpstreamHeartbeats>(hub_, parts_.upstream, parts_.clock,
                                                                parts_.timers, parts_.background);
    if (config.spool) {
      SpoolOptions options;
      options.folder = parts_.spool_folder;
      options.quota_bytes = static_cast<int64_t>(config.spool_bytes);
      options.max_entries = config.spool_entries;
      options.ttl = config.spool_ttl;
      options.relay = parts_.relay;
      options.fleet = parts_.fleet;
      options.fleet_ca_pem = parts_.fleet_ca_pem;
      options.on_fatal = parts_.fail;
      ASSIGN_OR_RETURN(spool_, Spool::Open(options, disk_, parts_.clock, parts_.metrics));
      sender_ = std::make_unique<UpstreamResultSender>(*spool_, parts_.upstream);
      drain_ = std::make_unique<SpoolDrain>(
          SpoolDrain::Environment{*spool_, parts_.upstream, *sender_, parts_.clock, parts_.timers,
                                  deliveries_, parts_.background});
      drain_->Start();
    }
    results_ = std::make_unique<ResultForward>(forward_, uploads_, ahead_, spool_.get());
    parts_.metrics.AddSampledGauge("muster_relay_uploads", "Uploads that are forwarded now.",
                                   [this] { return static_cast<double>(uploads_.calls()); });
    parts_.metrics.AddSampledCounter(
        "muster_relay_overloaded_total",
        "Calls that were rejected because too many calls were in progress upstream.", [this] {
          return static_cast<double>(calls_.refused() + uploads_.refused() +
                                     content_calls_.refused() + secret_calls_.refused() +
                                     workspace_calls_.refused());
        });
    return absl::OkStatus();
  }

  std::vector<grpc::Service*> services() override {
    return {results_.get(), &runs_,       &status_,     &contents_,
            &secrets_,      &workspaces_, &heartbeats_, &join_};
  }
  grpc::Service* join_service() override { return &join_; }
  void EndStreams() override { stopper_.EndAll(); }

 private:
  const Parts parts_;
  Executor disk_;
  Executor deliveries_;
  std::unique_ptr<Spool> spool_;
  Admission calls_;
  Admission uploads_;
  Admission content_calls_;
  Admission secret_calls_;
  Admission workspace_calls_;
  ReadAheadBudget ahead_;
  const ForwardParts forward_;
  RunForward runs_;
  StatusForward status_;
  ContentForward contents_;
  SecretForward secrets_;
  WorkspaceForward workspaces_;
  JoinForward join_;
  HeartbeatHub hub_;
  StreamStopper stopper_;
  HeartbeatForward heartbeats_;
  std::unique_ptr<UpstreamHeartbeats> upstream_heartbeats_;
  std::unique_ptr<ResultForward> results_;
  std::unique_ptr<ResultSender> sender_;
  std::unique_ptr<SpoolDrain> drain_;
};

}  // namespace

void BindForwarding(ForwardingConfig* config, Config* file) {
  file->Bool("spool.enabled", &config->spool, "Accepts results without an upstream connection.");
  file->ByteSize("spool.max_bytes", &config->spool_bytes,
                 "The size of the spool; one node may use a quarter of it.", uint64_t{1} << 20,
                 uint64_t{1} << 50);
  file->Int("spool.max_results", &config->spool_entries,
            "The number of results in the spool; one node may use a quarter of it.", 1, 1'000'000);
  file->Duration("spool.ttl", &config->spool_ttl,
                 "After this time a result that could not be delivered is removed and recorded in "
                 "the audit log.",
                 absl::Minutes(1), absl::Hours(7 * 24));
}

absl::StatusOr<std::unique_ptr<Forwarding>> Forwarding::Start(const ForwardingConfig& config,
                                                              const Parts& parts) {
  auto assembly = std::make_unique<Assembly>(parts);
  RETURN_IF_ERROR(assembly->Begin(config));
  return assembly;
}

}  // namespace muster
