#include "services/agent/decline_redelivery.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/v1/results.grpc.pb.h"
#include "services/client/sender_identity.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/utf8.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/status.h"
#include "services/common/rpc/stoppable_context.h"

namespace muster {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(20);
constexpr size_t kMaxReason = 256;  // results.proto

}  // namespace

absl::Status DeclineRedelivery(const client::Config& config, const absl::Status& why,
                               const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const auto identity, client::SenderIdentity::Load(
                                            config.client_cert, config.client_key, absl::Now()));
  const auto credentials =
      MakeChannelCredentials(ChannelIdentity{identity.identity().fleet, config.fleet_ca_cert,
                                             config.client_cert, config.client_key},
                             {ServiceRole::kAggregator, ServiceRole::kRelay});
  const auto stub = v1::ResultService::NewStub(MakeChannel(config.grpc_targets[0], credentials));
  v1::DeclineRedeliveryRequest request;
  request.mutable_key()->set_run(config.run);
  request.mutable_key()->set_plugin(config.plugin);
  request.mutable_key()->set_node(config.node);
  request.set_reason(std::string(
      CutUtf8(CleanUtf8(absl::StrCat(ReasonOf(why), ": ", why.message())), kMaxReason)));
  StoppableContext context(stop, kLimit);
  v1::DeclineRedeliveryResponse response;
  return FromGrpc(stub->DeclineRedelivery(context.get(), request, &response));
}

}  // namespace muster
