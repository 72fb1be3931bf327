#include "services/status/board/run_summary.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "services/common/rpc/proto_time.h"
#include "services/status/board/estimate.h"
#include "services/status/board/pair_writer.h"

namespace muster {
namespace {

constexpr int kStragglers = 100;
constexpr size_t kStragglerBytes = size_t{1} << 20;

constexpr v1::Reason kWorstFirst[] = {
    v1::REASON_CRASHED, v1::REASON_NETWORK_LOST, v1::REASON_NOT_RESPONDING, v1::REASON_STUCK,
    v1::REASON_BLOCKED, v1::REASON_SEGMENT_LOST, v1::REASON_BACKPRESSURED,  v1::REASON_SLOW};

void AddCounts(const v1::ResultCounts& from, v1::ResultCounts* to) {
  to->set_planned(to->planned() + from.planned());
  to->set_pending(to->pending() + from.pending());
  to->set_genuine(to->genuine() + from.genuine());
  to->set_errors(to->errors() + from.errors());
  to->set_timed_out(to->timed_out() + from.timed_out());
}

double Share(const v1::ResultCounts& counts) {
  if (counts.planned() == 0) return 0;
  return static_cast<double>(counts.planned() - counts.pending()) /
         static_cast<double>(counts.planned());
}

using Reasons = std::array<int64_t, v1::Reason_ARRAYSIZE>;

void AddReasons(const Reasons& counts, google::protobuf::RepeatedPtrField<v1::ReasonCount>* out) {
  for (int reason = 0; reason < v1::Reason_ARRAYSIZE; ++reason) {
    if (counts[reason] == 0) continue;
    v1::ReasonCount* count = out->Add();
    count->set_reason(static_cast<v1::Reason>(reason));
    count->set_count(counts[reason]);
  }
}

std::optional<TimeRange> EstimateOf(PluginPairs& plugin, bool ended, absl::Duration created,
                                    absl::Duration now) {
  if (ended || plugin.counts.pending() == 0) return std::nullopt;
  // It is not known when a straggler continues.
  for (const v1::Reason reason : kWorstFirst) {
    if (reason != v1::REASON_SLOW && plugin.reasons[reason] > 0) return std::nullopt;
  }
  while (!plugin.begun.empty() && !plugin.begun.front()->pending()) plugin.begun.pop_front();
  while (!plugin.begun.empty() && !plugin.begun.back()->pending()) plugin.begun.pop_back();
  absl::Duration oldest = created;
  absl::Duration newest = created;
  if (!plugin.begun.empty()) {
    newest = plugin.begun.back()->work->began;
    if (plugin.unheard == 0) oldest = plugin.begun.front()->work->began;
  }
  return EstimateEnd(plugin.durations, oldest, newest, now);
}

void AddPlugin(PluginPairs& plugin, const Outlook& outlook, absl::Duration created,
               const Moment& now, v1::RunStatus* status) {
  v1::PluginStatus* out = status->add_plugins();
  out->set_plugin(plugin.name);
  out->set_once(plugin.once);
  *out->mutable_counts() = plugin.counts;
  out->set_percent_complete(Share(plugin.counts));
  AddReasons(plugin.reasons, out->mutable_reasons());
  const auto range = EstimateOf(plugin, outlook.ended, created, now.monotonic);
  if (!range) return;
  // At the deadline every pair has an outcome.
  v1::Estimate* estimate = out->mutable_estimate();
  *estimate->mutable_earliest() =
      ToTimestamp(std::min(now.WallOf(range->earliest), outlook.deadline));
  *estimate->mutable_latest() = ToTimestamp(std::min(now.WallOf(range->latest), outlook.deadline));
}

// A run ends when its last plugin does. Without an estimate for each unfinished plugin there is
// none for the run.
void AddEstimate(v1::RunStatus* status) {
  v1::Estimate whole;
  for (const v1::PluginStatus& plugin : status->plugins()) {
    if (plugin.counts().pending() == 0) continue;
    if (!plugin.has_estimate()) return;
    const v1::Estimate& one = plugin.estimate();
    if (!whole.has_earliest() || FromProto(whole.earliest()) < FromProto(one.earliest())) {
      *whole.mutable_earliest() = one.earliest();
    }
    if (!whole.has_latest() || FromProto(whole.latest()) < FromProto(one.latest())) {
      *whole.mutable_latest() = one.latest();
    }
  }
  if (whole.has_latest()) *status->mutable_estimate() = whole;
}

void AddStragglers(const v1::Run& run, const PairTable& pairs, const PairView& view,
                   absl::Duration created, v1::RunStatus* status) {
  size_t bytes = 0;
  const auto add = [&](v1::Reason reason) {
    for (const Pair* const pair : pairs.with_reason(reason)) {
      if (status->stragglers_size() == kStragglers || bytes >= kStragglerBytes) return;
      bytes += FillPair(*pair, view, status->add_stragglers());
    }
  };
  for (const v1::Reason reason : kWorstFirst) add(reason);
  // A pair that has not started is late only after the start grace, if there is one.
  const absl::Duration grace = absl::Seconds(run.start_grace().seconds());
  if (grace > absl::ZeroDuration() && view.now.monotonic - created > grace) {
    add(v1::REASON_NOT_STARTED);
  }
}

// Returns what a run waits for that has not begun, or whose pairs all have an outcome.
std::string WhyWaiting(const v1::RunStatus& status, const v1::Run& run, const Outlook& outlook,
                       const Moment& now) {
  if (status.state() == v1::RUN_STATE_PLANNED && outlook.start_by != absl::InfinitePast()) {
    return absl::StrCat("fails at ", ClockTime(outlook.start_by, now.wall),
                        " unless an agent of its plan reports");
  }
  if (status.state() != v1::RUN_STATE_POST_PROCESSING) return "";
  if (!run.seal_fault().empty()) {
    return absl::StrCat("the archive cannot be built, and the aggregator tries again: ",
                        run.seal_fault());
  }
  if (status.counts().timed_out() == 0 || !run.has_seal_time()) return "the archive is being built";
  const absl::Time seal_at = FromProto(run.seal_time());
  if (seal_at <= now.wall) return "uploads in progress end, then the archive is built";
  return absl::StrCat("waits until ", ClockTime(seal_at, now.wall),
                      " for late results of timed-out pairs");
}

}  // namespace

v1::RunStatus MakeRunSummary(const v1::Run& run, PairTable& pairs, const Outlook& outlook,
                             absl::Duration created, const Moment& now) {
  v1::RunStatus status;
  // The aggregator learns of the work with the first outcome.
  const bool works = run.state() == v1::RUN_STATE_PLANNED && outlook.reported;
  status.set_state(works ? v1::RUN_STATE_RUNNING : run.state());
  status.set_state_reason(run.state_reason());
  status.set_title(run.title());
  status.set_damaged_results(run.damaged_results());
  if (run.has_create_time()) *status.mutable_create_time() = run.create_time();
  if (run.has_deadline()) *status.mutable_deadline() = run.deadline();
  if (run.has_end_time()) *status.mutable_end_time() = run.end_time();
  *status.mutable_time() = ToTimestamp(now.wall);
  Reasons reasons = {};
  for (auto& [name, plugin] : pairs.plugins()) {
    AddPlugin(plugin, outlook, created, now, &status);
    AddCounts(plugin.counts, status.mutable_counts());
    for (size_t i = 0; i < reasons.size(); ++i) reasons[i] += plugin.reasons[i];
  }
  status.set_percent_complete(Share(status.counts()));
  if (status.state_reason().empty()) status.set_state_reason(WhyWaiting(status, run, outlook, now));
  AddReasons(reasons, status.mutable_reasons());
  AddEstimate(&status);
  AddStragglers(run, pairs, PairView(now, outlook, /*brief=*/false), created, &status);
  return status;
}

void RestrictToPlugin(const std::string& plugin, v1::RunStatus* status) {
  status->clear_counts();
  status->clear_reasons();
  status->clear_estimate();
  status->clear_stragglers();
  auto& plugins = *status->mutable_plugins();
  for (v1::PluginStatus& one : plugins) one.clear_reasons();
  if (plugin.empty()) return;
  plugins.erase(std::remove_if(plugins.begin(), plugins.end(),
                               [&](const v1::PluginStatus& one) { return one.plugin() != plugin; }),
                plugins.end());
}

}  // namespace muster
