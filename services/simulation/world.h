// A fleet in one process: aggregator, status service, relay and senders on simulated disks, clocks
// and network.
#ifndef MUSTER_SERVICES_SIMULATION_WORLD_H_
#define MUSTER_SERVICES_SIMULATION_WORLD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/store/sqlite/simulated_vfs.h"
#include "services/simulation/aggregator_machine.h"
#include "services/simulation/network.h"
#include "services/simulation/relay_machine.h"
#include "services/simulation/split_disk.h"
#include "services/simulation/status_machine.h"
#include "services/simulation/upload_client.h"

namespace muster::testing {

// The processes are the classes that production has behind its gRPC handlers. Nodes deliver results
// directly and through the relay. Meanwhile processes are killed, power is lost and disks fail at
// any call, connections are reset, machines are separated and clocks jump, in an order that follows
// the seed. Equal seeds do the same. Not thread-safe.
//
// The checks run after each start and in between. At the end, without faults, everything has to be
// delivered.
class World {
 public:
  // `crashes`: how many processes end before the last phase.
  World(uint64_t seed, int crashes);
  ~World();

  // Returns the first broken promise.
  absl::Status Run();

  // Ends of processes, by a kill or by the loss of power.
  int crashes() const { return crashes_; }
  // A line for each fault and each outcome.
  const std::string& log() const { return log_; }

 private:
  // A node's delivery of one result.
  struct Sender {
    ResultKey key;
    int64_t attempt = 1;
    std::string content;
    bool by_relay = false;
    bool done = false;
    int life = 0;  // of its process
    std::vector<std::shared_ptr<UploadClient>> clients;
  };

  // Runs one event, and what follows from it.
  void Advance();
  void RunUntil(const std::function<bool()>& condition);
  absl::Status Check();

  // Work of the fleet.
  void Every(absl::Duration period, const std::function<void()>& work);
  void CreateRun();
  void EndOneRun();
  void SealRuns();
  void CheckSealed(const std::string& id, const RunHistory& run);
  void AskForStatus();
  void AddSender(const ResultKey& key, int64_t attempt);
  void Deliver(Sender& sender);
  void HandleOutcome(Sender& sender, const absl::StatusOr<UploadClient::Receipt>& outcome);
  void DeliverLater(Sender& sender, absl::Duration delay);
  UploadClient::Upload UploadOf(const Sender& sender) const;

  // Faults.
  void Disturb();
  void ScheduleFaults(SimulatedDisk& disk, bool& faulty);
  void StartAggregator();
  void EndAggregator();
  void StartRelay();
  void EndRelay();
  void EndProcess(SimulatedDisk& disk, UploadServer& server, const char* name);
  void RestartStatus();
  void KillSender();

  // The last phase.
  absl::Status Settle();
  bool IsSettled();
  absl::Status CheckEnd();

  void Break(const absl::Status& broken);
  uint64_t Chance(uint64_t below) { return chance_() % below; }
  bool OneIn(uint64_t n) { return Chance(n) == 0; }
  absl::Duration Soon(int milliseconds) { return absl::Milliseconds(1 + Chance(milliseconds)); }
  void Log(std::string_view what, const absl::Status& outcome = absl::OkStatus());

  const uint64_t seed_;
  const int wanted_crashes_;
  std::mt19937_64 chance_;
  Network network_;
  AggregatorMachine aggregator_;
  SplitDisk disks_;
  std::unique_ptr<sqlite::SimulatedVfs> vfs_;
  RelayMachine relay_;
  StatusMachine status_;
  std::vector<std::unique_ptr<Sender>> senders_;
  int runs_ = 0;
  int crashes_ = 0;
  bool calm_ = false;      // the last phase
  bool relay_up_ = false;  // started, or ending
  absl::Status broken_;
  std::string log_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_SIMULATION_WORLD_H_
