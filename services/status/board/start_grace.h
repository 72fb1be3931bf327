// The start grace of a run: the time within which an agent of its plan has to report.
#ifndef MUSTER_SERVICES_STATUS_BOARD_START_GRACE_H_
#define MUSTER_SERVICES_STATUS_BOARD_START_GRACE_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "services/status/board/pair_table.h"
#include "services/status/board/verdict_log.h"

namespace muster {

// Invariant: the verdict on the run stands at most while the run is planned. Times are monotonic.
// Not thread-safe.
class StartGrace {
 public:
  // `known_since`: when this service learned of the run. `verdicts` outlives this object.
  StartGrace(std::string run, absl::Duration known_since, VerdictLog& verdicts)
      : run_(std::move(run)), known_since_(known_since), verdicts_(verdicts) {}

  // `planned`: nothing was delivered yet. `grace`: zero if no agent has to report.
  void SetRun(bool planned, absl::Duration grace);

  // An agent of the plan that can work has reported. Returns whether it is the first.
  bool MarkReported() { return !std::exchange(reported_, true); }
  bool reported() const { return reported_; }

  // Returns until when an agent has to report; nothing if none has to. `ready_since`: since when
  // this service accepts heartbeats.
  std::optional<absl::Duration> ReportBy(absl::Duration ready_since) const;

  // Returns whether the grace has expired and there is no verdict yet.
  bool IsOver(absl::Duration now, absl::Duration ready_since) const;

  // Adds the verdict.
  void Expire(const std::string& reason);

  // Withdraws the verdict if there is one.
  void Withdraw();

 private:
  const std::string run_;
  const absl::Duration known_since_;
  VerdictLog& verdicts_;
  bool planned_ = false;
  absl::Duration grace_;
  bool reported_ = false;
  bool expired_ = false;  // the verdict stands
};

// Returns whether a sender of these pairs is online and has found no fault: it may yet report.
bool AnySenderWaits(const PairTable& pairs);

// "n1: CONNECTION: 10.0.0.1:8443: connection refused; n2: no heartbeat received; and others": the
// faults of the nodes that cannot report, at most 100 nodes.
std::string WhyNotReported(const PairTable& pairs);

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_START_GRACE_H_
