// The machine of the aggregator: one process after another on its disk.
#ifndef MUSTER_SERVICES_SIMULATION_AGGREGATOR_MACHINE_H_
#define MUSTER_SERVICES_SIMULATION_AGGREGATOR_MACHINE_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "services/aggregator/simulation/crash_history.h"
#include "services/aggregator/simulation/simulated_aggregator.h"
#include "services/aggregator/uploads/spooled_proof.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/simulated_disk.h"
#include "services/simulation/upload_server.h"

namespace muster::testing {

// Not thread-safe.
class AggregatorMachine final : public UploadServer {
 public:
  static constexpr char kName[] = "m";  // also the folder of its disk

  explicit AggregatorMachine(uint64_t seed) : UploadServer(kName), disk(int64_t{1} << 40, seed) {}
  ~AggregatorMachine() override { Stop(); }

  SimulatedDisk disk;
  FakeClock clock;
  CrashHistory history;
  bool faulty = false;  // the disk may fail in this life

  bool running() const override { return life_ != nullptr; }
  bool has_power() const override { return !disk.powered_off(); }
  SimulatedAggregator& life() { return *life_; }
  // The process has to end: power has failed, or the store stopped.
  bool failing() const { return disk.powered_off() || (running() && life_->failed()); }

  // Starts a process, and compares all that is stored with the history.
  absl::Status Start();
  // Ends the process; calls of the disk have no effect after PowerOff.
  void Stop();
  // SubmitResult of a relay that cannot deliver a spooled result, as ResultService.
  absl::Status Report(const v1::SubmitResultRequest& report, const Caller& relay);
  absl::Status Compare() { return history.Compare(life_->store(), life_->blobs(), faulty); }

 protected:
  void OpenUpload(const v1::OpenUploadRequest& request, const Caller& caller,
                  Opened opened) override;
  absl::StatusOr<std::shared_ptr<UploadSession>> FindSession(const std::string& id,
                                                             const Caller& caller) override;
  absl::StatusOr<UploadTicket> CountStream(const std::string& id, const Caller& caller) override;
  void EndSession(UploadSession& session) override;
  absl::StatusOr<v1::UploadResponse> Reply(const std::string& upload, const std::string& sent,
                                           const ResultRecord& result) override;
  void Settle() override { life_->Settle(); }
  absl::Status CheckOpened(const v1::OpenUploadRequest& request,
                           const v1::OpenUploadResponse& response) override;

 private:
  std::unique_ptr<SimulatedAggregator> life_;
  std::optional<SpooledProofs> proofs_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_SIMULATION_AGGREGATOR_MACHINE_H_
