// What a run's board answers.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/runs.h"
#include "services/status/board/run_board.h"
#include "services/status/board/watch_hub.h"

namespace muster {
namespace {

// So many pairs are looked at before others get a turn: well below a millisecond.
constexpr int kPortion = 256;
constexpr int kStragglers = 100;
// What is larger is for programs: words that are the same for each pair are left out.
constexpr int kPageWithWords = 1000;
constexpr size_t kStragglerBytes = size_t{1} << 20;

// The worst first.
constexpr v1::Reason kWorstFirst[] = {
    v1::REASON_CRASHED, v1::REASON_NETWORK_LOST, v1::REASON_NOT_RESPONDING, v1::REASON_STUCK,
    v1::REASON_BLOCKED, v1::REASON_SEGMENT_LOST, v1::REASON_BACKPRESSURED,  v1::REASON_SLOW};

// A page continues after "<plugin>/<node>"; neither name can hold a slash.
absl::StatusOr<std::pair<std::string, std::string>> ParseToken(const std::string& token) {
  const size_t slash = token.find('/');
  if (slash == 0 || slash == std::string::npos || token.find('/', slash + 1) != std::string::npos) {
    return errors::InvalidPageToken();
  }
  return std::pair(token.substr(0, slash), token.substr(slash + 1));
}

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

}  // namespace

std::shared_ptr<const v1::RunStatus> RunBoard::Summary() {
  const std::string doubt = around_.doubt();
  MutexLock lock(mutex_);
  const Moment now = Now();
  if (summary_ == nullptr || summary_of_ != summary_version_ ||
      now.monotonic - summary_at_ >= kWatchPace) {
    summary_ = std::make_shared<const v1::RunStatus>(MakeSummary(doubt, now));
    summary_of_ = summary_version_;
    summary_at_ = now.monotonic;
  }
  return summary_;
}

v1::RunStatus RunBoard::MakeSummary(const std::string& doubt, const Moment& now) {
  v1::RunStatus status;
  status.set_run(id_);
  status.set_state(run_.state());
  status.set_state_reason(run_.state_reason());
  if (run_.has_create_time()) *status.mutable_create_time() = run_.create_time();
  if (run_.has_deadline()) *status.mutable_deadline() = run_.deadline();
  if (run_.has_end_time()) *status.mutable_end_time() = run_.end_time();
  *status.mutable_time() = ToTimestamp(now.wall);
  status.set_doubt(doubt);
  Reasons reasons = {};
  for (auto& [name, plugin] : plugins_) {
    AddPluginStatus(plugin, now, &status);
    AddCounts(plugin.counts, status.mutable_counts());
    for (size_t i = 0; i < reasons.size(); ++i) reasons[i] += plugin.reasons[i];
  }
  status.set_percent_complete(Share(status.counts()));
  AddReasons(reasons, status.mutable_reasons());
  AddEstimate(&status);
  AddStragglers(PairView(now, OutlookNow(), /*brief=*/false), &status);
  return status;
}

void RunBoard::AddPluginStatus(PluginPairs& plugin, const Moment& now, v1::RunStatus* status) {
  v1::PluginStatus* out = status->add_plugins();
  out->set_plugin(plugin.name);
  out->set_once(plugin.once);
  *out->mutable_counts() = plugin.counts;
  out->set_percent_complete(Share(plugin.counts));
  AddReasons(plugin.reasons, out->mutable_reasons());
  const auto range = EstimateOf(plugin, now.monotonic);
  if (!range) return;
  // At the deadline every pair is through, one way or the other.
  const absl::Time deadline = OutlookNow().deadline;
  v1::Estimate* estimate = out->mutable_estimate();
  *estimate->mutable_earliest() = ToTimestamp(std::min(now.WallOf(range->earliest), deadline));
  *estimate->mutable_latest() = ToTimestamp(std::min(now.WallOf(range->latest), deadline));
}

std::optional<TimeRange> RunBoard::EstimateOf(PluginPairs& plugin, absl::Duration now) {
  if (IsEnded(run_.state()) || plugin.counts.pending() == 0) return std::nullopt;
  // Nobody knows when those will go on.
  for (const v1::Reason reason : kWorstFirst) {
    if (reason != v1::REASON_SLOW && plugin.reasons[reason] > 0) return std::nullopt;
  }
  while (!plugin.begun.empty() && !plugin.begun.front()->pending()) plugin.begun.pop_front();
  while (!plugin.begun.empty() && !plugin.begun.back()->pending()) plugin.begun.pop_back();
  absl::Duration oldest = created_at_;
  absl::Duration newest = created_at_;
  if (!plugin.begun.empty()) {
    newest = plugin.begun.back()->work->began;
    if (plugin.unheard == 0) oldest = plugin.begun.front()->work->began;
  }
  return EstimateEnd(plugin.durations, oldest, newest, now);
}

// The run is through when its last plugin is; nothing can be said of it while nothing can be said
// of one that is not.
void RunBoard::AddEstimate(v1::RunStatus* status) {
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

void RunBoard::AddStragglers(const PairView& view, v1::RunStatus* status) const {
  size_t bytes = 0;
  const auto add = [&](v1::Reason reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const Pair* const pair : by_reason_[reason]) {
      if (status->stragglers_size() == kStragglers || bytes >= kStragglerBytes) return;
      bytes += FillPair(*pair, view, status->add_stragglers());
    }
  };
  for (const v1::Reason reason : kWorstFirst) add(reason);
  // Nobody is late before the grace is over, nor where silence is no news.
  const absl::Duration grace = absl::Seconds(run_.start_grace().seconds());
  if (grace > absl::ZeroDuration() && view.now.monotonic - created_at_ > grace) {
    add(v1::REASON_NOT_STARTED);
  }
}

absl::StatusOr<std::string> RunBoard::AddPairs(const StatusQuery& query, PairWriter* pairs) {
  std::pair<std::string, std::string> after;
  if (!query.page_token.empty()) {
    ASSIGN_OR_RETURN(after, ParseToken(query.page_token));
  }
  bool more = false;
  while (AddPortion(query, &after, &more, pairs)) {
  }
  return more ? absl::StrCat(after.first, "/", after.second) : "";
}

bool RunBoard::AddPortion(const StatusQuery& query, std::pair<std::string, std::string>* after,
                          bool* more, PairWriter* pairs) {
  const std::string& wanted = query.only_plugin.empty() ? query.plugin : query.only_plugin;
  int looked_at = 0;
  const Pair* last = nullptr;
  const auto remember = [&] {
    if (last != nullptr) *after = {last->plugin->name, last->node};
  };
  MutexLock lock(mutex_);
  const PairView view(Now(), OutlookNow(), query.page_size > kPageWithWords);
  for (auto plugin = plugins_.lower_bound(after->first); plugin != plugins_.end(); ++plugin) {
    if (!wanted.empty() && plugin->first != wanted) continue;
    const std::vector<Pair*>& sorted = plugin->second.sorted;
    auto pair = sorted.begin();
    if (!query.only_node.empty()) {
      pair = std::lower_bound(sorted.begin(), sorted.end(), query.only_node,
                              [](const Pair* a, const std::string& b) { return a->node < b; });
    }
    if (plugin->first == after->first) {
      pair = std::max(
          pair, std::upper_bound(sorted.begin(), sorted.end(), after->second,
                                 [](const std::string& a, const Pair* b) { return a < b->node; }));
    }
    for (; pair != sorted.end(); ++pair) {
      if (!query.only_node.empty() && (*pair)->node != query.only_node) break;
      if (looked_at++ == kPortion) {
        remember();
        return true;
      }
      if (Matches(query, **pair)) {
        if (pairs->count() == query.page_size || pairs->bytes() >= kPairBytesOfMessage) {
          remember();
          *more = true;
          return false;
        }
        pairs->Add(**pair, view);
      }
      last = *pair;
    }
  }
  return false;
}

bool RunBoard::Matches(const StatusQuery& query, const Pair& pair) {
  if (query.outcome != v1::OUTCOME_UNSPECIFIED && pair.outcome != query.outcome) return false;
  return query.reasons.empty() ||
         (pair.pending() && std::find(query.reasons.begin(), query.reasons.end(), pair.reason) !=
                                query.reasons.end());
}

bool RunBoard::Plans(const std::string& plugin, const std::string& node) {
  MutexLock lock(mutex_);
  if (!plugin.empty()) return Find(plugin, node) != nullptr;
  return std::any_of(plugins_.begin(), plugins_.end(),
                     [&](const auto& one) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                       return Find(one.first, node) != nullptr;
                     });
}

