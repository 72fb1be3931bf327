// The status service of a simulated world, which follows the feed of the aggregator.
#ifndef MUSTER_SERVICES_SIMULATION_STATUS_MACHINE_H_
#define MUSTER_SERVICES_SIMULATION_STATUS_MACHINE_H_

#include <cstdint>
#include <memory>
#include <optional>
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
  // Compares the board with the store of the aggregator.
  absl::Status Compare();

 private:
  struct Life {
    Life(FakeClock& clock, EndedRuns::Read read_pairs);

    WatchHub hub;
    VerdictLog verdicts;
    Board board;
    std::optional<ChangeSource::Cursor> cursor;
    std::string feed;
    bool in_snapshot = false;
  };
  struct Stream {
    std::shared_ptr<Connection> connection;
    std::unique_ptr<ChangeSource> source;  // null until the request has arrived
    int64_t last = 0;                      // cursor
  };

  void Connect();
  void Apply(Stream& stream, const v1::FollowChangesResponse& event);
  // The pairs of a run that has ended, in a separate call.
  absl::Status ReadPairs(const std::string& run, const EndedRuns::Add& add);
  absl::Status CheckRun(const std::string& run, bool compare);
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
