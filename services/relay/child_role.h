#ifndef MUSTER_SERVICES_RELAY_CHILD_ROLE_H_
#define MUSTER_SERVICES_RELAY_CHILD_ROLE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "services/relay/relay_role.h"
#include "services/relay/upstream/parent_link.h"

namespace muster {

// The role of a relay that is attached to a parent.
class ChildRole final : public RelayRole {
 public:
  // Begins to attach to one of `parents`. `handle_shares` receives the parent's messages about
  // shared files until Disconnect, and must not block. NO_RELAY_IDENTITY without command-ca.pem
  // from the join, which verifies the lists of revoked signers.
  static absl::StatusOr<std::unique_ptr<ChildRole>> Start(const RoleParts& parts,
                                                          std::vector<HostPort> parents,
                                                          ParentLink::HandleShares handle_shares);

  Upstream& upstream() override { return *link_; }
  RecordSink& records() override { return *link_; }
  absl::Status Ready() const override { return absl::OkStatus(); }
  void OnReachable(const std::vector<std::string>&) override {}
  void OnRelayChanged(const std::string&, bool) override {}
  void Tick() override { link_->Tick(); }
  void Disconnect() override { link_.reset(); }
  JobBoard* job_board() override { return nullptr; }
  std::shared_ptr<grpc::Channel> aggregator() const override { return nullptr; }
  std::optional<Certificate> command_ca() const override { return std::nullopt; }
  std::shared_ptr<grpc::Channel> parent() override {
    return link_ == nullptr ? nullptr : link_->Results();
  }

 private:
  explicit ChildRole(std::unique_ptr<ParentLink> link) : link_(std::move(link)) {}

  std::unique_ptr<ParentLink> link_;  // null after Disconnect
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_CHILD_ROLE_H_