bool RunBoard::IsOpen(const std::string& plugin, const std::string& node) {
  MutexLock lock(mutex_);
  const Pair* const pair = Find(plugin, node);
  return pair != nullptr && pair->pending() && !IsEnded(run_.state());
}

std::vector<std::string> RunBoard::PlannedNodes() const {
  MutexLock lock(mutex_);
  std::vector<std::string> nodes;
  for (const auto& [name, plugin] : plugins_) {
    for (const Pair& pair : plugin.pairs) nodes.push_back(pair.node);
  }
  return nodes;
}

size_t RunBoard::AddPairsOf(const std::string& node, int limit,
                            google::protobuf::RepeatedPtrField<v1::PairStatus>* out) {
  size_t bytes = 0;
  MutexLock lock(mutex_);
  const PairView view(Now(), OutlookNow(), /*brief=*/false);
  for (const auto& [name, plugin] : plugins_) {
    const Pair* const pair = Find(name, node);
    if (pair != nullptr && out->size() < limit) bytes += FillPair(*pair, view, out->Add());
  }
  return bytes;
}

uint64_t RunBoard::AddChanges(uint64_t after, uint64_t until, int limit, PairWriter* pairs) {
  for (bool more = true; more;) {
    MutexLock lock(mutex_);
    const PairView view(Now(), OutlookNow(), /*brief=*/true);
    auto entry = std::upper_bound(log_.begin(), log_.end(), after,
                                  [](uint64_t a, const LogEntry& b) { return a < b.version; });
    more = false;
    for (int looked_at = 0; entry != log_.end() && entry->version <= until; ++entry) {
      more = ++looked_at > kPortion;
      if (more) break;
      // One that has changed again comes at its newer place.
      if (entry->pair->version == entry->version) {
        if (pairs->count() == limit || pairs->bytes() >= kPairBytesOfMessage) return after;
        pairs->Add(*entry->pair, view);
      }
      after = entry->version;
    }
  }
  return until;
}

WatchPosition RunBoard::Newest() const {
  MutexLock lock(mutex_);
  return {version_, summary_version_};
}

RunBoard::Tally RunBoard::MakeTally() const {
  MutexLock lock(mutex_);
  Tally tally;
  tally.state = run_.state();
  if (IsEnded(run_.state())) return tally;
  for (size_t i = 0; i < by_reason_.size(); ++i) tally.unfinished[i] = by_reason_[i].size();
  return tally;
}

bool RunBoard::ended() const {
  MutexLock lock(mutex_);
  return IsEnded(run_.state());
}

bool RunBoard::deleted() const {
  MutexLock lock(mutex_);
  return deleted_;
}

absl::Time RunBoard::created() const {
  MutexLock lock(mutex_);
  return FromProto(run_.create_time());
}

}  // namespace muster
