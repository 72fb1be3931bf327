#include "services/common/base/inspection_server.h"

#include <httplib.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/errors/base.h"

namespace muster {
namespace {

httplib::Server::Handler Probe(std::function<absl::Status()> check) {
  return [check = std::move(check)](const httplib::Request&, httplib::Response& response) {
    const absl::Status status = check ? check() : absl::OkStatus();
    if (status.ok()) {
      response.set_content("ok\n", "text/plain");
      return;
    }
    const std::string reason = ReasonOf(status);
    response.status = 503;
    response.set_content(absl::StrCat(reason, reason.empty() ? "" : ": ", status.message(), "\n"),
                         "text/plain");
  };
}

}  // namespace

InspectionServer::InspectionServer(std::unique_ptr<LoopbackHttpServer> server)
    : server_(std::move(server)) {}

absl::StatusOr<std::unique_ptr<InspectionServer>> InspectionServer::Start(const Metrics& metrics,
                                                                          Options options) {
  auto server = LoopbackHttpServer::Start({.port = options.port}, [&](httplib::Server& http) {
    http.Get("/metrics", [&metrics](const httplib::Request&, httplib::Response& response) {
      response.set_content(metrics.Text(), "text/plain; version=0.0.4; charset=utf-8");
    });
    http.Get("/livez", Probe(std::move(options.live)));
    http.Get("/readyz", Probe(std::move(options.ready)));
  });
  if (server == nullptr) return errors::PortInUse(LoopbackHttpServer::address(), options.port);
  return std::unique_ptr<InspectionServer>(new InspectionServer(std::move(server)));
}

}  // namespace muster
