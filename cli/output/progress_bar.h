// The progress of a transfer, on a terminal.
#ifndef MUSTER_CLI_OUTPUT_PROGRESS_BAR_H_
#define MUSTER_CLI_OUTPUT_PROGRESS_BAR_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "cli/output/console.h"
#include "services/common/base/clock.h"

namespace muster::cli {

// Returns `[######--------------]`: `width` characters between the brackets, rounded down.
std::string Bar(int64_t done, int64_t total, int width);

// Returns one line: label, bar, percent, bytes, rate and remaining time. If `bytes_per_second` is
// 0, the rate is unknown and omitted.
std::string ProgressLine(std::string_view label, int64_t done, int64_t total,
                         int64_t bytes_per_second, int width);

// Draws the line on stderr at most ten times a second. Draws nothing if stderr is not a terminal.
// Not thread-safe.
class ProgressBar {
 public:
  // A resumed transfer has `start` bytes of `total` at the beginning; they do not count for the
  // rate.
  ProgressBar(Console& console, std::string label, int64_t start, int64_t total,
              const Clock& clock = SystemClock());

  // Draws the last state and ends the line.
  ~ProgressBar();

  void Update(int64_t done);

 private:
  void Draw();

  Console& console_;
  const std::string label_;
  const int64_t start_;
  const int64_t total_;
  const Clock& clock_;
  const absl::Duration started_;
  int64_t done_;
  absl::Duration drawn_ = -absl::InfiniteDuration();
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_PROGRESS_BAR_H_
