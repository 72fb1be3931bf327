#include "cli/output/progress_bar.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "cli/output/format.h"
#include "services/common/base/strings.h"

namespace muster::cli {
namespace {

constexpr int kBarWidth = 24;
constexpr absl::Duration kRedraw = absl::Milliseconds(100);
constexpr absl::Duration kMinRateTime = absl::Seconds(1);  // a shorter time gives no reliable rate

}  // namespace

std::string Bar(int64_t done, int64_t total, int width) {
  const int64_t filled =
      total <= 0 ? 0
                 : static_cast<int64_t>(static_cast<double>(std::clamp<int64_t>(done, 0, total)) *
                                        width / static_cast<double>(total));
  return "[" + std::string(filled, '#') + std::string(width - filled, '-') + "]";
}

std::string ProgressLine(std::string_view label, int64_t done, int64_t total,
                         int64_t bytes_per_second, int width) {
  std::string line =
      absl::StrFormat("%s %s %3d%%  %s of %s", ToAbsl(label), Bar(done, total, kBarWidth),
                      Percent(done, total), HumanSize(done), HumanSize(total));
  if (bytes_per_second > 0) {
    absl::StrAppendFormat(&line, "  %s/s", HumanSize(bytes_per_second));
    if (done < total) {
      absl::StrAppendFormat(&line, "  %s left",
                            HumanDuration(absl::Seconds((total - done) / bytes_per_second)));
    }
  }
  return width > 0 ? Clip(line, width - 1) : line;
}

ProgressBar::ProgressBar(Console& console, std::string label, int64_t start, int64_t total,
                         const Clock& clock)
    : console_(console),
      label_(Printable(label)),
      start_(start),
      total_(total),
      clock_(clock),
      started_(clock.MonotonicNow()),
      done_(start) {}

ProgressBar::~ProgressBar() {
  if (!console_.err_is_terminal) return;
  Draw();
  console_.err << "\n" << std::flush;
}

void ProgressBar::Update(int64_t done) {
  done_ = done;
  if (!console_.err_is_terminal) return;
  if (clock_.MonotonicNow() - drawn_ >= kRedraw) Draw();
}

void ProgressBar::Draw() {
  drawn_ = clock_.MonotonicNow();
  const absl::Duration elapsed = drawn_ - started_;
  const int64_t rate = elapsed < kMinRateTime
                           ? 0
                           : static_cast<int64_t>(static_cast<double>(done_ - start_) /
                                                  absl::ToDoubleSeconds(elapsed));
  console_.err << "\r" << ProgressLine(label_, done_, total_, rate, console_.width) << "\x1b[K"
               << std::flush;
}

}  // namespace muster::cli
