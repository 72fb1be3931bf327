// The status service of a simulated world, which follows the feed of the aggregator.
#ifndef MUSTER_SERVICES_SIMULATION_STATUS_MACHINE_H_
#define MUSTER_SERVICES_SIMULATION_STATUS_MACHINE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "services/aggregator/changes/change_source.h"
#include "services/common/base/fake_clock.h"
#include "services/simulation/aggregator_machine.h"
#include "services/simulation/network.h"
#include "services/status/board/board.h"

namespace muster::testing {

// A board and the stream that fills it. Not thread-safe.
class StatusMachine {
 public:
  static constexpr char kName[] = "status";

  StatusMachine(Network& network, AggregatorMachine& aggregator);

  FakeClock clock;

  bool running() const { return life_ != nullptr; }
  void Start();
  void Stop();

  // Connects if there is no stream, and sends what the feed has. Returns the first broken promise.
  absl::Status Follow();
  // Removes the aggregator's end of the stream, because its process ends.
  void DropSource() { stream_.reset(); }

  // Returns whether the board has applied all changes of the feed.
  bool up_to_date() const;
  // Asks for a run with its pairs, as a client does, and checks the answer when it arrives.
  void Ask(const std::string& run) { Ask(run, Check::kAsked); }
  // Asks for all runs, and compares the answers with the store of the aggregator.
  void AskForAll();
  // Returns whether all questions are answered.
  bool answered() const { return life_->questions == 0; }

 private:
  // A separate call that reads the pairs of a run that has ended.
  struct PairRead {
    EndedRuns::Add add;
    EndedRuns::Done done;
  };
  struct Life {
    Life(FakeClock& clock, EndedRuns::Read read_pairs);

    WatchHub hub;
    VerdictLog verdicts;
    Board board;
    std::optional<ChangeSource::Cursor> cursor;
    std::string feed;
    bool in_snapshot = false;
    std::set<std::shared_ptr<PairRead>> reads;
    int questions = 0;  // without an answer
  };
  struct Stream {
    std::shared_ptr<Connection> connection;
    std::unique_ptr<ChangeSource> source;  // null until the request has arrived
    int64_t last = 0;                      // cursor
  };

  void Connect();
  void Apply(Stream& stream, const v1::FollowChangesResponse& event);
  // kFollowed: the board may know only the counts of a run that has ended. kAsked: it has all of
  // its pairs, or returns an error. kExact: the board is up to date.
  enum class Check { kFollowed, kAsked, kExact };

  void ReadPairs(const std::string& run, const EndedRuns::Add& add, const EndedRuns::Done& done);
  void SendPairs(const std::string& run, const std::shared_ptr<Connection>& connection,
                 const std::weak_ptr<PairRead>& read, const EndedRuns::Done& finish);
  void Ask(const std::string& run, Check check);
  void AskLater(const std::string& run, Check check);  // in the last phase: without restarts
  absl::Status CheckRun(const std::string& id,
                        const absl::StatusOr<std::shared_ptr<RunBoard>>& found, Check check);
  absl::Status CompareRun(const std::string& id, const v1::RunStatus& status, bool shown);
  void Break(const absl::Status& broken) {
    if (broken_.ok()) broken_ = broken;
  }

  Network& network_;
  AggregatorMachine& aggregator_;
  std::unique_ptr<Life> life_;
  std::shared_ptr<Stream> stream_;
  absl::Status broken_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_SIMULATION_STATUS_MACHINE_H_
