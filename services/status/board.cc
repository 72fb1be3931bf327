#include "services/status/board.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/errors.h"
#include "services/status/progress.h"

namespace muster {
namespace {

google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  google::protobuf::Timestamp timestamp;
  const int64_t micros = absl::ToUnixMicros(time);
  timestamp.set_seconds(micros / 1'000'000);
  timestamp.set_nanos(static_cast<int32_t>(micros % 1'000'000 * 1000));
  return timestamp;
}

void Count(v1::Outcome outcome, int64_t n, v1::ResultCounts* counts) {
  switch (outcome) {
    case v1::OUTCOME_PENDING:
      return counts->set_pending(counts->pending() + n);
    case v1::OUTCOME_GENUINE:
      return counts->set_genuine(counts->genuine() + n);
    case v1::OUTCOME_ERROR:
      return counts->set_errors(counts->errors() + n);
    case v1::OUTCOME_TIMED_OUT:
      return counts->set_timed_out(counts->timed_out() + n);
    default:
      return;
  }
}

// A page continues after "<plugin>/<node>"; neither name can hold a slash.
absl::StatusOr<std::pair<std::string, std::string>> ParseToken(const std::string& token) {
  const size_t slash = token.find('/');
  if (slash == std::string::npos) return errors::InvalidPageToken();
  return std::pair(token.substr(0, slash), token.substr(slash + 1));
}

}  // namespace

void Board::Apply(const v1::FollowChangesResponse& event, absl::Time now) {
  std::lock_guard lock(mutex_);
  feed_time_ = now;
  const absl::Time at = event.has_time() ? absl::FromUnixSeconds(event.time().seconds()) +
                                               absl::Nanoseconds(event.time().nanos())
                                         : now;
  switch (event.event_case()) {
    case v1::FollowChangesResponse::kSnapshotBegin:
      next_.clear();
      in_snapshot_ = true;
      break;
    case v1::FollowChangesResponse::kSnapshotEnd:
      KeepProgress(runs_);
      runs_ = std::move(next_);
      next_.clear();
      in_snapshot_ = false;
      ready_ = true;
      break;
    case v1::FollowChangesResponse::kRun:
      ApplyRun(event.run());
      break;
    case v1::FollowChangesResponse::kPair:
      ApplyPair(event.pair(), at);
      break;
    case v1::FollowChangesResponse::kRunDeleted:
      runs_.erase(event.run_deleted().run());
      break;
    case v1::FollowChangesResponse::kRevoked:
    case v1::FollowChangesResponse::kHeartbeat:
    case v1::FollowChangesResponse::EVENT_NOT_SET:
      break;
  }
}

void Board::ApplyRun(const v1::Run& run) {
  Run& known = (in_snapshot_ ? next_ : runs_)[run.id()];
  known.run = run;
  for (v1::Plugin& plugin : *known.run.mutable_plugins()) plugin.clear_definition_yaml();
  for (const v1::Plugin& plugin : run.plugins()) known.plugins[plugin.name()];
}

void Board::ApplyPair(const v1::FollowChangesResponse::PairChanged& change, absl::Time now) {
  Runs& runs = in_snapshot_ ? next_ : runs_;
  const auto run = runs.find(change.key().run());
  if (run == runs.end()) return;  // deleted since
  Plugin& plugin = run->second.plugins[change.key().plugin()];
  const auto [it, added] = plugin.pairs.try_emplace(change.key().node());
  Pair& pair = it->second;
  if (added) {
    plugin.counts.set_planned(plugin.counts.planned() + 1);
    Count(v1::OUTCOME_PENDING, 1, &plugin.counts);
  }
  // After a snapshot an older change may come again.
  if (change.generation() < pair.generation) return;
  Count(pair.outcome, -1, &plugin.counts);
  Count(change.outcome(), 1, &plugin.counts);
  pair.outcome = change.outcome();
  pair.generation = change.generation();
  pair.size = change.size();
  pair.error = change.error();
  pair.updated = now;
}

// The feed does not tell progress: what plugins said stays through a snapshot.
void Board::KeepProgress(Runs& from) {
  for (auto& [id, run] : next_) {
    const auto old_run = from.find(id);
    if (old_run == from.end()) continue;
    for (auto& [name, plugin] : run.plugins) {
      const auto old_plugin = old_run->second.plugins.find(name);
      if (old_plugin == old_run->second.plugins.end()) continue;
      for (auto& [node, pair] : plugin.pairs) {
        const auto old_pair = old_plugin->second.pairs.find(node);
        if (old_pair == old_plugin->second.pairs.end()) continue;
        pair.progress = std::move(old_pair->second.progress);
        pair.updated = std::max(pair.updated, old_pair->second.updated);
      }
    }
  }
}

const Board::Run* Board::Newest() const {
  const Run* newest = nullptr;
  for (const auto& [id, run] : runs_) {
    const auto later = [](const v1::Run& a, const v1::Run& b) {
      return std::pair(a.create_time().seconds(), a.create_time().nanos()) >
             std::pair(b.create_time().seconds(), b.create_time().nanos());
    };
    if (newest == nullptr || later(run.run, newest->run)) newest = &run;
  }
  return newest;
}

