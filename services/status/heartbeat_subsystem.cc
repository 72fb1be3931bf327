#include "services/status/heartbeat_subsystem.h"

#include <algorithm>
#include <utility>

#include "services/common/errors/heartbeats.h"

namespace muster {
namespace {

RegistryOptions OptionsOf(const HeartbeatConfig& config) {
  RegistryOptions options;
  options.tick = std::clamp(config.interval / 10, absl::Milliseconds(100), absl::Seconds(1));
  options.interval = config.interval;
  options.target_rate = config.target_rate;
  options.lost_after = config.lost_after;
  options.grace = config.grace;
  options.doubt_limit = config.doubt_limit;
  options.max_senders = config.max_senders;
  return options;
}

}  // namespace

HeartbeatSubsystem::HeartbeatSubsystem(const HeartbeatConfig& config, const RpcRuntime& runtime,
                                       ServiceThreads& threads, const Clock& clock,
                                       HeartbeatListener& listener, StatusStore& store,
                                       std::function<bool(const Caller&)> is_revoked,
                                       Metrics& metrics)
    : threads_(threads),
      store_(store),
      tick_(OptionsOf(config).tick),
      statements_(clock, metrics),
      registry_(
          OptionsOf(config), clock, listener, store,
          [this](const std::vector<TcpPeer>& peers) { return peers_.Query(peers); }, metrics),
      service_(runtime, {registry_, listener,
                         [this, &clock](const v1::ResultKey& key, const Sender& sender) {
                           store_.PutContact({key, sender.uri(), clock.Now()});
                         },
                         clock, config.first_within, std::move(is_revoked), statements_}) {}

void HeartbeatSubsystem::Begin(int port) {
  peers_.set_local_port(port);
  timer_.emplace(registry_, tick_, SystemClock(), threads_.timers(), threads_.background());
}

void HeartbeatSubsystem::Stop() {
  timer_.reset();
  const absl::Status why = errors::StatusStopping();
  service_.EndRelays(why);
  registry_.EndAll(why);
}

}  // namespace muster
