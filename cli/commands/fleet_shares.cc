#include "cli/commands/fleet_shares.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/rpc/job_client.h"
#include "cli/rpc/operator_channel.h"
#include "services/common/base/status_macros.h"
#include "services/common/identity/identity.h"
#include "services/common/shares/share_transfer.h"

namespace muster::cli {
namespace {

constexpr int kPage = 1'000;

}  // namespace

struct FleetShares::State {
  explicit State(const OperatorContext& context)
      : jobs(context),
        subject(absl::StrCat("the relay at ", absl::StrJoin(context.relay_targets, ", "))),
        transfer(MakeOperatorChannel(context, context.relay_targets, ServiceRole::kRelay), stopper),
        hook([this] { stopper.Stop(); }) {}

  JobClient jobs;
  const std::string subject;
  CallStopper stopper;
  ShareTransfer transfer;
  const InterruptHook hook;
};

FleetShares::FleetShares(const OperatorContext& context)
    : state_(std::make_unique<State>(context)) {}
FleetShares::~FleetShares() = default;

absl::StatusOr<std::vector<std::string>> FleetShares::ListRelays() {
  std::vector<std::string> relays;
  v1::ListAttachedRequest request;
  do {
    ASSIGN_OR_RETURN(const auto page, state_->jobs.ListAttached(request));
    for (const auto& child : page.children()) {
      if (child.is_relay()) relays.push_back(child.name());
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return relays;
}

absl::StatusOr<FleetShares::RelayShares> FleetShares::List(const std::string& relay) {
  RelayShares listed;
  v1::ListSharesRequest request;
  request.set_relay(relay);
  request.set_page_size(kPage);
  const absl::Status status = state_->transfer.ListAll(request, [&](v1::ListSharesResponse page) {
    listed.usage = std::move(*page.mutable_usage());
    listed.shares.insert(listed.shares.end(),
                         std::make_move_iterator(page.mutable_shares()->begin()),
                         std::make_move_iterator(page.mutable_shares()->end()));
  });
  if (!status.ok()) return FromService(status, state_->subject);
  return listed;
}

absl::StatusOr<v1::Share> FleetShares::Get(const v1::ShareKey& key, const std::string& relay) {
  auto share = state_->transfer.Get(key, relay);
  if (!share.ok()) return FromService(share.status(), state_->subject);
  return share;
}

absl::Status FleetShares::Remove(const v1::ShareKey& key, const std::string& relay) {
  const absl::Status removed = state_->transfer.Remove(key, relay);
  return removed.ok() ? removed : FromService(removed, state_->subject);
}

}  // namespace muster::cli
