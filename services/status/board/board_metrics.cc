#include "services/status/board/board_metrics.h"

namespace muster {

BoardMetrics::BoardMetrics(Metrics& metrics) {
  const auto runs = metrics.AddGauges("muster_runs", "Runs that the aggregator stores, by state.",
                                      {"state"}, v1::RunState_ARRAYSIZE);
  const auto unfinished = metrics.AddGauges("muster_pending_pairs",
                                            "Pairs without an outcome in active runs, by reason.",
                                            {"reason"}, v1::Reason_ARRAYSIZE);
  for (int i = 1; i < v1::RunState_ARRAYSIZE; ++i) {  // 0 stands for "not said"
    runs_[static_cast<size_t>(i)] = runs.With({v1::RunState_Name(static_cast<v1::RunState>(i))});
  }
  for (int i = 1; i < v1::Reason_ARRAYSIZE; ++i) {
    unfinished_[static_cast<size_t>(i)] =
        unfinished.With({v1::Reason_Name(static_cast<v1::Reason>(i))});
  }
}

void BoardMetrics::Update(const Board::Tally& tally) const {
  for (size_t i = 1; i < runs_.size(); ++i) runs_[i]->Set(static_cast<double>(tally.runs[i]));
  for (size_t i = 1; i < unfinished_.size(); ++i) {
    unfinished_[i]->Set(static_cast<double>(tally.unfinished[i]));
  }
}

}  // namespace muster
