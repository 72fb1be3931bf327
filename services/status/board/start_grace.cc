#include "services/status/board/start_grace.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

constexpr int kNodesNamed = 100;

}  // namespace

void StartGrace::SetRun(bool planned, absl::Duration grace) {
  planned_ = planned;
  grace_ = grace;
  if (!planned_) Withdraw();
}

std::optional<absl::Duration> StartGrace::ReportBy(absl::Duration ready_since) const {
  if (!planned_ || reported_ || grace_ <= absl::ZeroDuration()) return std::nullopt;
  return std::max(known_since_, ready_since) + grace_;
}

bool StartGrace::IsOver(absl::Duration now, absl::Duration ready_since) const {
  const auto report_by = ReportBy(ready_since);
  return !expired_ && report_by && now >= *report_by;
}

void StartGrace::Expire(const std::string& reason) {
  expired_ = true;
  v1::Verdict verdict;
  verdict.mutable_start_grace_expired()->set_run(run_);
  verdict.mutable_start_grace_expired()->set_reason(reason);
  verdicts_.Add(verdict);
}

void StartGrace::Withdraw() {
  if (std::exchange(expired_, false)) verdicts_.WithdrawStartGraceExpired(run_);
}

bool AnySenderWaits(const PairTable& pairs) {
  for (int reason = 0; reason < v1::Reason_ARRAYSIZE; ++reason) {
    if (reason == v1::REASON_NOT_STARTED) continue;  // these have no sender
    for (const Pair* const pair : pairs.with_reason(static_cast<v1::Reason>(reason))) {
      if (pair->work == nullptr || pair->work->fault != nullptr) continue;
      const auto& sender = pair->work->sender;
      if (sender != nullptr && sender->presence() == v1::PRESENCE_ONLINE) return true;
    }
  }
  return false;
}

std::string WhyNotReported(const PairTable& pairs) {
  std::map<std::string_view, std::string> faults;
  for (const auto& [name, plugin] : pairs.plugins()) {
    for (const Pair* const pair : plugin.sorted) {
      const bool known = pair->work != nullptr && pair->work->fault != nullptr;
      if (!known && faults.size() >= kNodesNamed) continue;
      std::string& text = faults[pair->node];
      if (!known) continue;
      const v1::Fault& fault = *pair->work->fault;
      text = absl::StrCat(v1::Fault::Check_Name(fault.check()).substr(sizeof("CHECK_") - 1), ": ",
                          fault.address(), fault.address().empty() ? "" : ": ", fault.message());
    }
  }
  std::string why;
  int named = 0;
  // The nodes with a known fault come first.
  for (const bool known : {true, false}) {
    for (const auto& [node, fault] : faults) {
      if (fault.empty() == known || ++named > kNodesNamed) continue;
      absl::StrAppend(&why, why.empty() ? "" : "; ", ToAbsl(node), ": ",
                      known ? fault : "no heartbeat received");
    }
  }
  if (pairs.size() > static_cast<size_t>(kNodesNamed)) absl::StrAppend(&why, "; and others");
  return why;
}

}  // namespace muster
