#include "services/aggregator/listener_service.h"

#include <utility>

#include "services/aggregator/convert.h"
#include "services/common/errors.h"
#include "services/common/identity/run_host.h"

namespace muster {
namespace {

constexpr size_t kMaxFault = 1024;

absl::Status Allowed(Call& call, const std::string& run) {
  if (const absl::Status status = CheckRunId(run); !status.ok()) return status;
  return call.Authorize(Resource::Listener(run));
}

}  // namespace

absl::Status ListenerService::Sign(Call& call, const v1::SignListenerCertificateRequest& request,
                                   v1::SignListenerCertificateResponse* response) {
  if (const absl::Status allowed = Allowed(call, request.run()); !allowed.ok()) return allowed;
  const auto run = runs_.Get(request.run());
  if (!run.ok()) return run.status();
  const auto signed_certificate =
      authorities_.SignForRun(RunListenerIdentity{request.run()}, request.csr_pem(),
                              run->listener.hosts, ToUri(call.caller().identity).value_or(""));
  if (!signed_certificate.ok()) return signed_certificate.status();
  const auto authority = store_.GetAuthority(request.run());
  if (!authority.ok()) return authority.status();
  if (!*authority) return errors::RunEnded(request.run());
  response->set_certificate_pem(signed_certificate->leaf_pem);
  response->set_run_ca_pem((*authority)->self_signed_pem);
  response->set_port(run->listener.port);
  if (const auto& hosts = run->listener.hosts; hosts.size() == 1) {
    if (IsHostOfRun(hosts[0], request.run())) response->set_server_name(hosts[0]);
  }
  return absl::OkStatus();
}

absl::Status ListenerService::Report(Call& call, const v1::ReportListenerRequest& request,
                                     v1::Run* response) {
  if (const absl::Status allowed = Allowed(call, request.run()); !allowed.ok()) return allowed;
  if (request.port() < 0 || request.port() > 65535) return errors::InvalidPort(request.port());
  if (request.fault().size() > kMaxFault) return errors::TextTooLong("fault", kMaxFault);
  muster::ReportListener command;
  command.run = request.run();
  command.listener.port = request.port();
  command.listener.open = request.open();
  command.listener.fault = request.fault();
  command.at = absl::ToUnixMicros(clock_.Now());
  const auto outcome = store_.ApplyAndWait(std::move(command));
  if (!outcome.ok()) return outcome.status();
  if (!outcome->found) return errors::RunNotFound(request.run());
  if (request.port() != 0 && outcome->listener.port != request.port()) {
    return errors::PortIsFixed(request.run(), outcome->listener.port);
  }
  const auto run = runs_.Get(request.run());
  if (run.ok()) *response = ToProto(*run);
  return run.status();
}

grpc::ServerUnaryReactor* ListenerService::SignListenerCertificate(
    grpc::CallbackServerContext* context, const v1::SignListenerCertificateRequest* request,
    v1::SignListenerCertificateResponse* response) {
  return Answer(runtime_, context, "/muster.v1.ListenerService/SignListenerCertificate",
                [this, request, response](Call& call) { return Sign(call, *request, response); });
}

grpc::ServerUnaryReactor* ListenerService::ReportListener(grpc::CallbackServerContext* context,
                                                          const v1::ReportListenerRequest* request,
                                                          v1::Run* response) {
  return Answer(runtime_, context, "/muster.v1.ListenerService/ReportListener",
                [this, request, response](Call& call) { return Report(call, *request, response); });
}

}  // namespace muster
