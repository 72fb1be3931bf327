#include "services/client/progress_reporter.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "muster/v1/status.grpc.pb.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/status.h"

namespace muster::client {
namespace {

constexpr std::chrono::seconds kLimit{10};

}  // namespace

struct ProgressReporter::Stubs {
  std::vector<std::unique_ptr<v1::StatusService::Stub>> all;
};

ProgressReporter::ProgressReporter(const std::vector<std::string>& targets,
                                   const std::string& fleet_ca_pem,
                                   const std::string& client_key_pem,
                                   const SenderIdentity& identity)
    : stubs_(std::make_unique<Stubs>()) {
  const ChannelIdentity us{identity.identity().fleet, fleet_ca_pem, identity.chain_pem(),
                           client_key_pem};
  const auto credentials = MakeChannelCredentials(us, {ServiceRole::kStatus, ServiceRole::kRelay});
  for (const std::string& target : targets) {
    stubs_->all.push_back(v1::StatusService::NewStub(MakeChannel(target, credentials)));
  }
}

ProgressReporter::~ProgressReporter() = default;

absl::Status ProgressReporter::Report(const Config& config, const Progress& progress) {
  v1::ReportProgressRequest request;
  request.mutable_key()->set_run(config.run);
  request.mutable_key()->set_plugin(config.plugin);
  request.mutable_key()->set_node(config.node);
  request.set_message(progress.message);
  request.set_total(progress.total);
  request.set_completed(progress.completed);
  for (const auto& name : progress.failures) request.add_failures(name);
  for (const auto& text : progress.errors) request.add_errors(text);
  request.set_append_totals(progress.append_totals);
  request.set_append_completed(progress.append_completed);
  for (const auto& name : progress.append_failing) request.add_append_failing(name);
  grpc::Status status;
  for (const auto& stub : stubs_->all) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLimit);
    v1::ReportProgressResponse response;
    status = stub->ReportProgress(&context, request, &response);
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
