#include "services/agent/collection/undelivered_results.h"

#include <algorithm>
#include <utility>

#include "services/common/base/log.h"

namespace muster {
namespace {

constexpr absl::Duration kRemovalRetry = absl::Minutes(1);

}  // namespace

UndeliveredResults::UndeliveredResults(UndeliveredOptions options) : options_(std::move(options)) {
  for (const auto& [name, bytes] : ListUndeliveredResults(options_.state_dir, options_.node)) {
    Add(name, bytes);
  }
}

void UndeliveredResults::Add(const ResultName& name, int64_t bytes) {
  const auto [result, added] = results_.try_emplace(name);
  if (added) result->second.removal = options_.clock->MonotonicNow() + kKept;
  bytes_ += bytes - result->second.bytes;
  result->second.bytes = bytes;
}

void UndeliveredResults::Erase(Results::iterator result) {
  bytes_ -= result->second.bytes;
  results_.erase(result);
}

bool UndeliveredResults::Update(const ResultName& name) {
  const auto bytes = UndeliveredBytes(options_.state_dir, name.run, name.plugin, options_.node);
  if (bytes) {
    Add(name, *bytes);
  } else if (const auto result = results_.find(name); result != results_.end()) {
    Erase(result);
  }
  return bytes.has_value();
}

void UndeliveredResults::HandleOffer(const ResultName& name) {
  const auto result = results_.find(name);
  if (result == results_.end()) return;
  result->second.removal = options_.clock->MonotonicNow() + kKept;
  result->second.ended = false;
}

void UndeliveredResults::HandleEnd(const std::string& run) {
  for (auto& [name, result] : results_) {
    if (name.run == run) End(&result);
  }
}

void UndeliveredResults::HandleEnd(const ResultName& name) {
  const auto result = results_.find(name);
  if (result != results_.end()) End(&result->second);
}

void UndeliveredResults::End(Result* result) const {
  result->removal = std::min(result->removal, options_.clock->MonotonicNow() + kKeptAfterEnd);
  result->ended = true;
}

std::set<std::string> UndeliveredResults::OpenRuns(InUse in_use) const {
  std::set<std::string> runs;
  for (const auto& [name, result] : results_) {
    if (!result.ended && !in_use(name)) runs.insert(name.run);
  }
  return runs;
}

void UndeliveredResults::RemoveDue(InUse in_use) {
  const absl::Duration now = options_.clock->MonotonicNow();
  for (auto result = results_.begin(); result != results_.end();) {
    const auto current = result++;
    if (current->second.removal > now || in_use(current->first)) continue;
    TryRemove(current,
              current->second.ended ? "its run has ended" : "its run is older than any run can be");
  }
  while (IsFull()) {
    auto first = results_.end();
    for (auto result = results_.begin(); result != results_.end(); ++result) {
      if (!result->second.ended || in_use(result->first)) continue;
      if (first == results_.end() || result->second.removal < first->second.removal) first = result;
    }
    if (first == results_.end()) return;
    if (!TryRemove(first, "its run has ended, and there are too many or too large ones")) return;
  }
}

bool UndeliveredResults::TryRemove(Results::iterator result, const char* why) {
  const ResultName& name = result->first;
  if (!RemoveState(options_.state_dir, name.run, name.plugin, options_.node)) {
    result->second.removal = options_.clock->MonotonicNow() + kRemovalRetry;
    return false;
  }
  Log(LogLevel::kWarning, "a result that was not delivered is removed",
      {{"run", name.run}, {"plugin", name.plugin}, {"reason", why}});
  Erase(result);
  return true;
}

absl::Duration UndeliveredResults::UntilNextRemoval(InUse in_use) const {
  absl::Duration next = absl::InfiniteDuration();
  for (const auto& [name, result] : results_) {
    if (!in_use(name)) next = std::min(next, result.removal);
  }
  return next - options_.clock->MonotonicNow();
}

}  // namespace muster
