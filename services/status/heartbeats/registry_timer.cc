#include "services/status/heartbeats/registry_timer.h"

#include <utility>

#include "services/common/base/log.h"

namespace muster {
namespace {

constexpr absl::Duration kStorePeriod = absl::Minutes(1);

}  // namespace

std::vector<TcpState> PeerWatch::Query(const std::vector<TcpPeer>& peers) {
  absl::Status status;
  if (!view_) {
    auto opened = TcpView::Open();
    status = opened.status();
    if (opened.ok()) view_.emplace(*std::move(opened));
  }
  if (view_) {
    auto states = view_->Query(local_port_, peers);
    status = states.status();
    if (states.ok()) {
      failing_ = false;
      return *std::move(states);
    }
    view_.reset();
  }
  if (!std::exchange(failing_, true)) {
    Log(LogLevel::kWarning, "cannot read the TCP state of silent peers", {{"error", status}});
  }
  return {};
}

RegistryTimer::RegistryTimer(Registry& registry, absl::Duration period, const Clock& clock,
                             TimerService& timers, Executor& executor)
    : registry_(registry),
      period_(period),
      clock_(clock),
      store_at_(clock.MonotonicNow() + kStorePeriod),
      tick_(timers, executor, [this] { Tick(); }) {
  tick_.RunAfter(period_);
}

RegistryTimer::~RegistryTimer() {
  tick_.Stop();
  registry_.StoreChanged();
}

void RegistryTimer::Tick() {
  registry_.Tick();
  if (const absl::Duration now = clock_.MonotonicNow(); now >= store_at_) {
    if (registry_.StoreChanged()) store_at_ = now + kStorePeriod;
  }
  tick_.RunAfter(period_);
}

}  // namespace muster
