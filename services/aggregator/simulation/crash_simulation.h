// Several lives of an aggregator on one simulated disk, with faults and crashes at any call.
#ifndef MUSTER_SERVICES_AGGREGATOR_SIMULATION_CRASH_SIMULATION_H_
#define MUSTER_SERVICES_AGGREGATOR_SIMULATION_CRASH_SIMULATION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "services/aggregator/simulation/crash_history.h"
#include "services/aggregator/simulation/journal_history.h"
#include "services/aggregator/simulation/simulated_aggregator.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/simulated_disk.h"
#include "services/common/store/sqlite/simulated_vfs.h"

namespace muster::testing {

// Senders, operators and the sweeps work in an order that follows the seed, until the disk fails,
// power fails or the process is killed, at any call and also in a start. After each start, and at
// the end on a disk without faults, everything that was acknowledged is compared with what is
// stored. Equal seeds do the same.
class CrashSimulation {
 public:
  explicit CrashSimulation(uint64_t seed);

  // Returns the first broken promise.
  absl::Status Run();

  // A line for each step, with the number of calls of the disk before it.
  const std::string& log() const { return log_; }

 private:
  // The sender of a pair, which forgets its connection when the aggregator ends.
  struct Sender {
    int attempt = 1;
    std::shared_ptr<UploadSession> session;  // null: not open
    std::string id;
    UploadAttachment attachment;
    bool attached = false;
    int64_t epoch = 0;
    int64_t offset = 0;
  };
  struct Pair {
    std::string run;
    std::string node;
    auto operator<=>(const Pair&) const = default;
  };

  absl::Status Live();
  absl::Status LastLife();
  absl::Status Step();
  absl::Status CreateRun();
  absl::Status CancelRun();
  absl::Status DeleteRun();
  absl::Status TimeOutRun();
  absl::Status SealRuns();
  absl::Status Deliver(const Pair& pair, bool whole);
  absl::Status OpenUpload(const Pair& pair, const std::string& content);
  absl::Status CompleteUpload(const Pair& pair, const std::string& content);
  absl::Status CommitDirectly(const Pair& pair);
  absl::Status Verify();
  absl::Status SweepBlobs();
  absl::Status CheckDisk();
  void End(bool clean);
  void ScheduleFaults();
  std::string ContentOf(const Pair& pair, int attempt) const;
  PairHistory& HistoryOf(const Pair& pair) { return history_.runs[pair.run].pairs[pair.node]; }
  uint64_t Chance(uint64_t below) { return chance_() % below; }
  bool OneIn(uint64_t n) { return Chance(n) == 0; }
  void Log(std::string_view step, const absl::Status& outcome = absl::OkStatus());

  const uint64_t seed_;
  std::mt19937_64 chance_;
  SimulatedDisk disk_;
  sqlite::SimulatedVfs vfs_;
  FakeClock clock_{absl::FromUnixSeconds(1'000)};
  CrashHistory history_;
  JournalHistory journal_;
  std::unique_ptr<SimulatedAggregator> life_;
  std::map<Pair, Sender> senders_;
  std::map<Pair, int> attempts_;  // the newest ones that were opened
  int runs_ = 0;
  bool faulty_ = false;  // in this life
  std::string log_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_AGGREGATOR_SIMULATION_CRASH_SIMULATION_H_
