#include "cli/follow.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/exit_code.h"
#include "cli/format.h"
#include "cli/interrupt.h"
#include "cli/json_view.h"
#include "cli/live_view.h"
#include "cli/run_reference.h"

namespace muster::cli {
namespace {

constexpr int kPairsShown = 10;
constexpr absl::Duration kInterval = absl::Seconds(1);
constexpr absl::Duration kAwayLimit = absl::Minutes(5);
constexpr absl::Duration kUnknownLimit = absl::Seconds(10);  // a new run has to reach the feed

absl::StatusOr<std::vector<v1::PairStatus>> Pairs(Client& client, const std::string& run,
                                                  v1::Outcome outcome) {
  v1::GetStatusRequest request;
  request.set_run(run);
  request.set_outcome(outcome);
  request.set_page_size(kPairsShown);
  const auto status = client.GetStatus(request);
  if (!status.ok()) return status.status();
  return std::vector<v1::PairStatus>(status->pairs().begin(), status->pairs().end());
}

absl::Status AddPairs(Client& client, RunView& view) {
  const std::string& run = view.status.run();
  for (const auto& [outcome, count] : {std::pair{v1::OUTCOME_ERROR, view.counts.errors()},
                                       std::pair{v1::OUTCOME_TIMED_OUT, view.counts.timed_out()}}) {
    if (count == 0 || view.troubled.size() >= kPairsShown) continue;
    const auto pairs = Pairs(client, run, outcome);
    if (!pairs.ok()) return pairs.status();
    view.troubled.insert(view.troubled.end(), pairs->begin(), pairs->end());
  }
  if (view.troubled.size() > kPairsShown) view.troubled.resize(kPairsShown);
  if (view.counts.pending() == 0 || IsFinal(view.status.state())) return absl::OkStatus();
  const auto pending = Pairs(client, run, v1::OUTCOME_PENDING);
  if (!pending.ok()) return pending.status();
  for (const v1::PairStatus& pair : *pending) {
    if (pair.has_progress()) view.active.push_back(pair);
  }
  return absl::OkStatus();
}

// How long an error of this kind may last before it ends the command.
absl::Duration Patience(const absl::Status& fault) {
  switch (fault.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kAwayLimit;
    case absl::StatusCode::kNotFound:
      return kUnknownLimit;
    default:
      return absl::ZeroDuration();
  }
}

// Shows views the one way or the other. Not thread-safe.
class Presenter {
 public:
  explicit Presenter(const FollowOutput& output) : output_(output), live_(output.stream) {}

  void Show(const RunView& view) {
    if (output_.is_terminal) {
      const ScreenSize size = CurrentScreenSize();
      live_.Show(Render(view, absl::Now(), absl::LocalTimeZone(), size.width), size);
      return;
    }
    const std::string summary = output_.line ? output_.line(view) : SummaryLine(view);
    if (summary == last_) return;
    last_ = summary;
    if (!output_.line) {
      output_.stream << HumanTime(absl::Now(), absl::Now(), absl::LocalTimeZone()) << " ";
    }
    output_.stream << summary << "\n" << std::flush;
  }

 private:
  const FollowOutput& output_;
  LiveView live_;
  std::string last_;
};

}  // namespace

absl::StatusOr<RunView> FetchStatus(Client& client, const std::string& run) {
  v1::GetStatusRequest request;
  request.set_run(run);
  absl::StatusOr<v1::RunStatus> status = client.GetStatus(request);
  if (!status.ok()) return run.empty() ? OrNoRuns(status.status()) : status.status();
  RunView view = ViewOf(*std::move(status));
  const absl::Status added = AddPairs(client, view);
  if (!added.ok()) return added;
  return view;
}

absl::StatusOr<RunView> FetchRun(Client& client, const std::string& run) {
  const absl::StatusOr<v1::Run> truth = client.GetRun(run);
  if (!truth.ok()) return truth.status();
  RunView view = ViewOf(*truth);
  const absl::StatusOr<RunView> details = FetchStatus(client, run);
  if (details.ok()) {
    *view.status.mutable_plugins() = details->status.plugins();
    view.troubled = details->troubled;
    view.active = details->active;
  }
  return view;
}

absl::StatusOr<RunView> Follow(const std::function<absl::StatusOr<RunView>()>& fetch,
                               const FollowOutput& output) {
  Presenter presenter(output);
  std::optional<RunView> last;
  absl::Time answered = absl::Now();
  do {
    absl::StatusOr<RunView> view = fetch();
    if (Interrupted()) break;
    if (view.ok()) {
      answered = absl::Now();
      last = *std::move(view);
      presenter.Show(*last);
      if (IsFinal(last->status.state())) return *last;
      continue;
    }
    if (absl::Now() - answered >= Patience(view.status())) return view.status();
    if (last) {
      last->note = "no answer from the service: this is the last that was known";
      presenter.Show(*last);
    }
  } while (SleepUnlessInterrupted(kInterval));
  return absl::CancelledError("interrupted");
}

}  // namespace muster::cli
