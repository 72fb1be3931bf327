#include "cli/output/run_view.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/exit_code.h"
#include "cli/output/color.h"
#include "cli/output/damage_view.h"
#include "cli/output/format.h"
#include "cli/output/json_view.h"
#include "cli/output/progress_bar.h"
#include "cli/output/status_json.h"
#include "cli/output/table.h"

namespace muster::cli {
namespace {

constexpr int kBarWidth = 20;
constexpr int kShortBarWidth = 10;
constexpr size_t kDamagedShown = 20;
constexpr size_t kWaitingShown = 5;
constexpr int kNarrow = 100;  // columns of a terminal with short bars
// The aggregator sends something every few seconds (feed_follower.h).
constexpr absl::Duration kSilentFeed = absl::Seconds(15);

int64_t DoneCount(const v1::ResultCounts& counts) { return counts.planned() - counts.pending(); }

std::string DeadlineText(const v1::RunStatus& status, absl::Time now) {
  if (!status.has_deadline() || HasEnded(status.state())) return "";
  const absl::Time deadline = FromProto(status.deadline());
  const std::string at = HumanTime(deadline, now);
  if (deadline <= now) return absl::StrCat("; the deadline passed at ", at);
  return absl::StrCat("; deadline in ", HumanDuration(deadline - now), " (", at, ")");
}

// Returns the estimated time of the last outcome, as a range.
std::string EstimateText(const v1::RunStatus& status, absl::Time now) {
  if (!status.has_estimate() || HasEnded(status.state())) return "";
  const absl::Time latest = FromProto(status.estimate().latest());
  if (latest <= now) return "";
  const absl::Time earliest = std::max(now, FromProto(status.estimate().earliest()));
  return absl::StrCat("Estimate: done in ", HumanDuration(earliest - now), " to ",
                      HumanDuration(latest - now), " (", HumanTime(earliest, now), " to ",
                      HumanTime(latest, now), "), from the durations so far");
}

// A complete run is good only if all of its results are genuine.
Color ColorOfState(const v1::RunStatus& status) {
  if (status.state() != v1::RUN_STATE_COMPLETE) return ColorOfWord(StateWord(status.state()));
  return status.counts().genuine() == status.counts().planned() ? Color::kGood : Color::kWarning;
}

std::string AsSentence(std::string text) {
  if (!text.empty()) text.front() = absl::ascii_toupper(text.front());
  return text;
}

// Returns why an answer may lack results; empty if it does not.
std::string SilenceText(const v1::RunStatus& status) {
  if (!status.has_time() || !status.has_feed_time() || HasEnded(status.state())) return "";
  const absl::Time now = FromProto(status.time());
  const absl::Time last = FromProto(status.feed_time());
  if (now - last <= kSilentFeed) return "";
  return absl::StrCat("the aggregator has not answered the status service since ",
                      HumanTime(last, now), ": later changes of the run are not shown");
}

// Returns "2 running, 1 stuck": the reasons of the pending pairs.
std::string ReasonsText(const v1::PluginStatus& plugin) {
  return absl::StrJoin(plugin.reasons(), ", ", [](std::string* out, const v1::ReasonCount& reason) {
    absl::StrAppend(out, reason.count(), " ", ReasonText(reason.reason()));
  });
}

std::string PluginTable(const v1::RunStatus& status, int width) {
  const int bar = width > 0 && width < kNarrow ? kShortBarWidth : kBarWidth;
  using Align = Table::Align;
  Table table({{"PLUGIN"},
               {"OUTCOMES"},
               {"GENUINE", Align::kRight},
               {"ERRORS", Align::kRight},
               {"TIMED OUT", Align::kRight},
               {HasEnded(status.state()) ? "NO OUTCOME" : "PENDING", Align::kRight},
               {"REASONS"}});
  for (const v1::PluginStatus& plugin : status.plugins()) {
    const v1::ResultCounts& counts = plugin.counts();
    table.AddRow({plugin.plugin(),
                  absl::StrFormat("%s %3d%%", Bar(DoneCount(counts), counts.planned(), bar),
                                  Percent(DoneCount(counts), counts.planned())),
                  absl::StrCat(counts.genuine()), absl::StrCat(counts.errors()),
                  absl::StrCat(counts.timed_out()), absl::StrCat(counts.pending()),
                  ReasonsText(plugin)});
  }
  return table.Render(width);
}

// Returns the reason, duration and next event of each straggler.
std::string StragglerTable(const std::vector<v1::PairStatus>& pairs, absl::Time now, int width,
                           bool color) {
  Table table({{"PLUGIN"},
               {"NODE"},
               {.heading = "REASON", .colored = true},
               {"SINCE"},
               {"HEARTBEAT"},
               {"DETAIL"}});
  for (const v1::PairStatus& pair : pairs) {
    const std::string message =
        pair.has_fault() ? pair.fault().message() : pair.progress().message();
    std::string more = pair.detail();
    if (!message.empty()) absl::StrAppend(&more, more.empty() ? "" : "; ", "message: ", message);
    if (!pair.next().empty()) absl::StrAppend(&more, more.empty() ? "" : "; ", pair.next());
    table.AddRow(
        {pair.plugin(), pair.node(), ReasonText(pair.reason()),
         pair.has_reason_since() ? HumanDuration(now - FromProto(pair.reason_since())) : "-",
         pair.has_heartbeat_age()
             ? absl::StrCat(HumanDuration(absl::Seconds(pair.heartbeat_age().seconds())), " ago")
             : "none",
         more});
  }
  return table.Render(width, color);
}

std::string FailureTable(const std::vector<v1::PairStatus>& pairs, int width) {
  Table table({{"PLUGIN"}, {"NODE"}, {"ERROR"}});
  for (const v1::PairStatus& pair : pairs) {
    const std::string error =
        pair.error().empty() ? OutcomeWord(pair.outcome()) : JoinLines(pair.error());
    table.AddRow({pair.plugin(), pair.node(), error});
  }
  return table.Render(width);
}

std::string ActiveTable(const std::vector<v1::PairStatus>& pairs, int width) {
  Table table({{"PLUGIN"}, {"NODE"}, {"DONE", Table::Align::kRight}, {"MESSAGE"}});
  for (const v1::PairStatus& pair : pairs) {
    const v1::Progress& progress = pair.progress();
    const std::string done = progress.total() > 0
                                 ? absl::StrCat(progress.completed(), "/", progress.total())
                                 : absl::StrCat(progress.completed());
    table.AddRow({pair.plugin(), pair.node(), done, progress.message()});
  }
  return table.Render(width);
}

// Returns the number of pending pairs that need attention.
int64_t StragglerCount(const v1::RunStatus& status) {
  int64_t stragglers = 0;
  for (const v1::ReasonCount& reason : status.reasons()) {
    if (reason.reason() != v1::REASON_RUNNING && reason.reason() != v1::REASON_NOT_STARTED &&
        reason.reason() != v1::REASON_RUN_ENDED) {
      stragglers += reason.count();
    }
  }
  return stragglers;
}

}  // namespace

int64_t ReasonCount(const v1::RunStatus& status, v1::Reason wanted) {
  for (const v1::ReasonCount& reason : status.reasons()) {
    if (reason.reason() == wanted) return reason.count();
  }
  return 0;
}

RunView ViewOf(v1::RunStatus status) {
  RunView view;
  for (v1::PairStatus& pair : *status.mutable_pairs()) {
    if (pair.reason() == v1::REASON_RUN_ENDED) continue;
    std::vector<v1::PairStatus>& list = pair.outcome() != v1::OUTCOME_PENDING     ? view.failed
                                        : pair.reason() == v1::REASON_RUNNING     ? view.active
                                        : pair.reason() == v1::REASON_NOT_STARTED ? view.waiting
                                                                                  : view.stragglers;
    list.push_back(std::move(pair));
  }
  status.clear_pairs();
  status.clear_stragglers();
  view.status = std::move(status);
  return view;
}

RunView ViewOf(const v1::Run& run) {
  RunView view;
  view.status.set_run(run.id());
  view.status.set_title(run.title());
  view.status.set_state(run.state());
  view.status.set_state_reason(run.state_reason());
  *view.status.mutable_create_time() = run.create_time();
  *view.status.mutable_deadline() = run.deadline();
  *view.status.mutable_counts() = run.counts();
  view.status.set_damaged_results(run.damaged_results());
  return view;
}

std::optional<RunView> ViewOf(const v1::Run& run, RunView details) {
  if (HasEnded(run.state()) != HasEnded(details.status.state())) return std::nullopt;
  details.status.set_damaged_results(run.damaged_results());
  if (HasEnded(run.state())) {
    details.status.set_state(run.state());
    details.status.set_state_reason(run.state_reason());
    *details.status.mutable_counts() = run.counts();
  }
  return details;
}

std::string CountsText(const v1::ResultCounts& counts) {
  std::string text = absl::StrCat(counts.genuine() + counts.errors(), " of ", counts.planned(),
                                  counts.planned() == 1 ? " result" : " results");
  if (counts.errors() > 0) {
    absl::StrAppend(&text, ", ", counts.errors(), counts.errors() == 1 ? " error" : " errors");
  }
  if (counts.timed_out() > 0) absl::StrAppend(&text, ", ", counts.timed_out(), " timed out");
  return text;
}

std::string ReasonText(v1::Reason reason) {
  return absl::StrReplaceAll(ReasonWord(reason), {{"-", " "}});
}

std::string SummaryLine(const RunView& view) {
  std::string line =
      absl::StrCat(StateWord(view.status.state()), ": ", CountsText(view.status.counts()));
  const std::string reason = Printable(view.status.state_reason());
  if (!reason.empty()) absl::StrAppend(&line, " (", reason, ")");
  const std::string damage = DamageText(view.status.damaged_results());
  if (!damage.empty()) absl::StrAppend(&line, "; ", damage);
  const std::string silence = SilenceText(view.status);
  if (!silence.empty()) absl::StrAppend(&line, "; ", silence);
  if (!view.note.empty()) absl::StrAppend(&line, "; ", view.note);
  return line;
}

std::string SummarySentence(const RunView& view) {
  const v1::RunState state = view.status.state();
  const char* verb = state == v1::RUN_STATE_FAILED      ? " "
                     : state == v1::RUN_STATE_CANCELLED ? " was "
                                                        : " is ";
  return absl::StrCat("Run ", view.status.run(), verb, SummaryLine(view), ".");
}

std::string Render(const RunView& view, absl::Time now, int width, bool color) {
  const v1::RunStatus& status = view.status;
  const std::string reason = Printable(status.state_reason());
  const std::string state = StateWord(status.state());
  std::string text;
  const auto add = [&](const std::string& paragraph) {
    if (!paragraph.empty()) absl::StrAppend(&text, WrapText(paragraph, width), "\n");
  };
  const std::string title = Printable(status.title());
  add(absl::StrCat("Run ", status.run(), title.empty() ? "" : " (", title, title.empty() ? "" : ")",
                   "  ", color ? Colored(state, ColorOfState(status)) : state,
                   view.pinned ? " (pinned)" : "", reason.empty() ? "" : ": ", reason));
  add(absl::StrCat(CountsText(status.counts()), DeadlineText(status, now)));
  add(EstimateText(status, now));
  add(AsSentence(SilenceText(status)));
  if (status.damaged_results() > 0) {
    add(absl::StrCat(DamageText(status.damaged_results()), "; verify again: muster verify ",
                     status.run()));
  }
  add(Printable(status.doubt()));
  add(view.note);
  if (!status.plugins().empty()) absl::StrAppend(&text, "\n", PluginTable(status, width));
  if (!view.damaged.empty()) {
    const size_t shown = std::min(view.damaged.size(), kDamagedShown);
    absl::StrAppend(&text, "\n",
                    DamageTable({view.damaged.begin(), view.damaged.begin() + shown},
                                /*with_run=*/false, width),
                    MoreText(static_cast<int64_t>(view.damaged.size()), shown));
  }
  if (!view.stragglers.empty()) {
    absl::StrAppend(&text, "\n", StragglerTable(view.stragglers, now, width, color),
                    MoreText(StragglerCount(status), view.stragglers.size()));
  }
  if (!view.waiting.empty()) {
    const size_t shown = std::min(view.waiting.size(), kWaitingShown);
    absl::StrAppend(
        &text, "\n",
        StragglerTable({view.waiting.begin(), view.waiting.begin() + shown}, now, width, color),
        MoreText(ReasonCount(status, v1::REASON_NOT_STARTED), shown));
  }
  if (!view.failed.empty()) {
    absl::StrAppend(
        &text, "\n", FailureTable(view.failed, width),
        MoreText(status.counts().errors() + status.counts().timed_out(), view.failed.size()));
  }
  if (!view.active.empty()) absl::StrAppend(&text, "\n", ActiveTable(view.active, width));
  return text;
}

int OutcomeExitCode(v1::RunState state, const v1::ResultCounts& counts) {
  switch (state) {
    case v1::RUN_STATE_COMPLETE:
      return counts.timed_out() > 0 ? kExitRunTimedOut
             : counts.errors() > 0  ? kExitRunErrors
                                    : kExitOk;
    case v1::RUN_STATE_FAILED:
      return kExitRunFailed;
    case v1::RUN_STATE_CANCELLED:
      return kExitRunCancelled;
    default:
      return kExitOk;
  }
}

}  // namespace muster::cli
