#include "services/common/service/certificate_renewal.h"

#include <grpcpp/client_context.h>

#include <chrono>
#include <utility>

#include "muster/v1/identities.grpc.pb.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/rpc/status.h"

namespace muster {
namespace {

constexpr absl::Duration kCheck = absl::Seconds(30);

}  // namespace

CertificateRenewal::CertificateRenewal(std::function<absl::Status()> renew, TimerService& timers,
                                       Executor& executor)
    : renew_(std::move(renew)), task_(timers, executor, [this] { Run(); }) {}

void CertificateRenewal::Run() {
  if (absl::Status s = renew_(); !s.ok()) {
    Log(LogLevel::kError, "cannot renew the certificate", {{"error", s}});
  }
  task_.RunAfter(kCheck);
}

absl::Status RenewIfDue(CertificateFiles& files, const std::shared_ptr<grpc::Channel>& aggregator,
                        absl::Time now) {
  RETURN_IF_ERROR(files.Refresh(now));
  if (!files.NeedsRenewal(now)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto csr, files.BeginRenewal());
  const auto stub = v1::IdentityService::NewStub(aggregator);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  v1::RenewCertificateRequest request;
  request.set_csr_pem(csr);
  v1::IssuedCertificate issued;
  const grpc::Status called = stub->RenewCertificate(&context, request, &issued);
  if (!called.ok()) return FromGrpc(called);
  return files.CompleteRenewal(issued.certificate_chain_pem(), now);
}

}  // namespace muster
