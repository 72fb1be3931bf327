#include "testing/load/swarm.h"

#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>

#include "absl/strings/match.h"

namespace muster::load {
namespace {

constexpr size_t kMaxTimers = 1'000'000;

bool IsTimeout(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
         absl::StrContains(status.error_message(), "imed out") ||
         absl::StrContains(status.error_message(), "imeout");
}

}  // namespace

void PrintEvent(const nlohmann::json& event) { std::cout << event.dump() << std::endl; }

Swarm::Swarm(int nodes, Certificate command_ca)
    : nodes_(nodes), command_ca_(std::move(command_ca)), timers_(MakeTimerService(kMaxTimers)) {}

void Swarm::RunAfter(absl::Duration delay, absl::AnyInvocable<void()> run) {
  if (!timers_->Schedule(delay, std::move(run)).ok()) std::abort();
}

void Swarm::CountAttempt() {
  MutexLock lock(mutex_);
  ++attempts_;
}

void Swarm::OnConnected() {
  MutexLock lock(mutex_);
  if (++connected_ < nodes_) return;
  PrintEvent({{"event", "all connected"},
              {"seconds", absl::ToDoubleSeconds(absl::Now() - since_)},
              {"attempts", std::exchange(attempts_, 0)},
              {"timed_out", std::exchange(timed_out_, 0)},
              {"refused", std::exchange(refused_, 0)},
              {"other", std::exchange(other_, 0)}});
}

void Swarm::OnLost(const grpc::Status& status) {
  MutexLock lock(mutex_);
  if (connected_-- < nodes_) return;
  since_ = absl::Now();
  PrintEvent({{"event", "lost"}, {"error", status.error_message()}});
}

void Swarm::OnFailed(const grpc::Status& status, bool silent) {
  MutexLock lock(mutex_);
  if (silent || IsTimeout(status)) {
    ++timed_out_;
  } else if (absl::StrContains(status.error_message(), "onnection refused")) {
    ++refused_;
    return;
  } else {
    ++other_;
  }
  if (timed_out_ + other_ > 1) return;
  PrintEvent({{"event", "failed"},
              {"error", silent ? "the relay did not answer" : status.error_message()}});
}

}  // namespace muster::load