absl::StatusOr<v1::RunStatus> Board::Get(const StatusQuery& query) const {
  std::lock_guard lock(mutex_);
  if (!ready_) return errors::StatusNotReady();
  const auto found = runs_.find(query.run);
  const Run* run = query.run.empty() ? Newest() : found == runs_.end() ? nullptr : &found->second;
  if (run == nullptr) return errors::RunNotFound(query.run);
  v1::RunStatus status;
  status.set_run(run->run.id());
  status.set_state(run->run.state());
  status.set_state_reason(run->run.state_reason());
  *status.mutable_create_time() = run->run.create_time();
  *status.mutable_deadline() = run->run.deadline();
  *status.mutable_feed_time() = ToTimestamp(feed_time_);
  AddPlugins(*run, query, &status);
  if (query.page_size > 0) {
    if (const absl::Status paged = AddPairs(*run, query, &status); !paged.ok()) return paged;
  }
  return status;
}

void Board::AddPlugins(const Run& run, const StatusQuery& query, v1::RunStatus* status) {
  int64_t planned = 0;
  int64_t pending = 0;
  for (const auto& [name, plugin] : run.plugins) {
    planned += plugin.counts.planned();
    pending += plugin.counts.pending();
    if (!query.only_plugin.empty() && name != query.only_plugin) continue;
    v1::PluginStatus* shown = status->add_plugins();
    shown->set_plugin(name);
    *shown->mutable_counts() = plugin.counts;
  }
  if (planned == 0) return;
  status->set_percent_complete(static_cast<double>(planned - pending) /
                               static_cast<double>(planned));
}

absl::Status Board::AddPairs(const Run& run, const StatusQuery& query, v1::RunStatus* status) {
  std::pair<std::string, std::string> after;
  if (!query.page_token.empty()) {
    auto token = ParseToken(query.page_token);
    if (!token.ok()) return token.status();
    after = *std::move(token);
  }
  for (auto plugin = run.plugins.lower_bound(after.first); plugin != run.plugins.end(); ++plugin) {
    const std::string& wanted = query.only_plugin.empty() ? query.plugin : query.only_plugin;
    if (!wanted.empty() && plugin->first != wanted) continue;
    const auto& pairs = plugin->second.pairs;
    auto pair = plugin->first == after.first ? pairs.upper_bound(after.second) : pairs.begin();
    for (; pair != pairs.end(); ++pair) {
      if (!Matches(query, pair->first, pair->second)) continue;
      if (status->pairs_size() == query.page_size) {
        const v1::PairStatus& last = status->pairs(status->pairs_size() - 1);
        status->set_next_page_token(absl::StrCat(last.plugin(), "/", last.node()));
        return absl::OkStatus();
      }
      AddPair(plugin->first, pair->first, pair->second, status);
    }
  }
  return absl::OkStatus();
}

bool Board::Matches(const StatusQuery& query, const std::string& node, const Pair& pair) {
  if (query.outcome != v1::OUTCOME_UNSPECIFIED && pair.outcome != query.outcome) return false;
  return query.only_node.empty() || node == query.only_node;
}

void Board::AddPair(const std::string& plugin, const std::string& node, const Pair& pair,
                    v1::RunStatus* status) {
  v1::PairStatus* out = status->add_pairs();
  out->set_plugin(plugin);
  out->set_node(node);
  out->set_outcome(pair.outcome);
  out->set_error(pair.error);
  out->set_size(pair.size);
  if (pair.updated != absl::Time()) *out->mutable_update_time() = ToTimestamp(pair.updated);
  if (pair.progress) *out->mutable_progress() = *pair.progress;
}

absl::Status Board::Report(const v1::ReportProgressRequest& report, absl::Time now) {
  if (const absl::Status status = CheckProgress(report); !status.ok()) return status;
  const v1::ResultKey& key = report.key();
  std::lock_guard lock(mutex_);
  if (!ready_) return errors::StatusNotReady();
  const auto run = runs_.find(key.run());
  if (run == runs_.end()) return errors::RunNotFound(key.run());
  const auto plugin = run->second.plugins.find(key.plugin());
  if (plugin == run->second.plugins.end()) {
    return errors::PairNotPlanned(key.run(), key.plugin(), key.node());
  }
  const auto pair = plugin->second.pairs.find(key.node());
  if (pair == plugin->second.pairs.end()) {
    return errors::PairNotPlanned(key.run(), key.plugin(), key.node());
  }
  if (pair->second.progress == nullptr) pair->second.progress = std::make_unique<v1::Progress>();
  ApplyProgress(report, now, pair->second.progress.get());
  pair->second.updated = now;
  return absl::OkStatus();
}

absl::Status Board::Ready() const {
  std::lock_guard lock(mutex_);
  return ready_ ? absl::OkStatus() : errors::StatusNotReady();
}

}  // namespace muster
