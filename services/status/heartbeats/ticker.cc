#include "services/status/heartbeats/ticker.h"

#include <utility>

#include "services/common/base/log.h"

namespace muster {
namespace {

constexpr std::chrono::minutes kKeepsEvery{1};
constexpr size_t kKeepsAtATime = 50'000;

}  // namespace

std::vector<TcpState> PeerWatch::Look(const std::vector<TcpPeer>& peers) {
  absl::Status status;
  if (!view_) {
    auto opened = TcpView::Open();
    status = opened.status();
    if (opened.ok()) view_.emplace(*std::move(opened));
  }
  if (view_) {
    auto sights = view_->Look(local_port_, peers);
    status = sights.status();
    if (sights.ok()) {
      failing_ = false;
      return *std::move(sights);
    }
    view_.reset();
  }
  if (!std::exchange(failing_, true)) {
    Log(LogLevel::kWarning, "cannot read the TCP state of silent peers", {{"error", status}});
  }
  return {};
}

Ticker::Ticker(Registry& registry, absl::Duration tick,
               std::function<void(std::vector<SenderRecord>)> keep)
    : registry_(registry), keep_(std::move(keep)), thread_([this, tick] { Run(tick); }) {}

Ticker::~Ticker() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.NotifyAll();
  thread_.join();
}

void Ticker::Run(absl::Duration tick) {
  const auto period = absl::ToChronoNanoseconds(tick);
  auto next = std::chrono::steady_clock::now() + period;
  auto keep_at = std::chrono::steady_clock::now() + kKeepsEvery;
  MutexLock lock(mutex_);
  while (!wake_.WaitUntil(mutex_, next,
                          [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_; })) {
    lock.Unlock();
    registry_.Tick();
    const auto now = std::chrono::steady_clock::now();
    if (now >= keep_at) {
      Keep();
      keep_at = now + kKeepsEvery;
    }
    next = now + period;
    lock.Lock();
  }
  lock.Unlock();
  Keep();
}

void Ticker::Keep() {
  for (;;) {
    std::vector<SenderRecord> changed = registry_.TakeChanged(kKeepsAtATime);
    if (changed.empty()) return;
    keep_(std::move(changed));
  }
}

}  // namespace muster
