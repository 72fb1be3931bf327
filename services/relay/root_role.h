#ifndef MUSTER_SERVICES_RELAY_ROOT_ROLE_H_
#define MUSTER_SERVICES_RELAY_ROOT_ROLE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/base/executor.h"
#include "services/common/rpc/service_channel.h"
#include "services/relay/job_audit.h"
#include "services/relay/relay_role.h"
#include "services/relay/runs/redelivery_requests.h"
#include "services/relay/runs/run_offers.h"
#include "services/relay/upstream/root_upstream.h"

namespace muster {

// The role of the root relay. Commands of jobs are held until the aggregator has sent the command
// revocations.
class RootRole final : public RelayRole {
 public:
  // Reads the jobs of the state folder and connects to the other services.
  static absl::StatusOr<std::unique_ptr<RelayRole>> Start(const RoleParts& parts);

  Upstream& upstream() override { return *upstream_; }
  RecordSink& records() override { return *board_; }
  absl::Status Ready() const override;
  void OnReachable(const std::vector<std::string>& names) override;
  void OnRelayChanged(const std::string& relay, bool attached) override {
    board_->OnRelayChanged(relay, attached);
  }
  void Tick() override { redeliveries_.Tick(); }
  void Disconnect() override {}
  JobBoard* job_board() override { return board_.get(); }
  std::shared_ptr<grpc::Channel> aggregator() const override { return aggregator_.Get(); }
  std::optional<Certificate> command_ca() const override { return upstream_->command_ca(); }
  size_t redelivery_requests() const override { return redeliveries_.count(); }
  std::shared_ptr<grpc::Channel> parent() override { return nullptr; }

 private:
  explicit RootRole(const RoleParts& parts);

  RunOffers offers_;
  RedeliveryRequests redeliveries_;
  ServiceChannel aggregator_;
  ServiceChannel status_;
  ServiceChannel jobs_;
  // Both wait for the disk.
  Executor job_writer_{{.name = "job-writer", .threads = 1}};
  Executor late_jobs_{{.name = "late-jobs", .threads = 1}};
  std::unique_ptr<JobBoard> board_;
  std::unique_ptr<JobAudit> audit_;  // uses the board
  std::unique_ptr<RootUpstream> upstream_;
  std::shared_ptr<void> upstream_watch_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_ROOT_ROLE_H_
