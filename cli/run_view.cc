#include "cli/run_view.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/exit_code.h"
#include "cli/format.h"
#include "cli/json_view.h"
#include "cli/progress_bar.h"
#include "cli/table.h"

namespace muster::cli {
namespace {

constexpr int kBarWidth = 20;

int64_t Done(const v1::ResultCounts& counts) { return counts.planned() - counts.pending(); }

void Add(const v1::ResultCounts& from, v1::ResultCounts& to) {
  to.set_planned(to.planned() + from.planned());
  to.set_pending(to.pending() + from.pending());
  to.set_genuine(to.genuine() + from.genuine());
  to.set_errors(to.errors() + from.errors());
  to.set_timed_out(to.timed_out() + from.timed_out());
}

std::string DeadlineText(const v1::RunStatus& status, absl::Time now, absl::TimeZone zone) {
  if (!status.has_deadline() || IsFinal(status.state())) return "";
  const absl::Time deadline = ToTime(status.deadline());
  const std::string at = HumanTime(deadline, now, zone);
  if (deadline <= now) return absl::StrCat("; the deadline was at ", at);
  return absl::StrCat("; deadline in ", HumanDuration(deadline - now), " (", at, ")");
}

std::string PluginTable(const v1::RunStatus& status) {
  using Align = Table::Align;
  Table table({{"PLUGIN"},
               {"RESULTS"},
               {"OK", Align::kRight},
               {"ERRORS", Align::kRight},
               {"TIMED OUT", Align::kRight},
               {"PENDING", Align::kRight}});
  for (const v1::PluginStatus& plugin : status.plugins()) {
    const v1::ResultCounts& counts = plugin.counts();
    table.AddRow({plugin.plugin(),
                  absl::StrFormat("%s %3d%%", Bar(Done(counts), counts.planned(), kBarWidth),
                                  Percent(Done(counts), counts.planned())),
                  absl::StrCat(counts.genuine()), absl::StrCat(counts.errors()),
                  absl::StrCat(counts.timed_out()), absl::StrCat(counts.pending())});
  }
  return table.Render();
}

std::string TroubleTable(const std::vector<v1::PairStatus>& pairs, int width) {
  Table table({{"PLUGIN"}, {"NODE"}, {"WHY THERE IS NO RESULT"}});
  for (const v1::PairStatus& pair : pairs) {
    const std::string why = pair.error().empty() ? OutcomeWord(pair.outcome()) : pair.error();
    table.AddRow({pair.plugin(), pair.node(), why});
  }
  return table.Render(width);
}

std::string ActiveTable(const std::vector<v1::PairStatus>& pairs, int width) {
  Table table({{"PLUGIN"}, {"NODE"}, {"DONE", Table::Align::kRight}, {"WHAT IT SAYS"}});
  for (const v1::PairStatus& pair : pairs) {
    const v1::Progress& progress = pair.progress();
    const std::string done = progress.total() > 0
                                 ? absl::StrCat(progress.completed(), "/", progress.total())
                                 : absl::StrCat(progress.completed());
    table.AddRow({pair.plugin(), pair.node(), done, progress.message()});
  }
  return table.Render(width);
}

// "... and 12 more": what a list that was cut leaves out.
std::string More(int64_t all, size_t shown) {
  const int64_t left = all - static_cast<int64_t>(shown);
  return left > 0 ? absl::StrCat("... and ", left, " more\n") : "";
}

}  // namespace

RunView ViewOf(v1::RunStatus status) {
  RunView view;
  for (const v1::PluginStatus& plugin : status.plugins()) Add(plugin.counts(), view.counts);
  view.status = std::move(status);
  return view;
}

RunView ViewOf(const v1::Run& run) {
  RunView view;
  view.status.set_run(run.id());
  view.status.set_state(run.state());
  view.status.set_state_reason(run.state_reason());
  *view.status.mutable_create_time() = run.create_time();
  *view.status.mutable_deadline() = run.deadline();
  view.counts = run.counts();
  return view;
}

std::string CountsText(const v1::ResultCounts& counts) {
  std::string text = absl::StrCat(Done(counts), " of ", counts.planned(),
                                  counts.planned() == 1 ? " result" : " results");
  if (counts.errors() > 0) {
    absl::StrAppend(&text, ", ", counts.errors(), counts.errors() == 1 ? " error" : " errors");
  }
  if (counts.timed_out() > 0) absl::StrAppend(&text, ", ", counts.timed_out(), " timed out");
  return text;
}

std::string SummaryLine(const RunView& view) {
  std::string line = absl::StrCat(StateWord(view.status.state()), ": ", CountsText(view.counts));
  const std::string reason = Printable(view.status.state_reason());
  if (!reason.empty()) absl::StrAppend(&line, " (", reason, ")");
  if (!view.note.empty()) absl::StrAppend(&line, "; ", view.note);
  return line;
}

std::string Render(const RunView& view, absl::Time now, absl::TimeZone zone, int width) {
  const v1::RunStatus& status = view.status;
  std::string text = absl::StrCat("Run ", status.run(), "  ", StateWord(status.state()));
  const std::string reason = Printable(status.state_reason());
  if (!reason.empty()) absl::StrAppend(&text, ": ", reason);
  absl::StrAppend(&text, "\n", CountsText(view.counts), DeadlineText(status, now, zone), "\n");
  if (!view.note.empty()) absl::StrAppend(&text, view.note, "\n");
  if (!status.plugins().empty()) absl::StrAppend(&text, "\n", PluginTable(status));
  if (!view.troubled.empty()) {
    absl::StrAppend(&text, "\n", TroubleTable(view.troubled, width),
                    More(view.counts.errors() + view.counts.timed_out(), view.troubled.size()));
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
