#include "services/client/progress_reporter.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "muster/v1/status.grpc.pb.h"
#include "services/client/progress_message.h"
#include "services/client/status_channels.h"
#include "services/common/rpc/status.h"

namespace muster::client {
namespace {

constexpr std::chrono::seconds kLimit{10};

}  // namespace

ProgressReporter::ProgressReporter(std::shared_ptr<const StatusChannels> channels)
    : channels_(std::move(channels)) {}

absl::Status ProgressReporter::Report(const Config& config, const Progress& progress) {
  v1::ReportProgressRequest request;
  request.mutable_key()->set_run(config.run);
  request.mutable_key()->set_plugin(config.plugin);
  request.mutable_key()->set_node(config.node);
  ToMessage(progress, &request);
  grpc::Status status;
  for (const auto& channel : channels_->all) {
    const auto stub = v1::StatusService::NewStub(channel->Get());
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLimit);
    v1::ReportProgressResponse response;
    status = stub->ReportProgress(&context, request, &response);
    channel->RenewIfBroken();
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE) break;
  }
  return FromGrpc(status);
}

std::string ProgressJson(const Progress& progress) {
  nlohmann::json json = {{"msg", progress.message},
                         {"total", progress.total},
                         {"completed", progress.completed},
                         {"failures", progress.failures},
                         {"errors", progress.errors}};
  if (progress.append_totals || progress.append_completed > 0 || !progress.append_failing.empty()) {
    json["appendtotals"] = progress.append_totals;
    json["appendcompleted"] = progress.append_completed;
    json["appendfailing"] = progress.append_failing;
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace muster::client
