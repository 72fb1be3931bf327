// A board on a fake clock, with events as from the change feed and heartbeats.
#ifndef MUSTER_SERVICES_STATUS_BOARD_BOARD_FIXTURE_H_
#define MUSTER_SERVICES_STATUS_BOARD_BOARD_FIXTURE_H_

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"
#include "services/status/board/board.h"

namespace muster::testing {

inline constexpr char kRun[] = "0123456789abcdef";

class BoardFixture : public ::testing::Test {
 protected:
  using Event = v1::FollowChangesResponse;

  BoardFixture();

  void Begin();
  void End();
  // A run whose plan is "facts" and whatever SetPair adds.
  v1::Run MakeRun(const std::string& id = kRun, v1::RunState state = v1::RUN_STATE_RUNNING);
  void SetRun(const v1::Run& run);
  void DeleteRun(const std::string& id = kRun);
  void SetPair(const std::string& node, v1::Outcome outcome = v1::OUTCOME_PENDING,
               int64_t generation = 0, const std::string& plugin = "facts",
               const std::string& run = kRun);
  // A snapshot of one run with pending pairs of "facts" for these nodes.
  void Start(const std::vector<std::string>& nodes);
  void Start(const v1::Run& run, const std::vector<std::string>& nodes);

  static v1::ResultKey Key(const std::string& node, const std::string& plugin = "facts",
                           const std::string& run = kRun);
  std::shared_ptr<Sender> Online(const std::string& node);
  // Its silence begins now.
  void Silence(const std::shared_ptr<Sender>& sender, v1::Presence presence, Evidence evidence);
  void Return(const std::shared_ptr<Sender>& sender);
  absl::Status SendHeartbeat(const std::shared_ptr<Sender>& sender,
                             v1::Phase phase = v1::PHASE_WORKING, const std::string& message = "",
                             const std::string& plugin = "facts");
  absl::Status Report(const std::string& node, int64_t total, int64_t completed);
  void Pass(absl::Duration time);  // with a tick for each second

  absl::Status Ask(const StatusQuery& query, v1::RunStatus* status);
  v1::RunStatus Get(int page_size = 100, const std::string& token = "");
  v1::PairStatus Pair(const std::string& node);
  std::string ReasonOfPair(const std::string& node);

  FakeClock clock_;
  WatchHub hub_{clock_, clock_};
  VerdictLog verdicts_;
  std::string doubt_;
  std::vector<const RelayState*> lost_relays_;
  std::vector<std::pair<std::string, v1::NodeEvent>> events_;
  std::vector<std::string> gone_;
  std::set<std::string> known_;    // the runs of the first snapshot
  std::vector<std::string> done_;  // nodes
  struct PairsRead {
    std::string run;
    EndedRuns::Add add;
    EndedRuns::Done done;
  };
  std::vector<PairsRead> reads_;       // that the board has asked for
  std::vector<std::string> restored_;  // runs
  Board board_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_STATUS_BOARD_BOARD_FIXTURE_H_
