// What time alone changes in a run, and what is concluded from silence.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/strings.h"
#include "services/common/rpc/proto_time.h"
#include "services/status/board/run_board.h"

namespace muster {
namespace {

// How often the rates of a plugin are compared: that looks at each pair with progress.
constexpr int kTicksBetweenPaces = 10;

constexpr int kNodesNamed = 100;

// The reasons of pairs whose sender may be silent.
constexpr v1::Reason kSilent[] = {v1::REASON_CRASHED, v1::REASON_NOT_RESPONDING,
                                  v1::REASON_NETWORK_LOST, v1::REASON_BLOCKED};

}  // namespace

void RunBoard::Tick() {
  MutexLock lock(mutex_);
  if (deleted_ || IsEnded(run_.state())) return;
  const Moment now = Now();
  ++ticks_;
  for (auto& [name, plugin] : plugins_) {
    if (ticks_ % kTicksBetweenPaces == 0) TickPace(plugin, now);
    // What stands still longest comes first.
    while (!plugin.moving.empty()) {
      Pair& pair = *plugin.moving.front();
      if (now.monotonic - pair.work->motion.moved_at() < plugin.stuck_after) break;
      plugin.moving.pop_front();
      pair.work->in_moving = false;
      const v1::Reason before = pair.reason;
      Judge(pair, now);
      if (pair.reason != before) Touch(pair, true);
    }
  }
  TickSilent(now);
  TickStart(now);
}

// Compares how fast the plugin's pairs count, those that finished as well.
void RunBoard::TickPace(PluginPairs& plugin, const Moment& now) {
  plugin.stuck_after = StuckAfter(plugin.steps);
  if (plugin.steps.count() == 0) return;
  std::vector<double> rates;
  std::vector<std::pair<Pair*, double>> unfinished;
  for (Pair& pair : plugin.pairs) {
    if (pair.work == nullptr) continue;
    const auto rate = pair.pending() ? pair.work->motion.Rate(now.monotonic)
                                     : std::optional(pair.work->last_rate);
    if (!rate || *rate <= 0) continue;
    rates.push_back(*rate);
    if (pair.pending()) unfinished.emplace_back(&pair, *rate);
  }
  const auto below = SlowBelow(std::move(rates));
  for (const auto& [pair, rate] : unfinished) {
    const bool slow = below && rate < *below;
    if (slow == pair->work->slow) continue;
    pair->work->slow = slow;
    const v1::Reason before = pair->reason;
    Judge(*pair, now);
    if (pair->reason != before) Touch(*pair, true);
  }
}

void RunBoard::TickSilent(const Moment& now) {
  const absl::Duration lost_after = OutlookNow().lost_after;
  for (const v1::Reason reason : kSilent) {
    for (Pair* const pair : by_reason_[reason]) {
      const PairFacts facts = FactsOf(*pair);
      if (!facts.heard_of || pair->work->lost || !IsLost(facts, lost_after, now.monotonic))
        continue;
      pair->work->lost = true;
      v1::Verdict verdict;
      *verdict.mutable_lost()->mutable_key() = KeyOf(*pair);
      verdict.mutable_lost()->set_reason(WhyLost(pair->reason, facts, now));
      *verdict.mutable_lost()->mutable_since() = ToTimestamp(now.WallOf(facts.silent_since()));
      around_.verdicts->Add(verdict);
    }
  }
}

void RunBoard::TickStart(const Moment& now) {
  if (start_grace_expired_ || came_) return;
  StartFacts facts;
  facts.planned = run_.state() == v1::RUN_STATE_PLANNED;
  facts.came = came_;
  facts.doubt = !around_.doubt().empty();
  facts.grace = FromProto(run_.start_grace());
  facts.known_since = std::max(known_since_, around_.ready_since());
  if (!StartGraceExpired(facts, now.monotonic) || SomebodyWaits()) return;
  start_grace_expired_ = true;
  v1::Verdict verdict;
  verdict.mutable_start_grace_expired()->set_run(id_);
  verdict.mutable_start_grace_expired()->set_reason(StartGraceReason());
  around_.verdicts->Add(verdict);
}

bool RunBoard::SomebodyWaits() const {
  for (const PairList& pairs : by_reason_) {
    for (const Pair* const pair : pairs) {
      if (pair->work == nullptr || pair->work->fault != nullptr) continue;
      const auto& sender = pair->work->sender;
      if (sender != nullptr && sender->presence() == v1::PRESENCE_ONLINE) return true;
    }
  }
  return false;
}

std::string RunBoard::StartGraceReason() const {
  std::map<std::string_view, std::string> faults;
  for (const auto& [name, plugin] : plugins_) {
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
  // Those of whom something is known come first.
  for (const bool known : {true, false}) {
    for (const auto& [node, fault] : faults) {
      if (fault.empty() == known || ++named > kNodesNamed) continue;
      absl::StrAppend(&why, why.empty() ? "" : "; ", ToAbsl(node), ": ",
                      known ? fault : "never heard of");
    }
  }
  if (pair_count_ > static_cast<size_t>(kNodesNamed)) absl::StrAppend(&why, "; and others");
  return why;
}

Outlook RunBoard::OutlookNow() const {
  Outlook outlook;
  outlook.ended = IsEnded(run_.state());
  if (run_.has_deadline()) outlook.deadline = FromProto(run_.deadline());
  if (run_.has_lost_after()) outlook.lost_after = FromProto(run_.lost_after());
  outlook.fail_fast = run_.fail_fast();
  if (run_.start_grace().seconds() > 0 && !came_ && run_.state() == v1::RUN_STATE_PLANNED) {
    outlook.start_by =
        Now().WallOf(std::max(known_since_, around_.ready_since())) + FromProto(run_.start_grace());
  }
  return outlook;
}

}  // namespace muster
