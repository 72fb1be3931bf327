// How far a transfer is, on a terminal.
#ifndef MUSTER_CLI_OUTPUT_PROGRESS_BAR_H_
#define MUSTER_CLI_OUTPUT_PROGRESS_BAR_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "cli/output/console.h"
#include "services/common/base/clock.h"

namespace muster::cli {

// `[######--------------]`: `width` characters between the brackets, rounded down.
std::string Bar(int64_t done, int64_t total, int width);

// One line: label, bar, percent, bytes, rate and the time left. `bytes_per_second` of 0: unknown
// yet, not shown.
std::string ProgressLine(std::string_view label, int64_t done, int64_t total,
                         int64_t bytes_per_second, int width);

// Draws the line on stderr if that is a terminal, at most ten times a second; elsewhere it is
// silent. Shows what was done, never what is hoped for. Not thread-safe.
class ProgressBar {
 public:
  // `start` bytes of `total` were there before (a resumed transfer): they do not count for the
  // rate.
  ProgressBar(Console& console, std::string label, int64_t start, int64_t total,
              const Clock& clock = SystemClock());

  // Leaves the last state of the line standing.
  ~ProgressBar();

  void Update(int64_t done);

 private:
  void Draw();

  Console& console_;
  const std::string label_;
  const int64_t start_;
  const int64_t total_;
  const Clock& clock_;
  const absl::Duration begun_;
  int64_t done_;
  absl::Duration drawn_ = -absl::InfiniteDuration();
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_PROGRESS_BAR_H_
