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

constexpr absl::Duration kInterval = absl::Seconds(1);
constexpr absl::Duration kUnreachableLimit = absl::Minutes(5);
constexpr absl::Duration kUnknownLimit =
    absl::Seconds(10);  // the feed may not contain a new run yet

// Returns how long errors of this kind are retried.
absl::Duration RetryLimit(const absl::Status& fault) {
  switch (fault.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kUnreachableLimit;
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
    if (absl::Now() - answered >= RetryLimit(view.status())) return view.status();
    if (last) {
      last->note = "the service does not answer: this is the last known state";
      presenter.Show(*last);
    }
  } while (SleepUnlessInterrupted(kInterval));
  return absl::CancelledError("interrupted");
}

}  // namespace muster::cli
