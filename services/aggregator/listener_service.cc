#include "services/aggregator/listener_service.h"

#include <utility>

#include "services/aggregator/convert.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/caller_uri.h"
#include "services/common/identity/run_host.h"

namespace muster {
namespace {

constexpr size_t kMaxFault = 1024;

absl::Status Allowed(Call& call, const std::string& run) {
  RETURN_IF_ERROR(CheckRunId(run));
  return call.Authorize(Resource::Listener(run));
}

// Returns the gateway's report of a listener. Fails with INVALID_ARGUMENT if it exceeds the limits
// of the API.
template <typename Request>
absl::StatusOr<ListenerRecord> Reported(const Request& request) {
  if (request.port() < 0 || request.port() > 65535) return errors::InvalidPort(request.port());
  if (request.fault().size() > kMaxFault) return errors::TextTooLong("fault", kMaxFault);
  ListenerRecord listener;
  listener.port = request.port();
  listener.open = request.open();
  listener.fault = request.fault();
  return listener;
}

// Adds the ports of live runs: after a restart of the gateway a run may not have opened its port
// again when another one chooses.
absl::Status AddTakenPorts(StateStore& store, google::protobuf::RepeatedField<int32_t>* ports) {
  ASSIGN_OR_RETURN(const auto live, store.LiveRuns());
  for (const RunView& view : live) {
    if (view.run.listener.port != 0) ports->Add(view.run.listener.port);
    const auto& status = view.run.status_listener;
    if (status && status->port != 0) ports->Add(status->port);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ListenerService::Sign(Call& call, const v1::SignListenerCertificateRequest& request,
                                   v1::SignListenerCertificateResponse* response) {
  RETURN_IF_ERROR(Allowed(call, request.run()));
  ASSIGN_OR_RETURN(const auto run, runs_.Get(request.run()));
  ASSIGN_OR_RETURN(
      const auto signed_certificate,
      authorities_.SignForRun(RunListenerIdentity{request.run()}, run, request.csr_pem(),
                              run.listener.hosts, UriOf(call.caller())));
  ASSIGN_OR_RETURN(const auto authority, store_.GetAuthority(request.run()));
  if (!authority) return errors::RunEnded(request.run());
  response->set_certificate_pem(signed_certificate.leaf_pem);
  response->set_run_ca_pem(authority->self_signed_pem);
  response->set_port(run.listener.port);
  if (const auto& hosts = run.listener.hosts; hosts.size() == 1) {
    if (IsHostOfRun(hosts[0], request.run())) response->set_server_name(hosts[0]);
  }
  if (run.listener.port != 0 || !response->server_name().empty()) return absl::OkStatus();
  return AddTakenPorts(store_, response->mutable_taken_ports());
}

absl::Status ListenerService::Report(Call& call, const v1::ReportListenerRequest& request,
                                     v1::Run* response) {
  RETURN_IF_ERROR(Allowed(call, request.run()));
  ASSIGN_OR_RETURN(auto listener, Reported(request));
  muster::ReportListener command;
  command.run = request.run();
  command.listener = std::move(listener);
  command.at = absl::ToUnixMicros(clock_.Now());
  ASSIGN_OR_RETURN(const auto outcome, store_.ApplyAndWait(std::move(command)));
  if (!outcome.found) return errors::RunNotFound(request.run());
  if (request.port() != 0 && outcome.listener.port != request.port()) {
    return errors::PortIsFixed(request.run(), outcome.listener.port);
  }
  const auto run = runs_.Get(request.run());
  if (run.ok()) *response = ToProto(*run);
  return run.status();
}

absl::Status ListenerService::Release(Call& call, const v1::ReleaseListenerRequest& request) {
  RETURN_IF_ERROR(Allowed(call, request.run()));
  ASSIGN_OR_RETURN(const auto run, runs_.Get(request.run()));
  if (!IsFinal(run.state)) return errors::RunNotEnded(request.run());
  ASSIGN_OR_RETURN(const auto wiped, store_.ApplyAndWait(WipeAuthority{
                                         request.run(), absl::ToUnixMicros(clock_.Now())}));
  if (wiped.changed) {
    Log(LogLevel::kInfo, "the run CA was deleted early: a new run needs the port of its listener",
        {{"run", request.run()}, {"port", run.listener.port}});
  }
  return absl::OkStatus();
}

absl::Status ListenerService::GetStatus(Call& call, const v1::GetStatusListenerRequest& request,
                                        v1::GetStatusListenerResponse* response) {
  RETURN_IF_ERROR(Allowed(call, request.run()));
  ASSIGN_OR_RETURN(auto served, status_listeners_.Get(request.run()));
  ASSIGN_OR_RETURN(const auto run, runs_.Get(request.run()));
  response->set_client_ca_pem(served.client_ca_pem);
  response->set_certificate_pem(served.certificate_pem);
  response->set_key_pem(std::string(served.key_pem.view()));
  if (run.status_listener) response->set_port(run.status_listener->port);
  return response->port() != 0 ? absl::OkStatus()
                               : AddTakenPorts(store_, response->mutable_taken_ports());
}

absl::Status ListenerService::ReportStatus(Call& call,
                                           const v1::ReportStatusListenerRequest& request,
                                           v1::Run* response) {
  RETURN_IF_ERROR(Allowed(call, request.run()));
  ASSIGN_OR_RETURN(const auto listener, Reported(request));
  RETURN_IF_ERROR(status_listeners_.Report(request.run(), listener));
  const auto run = runs_.Get(request.run());
  if (run.ok()) *response = ToProto(*run);
  return run.status();
}

grpc::ServerUnaryReactor* ListenerService::SignListenerCertificate(
    grpc::CallbackServerContext* context, const v1::SignListenerCertificateRequest* request,
    v1::SignListenerCertificateResponse* response) {
  return Answer(runtime_, context, "/muster.v1.ListenerService/SignListenerCertificate",
                {*request, response},
                [this, request, response](Call& call) { return Sign(call, *request, response); });
}

grpc::ServerUnaryReactor* ListenerService::ReportListener(grpc::CallbackServerContext* context,
                                                          const v1::ReportListenerRequest* request,
                                                          v1::Run* response) {
  return Answer(runtime_, context, "/muster.v1.ListenerService/ReportListener",
                {*request, response},
                [this, request, response](Call& call) { return Report(call, *request, response); });
}

grpc::ServerUnaryReactor* ListenerService::ReleaseListener(
    grpc::CallbackServerContext* context, const v1::ReleaseListenerRequest* request,
    v1::ReleaseListenerResponse* response) {
  return Answer(runtime_, context, "/muster.v1.ListenerService/ReleaseListener",
                {*request, response},
                [this, request](Call& call) { return Release(call, *request); });
}

grpc::ServerUnaryReactor* ListenerService::GetStatusListener(
    grpc::CallbackServerContext* context, const v1::GetStatusListenerRequest* request,
    v1::GetStatusListenerResponse* response) {
  return Answer(
      runtime_, context, "/muster.v1.ListenerService/GetStatusListener", {*request, response},
      [this, request, response](Call& call) { return GetStatus(call, *request, response); });
}

grpc::ServerUnaryReactor* ListenerService::ReportStatusListener(
    grpc::CallbackServerContext* context, const v1::ReportStatusListenerRequest* request,
    v1::Run* response) {
  return Answer(
      runtime_, context, "/muster.v1.ListenerService/ReportStatusListener", {*request, response},
      [this, request, response](Call& call) { return ReportStatus(call, *request, response); });
}

}  // namespace muster
