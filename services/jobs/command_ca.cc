#include "services/jobs/command_ca.h"

#include <chrono>

#include "muster/v1/identities.grpc.pb.h"
#include "services/common/base/log.h"
#include "services/common/rpc/call_later.h"

namespace muster {
namespace {

constexpr absl::Duration kAgainAfter = absl::Seconds(1);
constexpr std::chrono::seconds kAnswerWithin(10);

}  // namespace

CommandCa::CommandCa(GetChannel aggregator, TimerService& timers, Executor& executor)
    : aggregator_(std::move(aggregator)), task_(timers, executor, [this] { Step(); }) {
  answer_->SetTask(&task_);
}

CommandCa::~CommandCa() {
  answer_->SetTask(nullptr);
  task_.Stop();
}

std::optional<Certificate> CommandCa::Get() const {
  MutexLock lock(mutex_);
  return certificate_;
}

void CommandCa::Step() {
  if (!asked_) return Ask();
  auto answer = answer_->Take();
  if (!answer) return;
  asked_ = false;
  absl::Status status = std::move(answer->first);
  if (status.ok()) {
    auto certificate = Certificate::FromPem(answer->second.command_ca_pem());
    status = certificate.status();
    if (certificate.ok()) {
      MutexLock lock(mutex_);
      certificate_ = *std::move(certificate);
      return;
    }
  }
  LogLimited(LogLevel::kWarning, "cannot get the command authority; trying again", "",
             {{"error", status}});
  task_.RunAfter(kAgainAfter);
}

void CommandCa::Ask() {
  const auto channel = aggregator_();
  if (channel == nullptr) return task_.RunAfter(kAgainAfter);
  asked_ = true;
  CallLater<v1::IdentityService, v1::GetCommandRevocationsRequest, v1::CommandRevocations>(
      channel, &v1::IdentityService::Stub::async::GetCommandRevocations, {}, kAnswerWithin,
      [answer = answer_](const absl::Status& status, v1::CommandRevocations list) {
        answer->Set({status, std::move(list)});
      });
}

}  // namespace muster
