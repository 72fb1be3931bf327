#include "cli/output/follow.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/format.h"
#include "cli/output/json_view.h"
#include "cli/output/live_view.h"

namespace muster::cli {
namespace {

constexpr absl::Duration kUnknownLimit =
    absl::Seconds(10);  // the feed may not contain a new run yet

// Returns how long errors of this kind are retried.
absl::Duration RetryLimit(const absl::Status& fault, const FollowOutput& output) {
  switch (fault.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return output.unreachable_limit;
    case absl::StatusCode::kNotFound:
      return kUnknownLimit;
    default:
      return absl::ZeroDuration();
  }
}

// Prints views to a terminal or to a log. Not thread-safe.
class Presenter {
 public:
  explicit Presenter(const FollowOutput& output) : output_(output), live_(output.stream) {}

  void Show(const RunView& view) {
    if (output_.is_terminal) {
      const ScreenSize size = CurrentScreenSize();
      const std::string text = Render(view, absl::Now(), size.width, output_.color);
      HasEnded(view.status.state()) ? live_.ShowLast(text, size) : live_.Show(text, size);
      drawn_ = true;
      return;
    }
    const std::string summary = output_.line ? output_.line(view) : SummaryLine(view);
    if (summary == last_) return;
    last_ = summary;
    output_.stream << (output_.line ? "" : TimeOf(view)) << summary << "\n" << std::flush;
  }

  // Reports an error that is retried until `until`: once, until Recovered is called.
  void ShowRetry(const absl::Status& fault, absl::Time until, std::optional<RunView>& last) {
    const std::string limit = HumanTime(until, absl::Now());
    if (!retrying_ && !drawn_) {
      const std::string subject = SubjectOf(fault);
      output_.messages << Printable(std::string(fault.message()))
                       << (subject.empty() ? "" : absl::StrCat(" (", Printable(subject), ")"))
                       << "; trying again until " << limit << "\n"
                       << std::flush;
      printed_ = true;
    }
    retrying_ = true;
    if (!last || !output_.is_terminal) return;
    last->note = absl::StrCat(
        "the service does not answer: this is the last known state; trying "
        "again until ",
        limit);
    Show(*last);
  }

  void Recovered() {
    if (printed_) output_.messages << "The service answers again.\n" << std::flush;
    retrying_ = printed_ = false;
  }

 private:
  // Returns the time before a line: the end of a run that has ended, else now.
  static std::string TimeOf(const RunView& view) {
    const absl::Time now = absl::Now();
    if (!HasEnded(view.status.state())) return absl::StrCat(HumanTime(now, now), " ");
    if (!view.status.has_end_time()) return "";
    return absl::StrCat(HumanTime(FromProto(view.status.end_time()), now), " ");
  }

  const FollowOutput& output_;
  LiveView live_;
  std::string last_;
  bool drawn_ = false;     // the live view is on the terminal
  bool retrying_ = false;  // since the last answer
  bool printed_ = false;   // a message about it
};

}  // namespace

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
      presenter.Recovered();
      presenter.Show(*last);
      if (HasEnded(last->status.state())) return *last;
      continue;
    }
    const absl::Time until = answered + RetryLimit(view.status(), output);
    if (absl::Now() >= until) return view.status();
    presenter.ShowRetry(view.status(), until, last);
  } while (SleepUnlessInterrupted(output.interval));
  return absl::CancelledError("interrupted");
}

}  // namespace muster::cli
