// The machine of a relay: one process after another on its disk, with a spool and its drain.
#ifndef MUSTER_SERVICES_SIMULATION_RELAY_MACHINE_H_
#define MUSTER_SERVICES_SIMULATION_RELAY_MACHINE_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/metrics.h"
#include "services/common/base/simulated_disk.h"
#include "services/relay/proxy/spool_drain.h"
#include "services/relay/spool/spool.h"
#include "services/simulation/aggregator_machine.h"
#include "services/simulation/network.h"
#include "services/simulation/upload_server.h"

namespace muster::testing {

// Not thread-safe.
class RelayMachine final : public UploadServer, private ResultSender {
 public:
  static constexpr char kName[] = "relay";  // also the folder of its disk
  // Runs events of the world until the condition holds.
  using RunUntil = std::function<void(const std::function<bool()>& condition)>;

  RelayMachine(uint64_t seed, Network& network, AggregatorMachine& aggregator, RunUntil run_until);
  ~RelayMachine() override;

  SimulatedDisk disk;
  FakeClock clock;
  bool faulty = false;  // the disk may fail in this life

  bool running() const override { return spool_ != nullptr && !ending_; }
  bool has_power() const override { return !disk.powered_off(); }
  absl::Status Start(FileOps& all_disks);
  // From now on the process does nothing more. Stop follows when it is not `delivering`.
  void BeginStop();
  bool delivering() const { return delivering_; }
  void Stop();

  // Tells the relay whether it has a connection upstream.
  void SetConnected(bool connected);
  // Delivers one result, as a lane of the drain.
  void Deliver();
  void Sweep();

  // Between two processes: the disk loses the bytes of the results that the relay promised to
  // deliver.
  void LoseBytes();
  bool HasLost(const ResultKey& key) const;
  // Excludes the pair from LoseBytes: no node has its result any more.
  void Keep(const ResultKey& key) { kept_.insert(key); }

  int64_t waiting() const { return spool_->waiting(); }

  // Checks that each result that the relay promised to deliver is in the spool, or that the
  // aggregator has answered its delivery, or the report of LoseBytes, for good.
  absl::Status CheckPromises();

 protected:
  void OpenUpload(const v1::OpenUploadRequest& request, const Caller& caller,
                  Opened opened) override;
  UploadServer& ServerOf(const std::string& upload) override;
  Caller CallerOf(const std::string& upload, const Caller& caller) override;
  absl::StatusOr<std::shared_ptr<UploadSession>> FindSession(const std::string& id,
                                                             const Caller& caller) override;
  absl::StatusOr<UploadTicket> CountStream(const std::string& id, const Caller& caller) override {
    return UploadTicket();
  }
  bool IsComplete(const std::string& upload) const override;
  void EndSession(UploadSession& session) override {}
  absl::StatusOr<v1::UploadResponse> Reply(const std::string& upload, const std::string& sent,
                                           const ResultRecord& result) override;
  void Settle() override { work_->AwaitIdle(); }
  absl::Status CheckOpened(const v1::OpenUploadRequest& request,
                           const v1::OpenUploadResponse& response) override;

 private:
  class KnownUpstream;

  void Discard(const v1::ResultDescription& description);
  void OpenUpstream(const v1::OpenUploadRequest& request, const Caller& caller, Opened opened);
  absl::Status Deliver(const SpoolDelivery& delivery, const std::stop_token& stop) override;
  absl::Status ReportExpired(const SpoolDelivery& delivery, const std::stop_token& stop) override;
  absl::Status NoteAnswer(const std::string& id, const absl::Status& answer);
  bool IsAnswered(const std::string& id, const ResultKey& key) const;

  Network& network_;
  AggregatorMachine& aggregator_;
  const RunUntil run_until_;
  std::mt19937_64 chance_;
  std::unique_ptr<KnownUpstream> upstream_;
  bool ending_ = false;
  bool delivering_ = false;
  std::map<std::string, ResultKey> promises_;  // by id of the spool
  // By id of the spool: the key and the attempt of its uploads.
  std::map<std::string, std::pair<ResultKey, int64_t>> opened_;
  std::map<std::string, ResultKey> lost_;  // by id of the spool: results whose bytes the disk lost
  std::set<ResultKey> kept_;
  // The last answers of the aggregator to the deliveries and reports, by id of the spool.
  std::map<std::string, absl::Status> answers_;

  // The process of one life.
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<Executor> work_;
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<SpoolDrain> drain_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_SIMULATION_RELAY_MACHINE_H_
