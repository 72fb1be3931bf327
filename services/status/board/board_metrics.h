// The metrics of the board: runs by state, and pairs without an outcome by reason.
#ifndef MUSTER_SERVICES_STATUS_BOARD_BOARD_METRICS_H_
#define MUSTER_SERVICES_STATUS_BOARD_BOARD_METRICS_H_

#include <array>
#include <optional>

#include "muster/v1/runs.pb.h"
#include "muster/v1/status.pb.h"
#include "services/common/base/metrics.h"
#include "services/status/board/board.h"

namespace muster {

// muster_runs by state and muster_pending_pairs by reason. Every state and reason has a series
// from the start, so that an alert never refers to a missing one. Labels are the
// API's words, never a run, plugin or node. Thread-safe.
class BoardMetrics {
 public:
  explicit BoardMetrics(Metrics& metrics);

  void Update(const Board::Tally& tally) const;

 private:
  std::array<std::optional<Gauge>, v1::RunState_ARRAYSIZE> runs_;
  std::array<std::optional<Gauge>, v1::Reason_ARRAYSIZE> unfinished_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_BOARD_METRICS_H_
