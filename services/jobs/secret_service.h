// The RPCs of secrets: checks and translates.
#ifndef MUSTER_SERVICES_JOBS_SECRET_SERVICE_H_
#define MUSTER_SERVICES_JOBS_SECRET_SERVICE_H_

#include <functional>
#include <memory>
#include <string>

#include "muster/v1/secrets.grpc.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/disk_reserve.h"
#include "services/common/base/executor.h"
#include "services/common/identity/revocation.h"
#include "services/common/identity/verified_chains.h"
#include "services/common/jobs/signing_files.h"
#include "services/common/rpc/call.h"
#include "services/jobs/secret_reads.h"
#include "services/jobs/secret_store.h"

namespace muster {

// Logs every delivery and every refused request with job, node and relay, never a value.
// Thread-safe.
class SecretService final : public v1::SecretService::CallbackService {
 public:
  // The references outlive the service.
  struct Parts {
    SecretStore& secrets;     // those that this service stores
    SecretProvider& sources;  // all
    SecretReads& reads;
    std::string fleet;
    VerifiedChains& chains;
    const RevocationList& revocations;
    std::function<SigningFiles()> identity;  // of this service, now
    DiskReserve& reserve;                    // of the disk with the stores
    Executor& vault_calls;                   // for reads that wait for a Vault
    const Clock& clock;
  };

  SecretService(const RpcRuntime& runtime, Parts parts)
      : runtime_(runtime), parts_(std::move(parts)) {}

  grpc::ServerUnaryReactor* PutSecret(grpc::CallbackServerContext* context,
                                      const v1::PutSecretRequest* request,
                                      v1::Secret* response) override;
  grpc::ServerUnaryReactor* ListSecrets(grpc::CallbackServerContext* context,
                                        const v1::ListSecretsRequest* request,
                                        v1::ListSecretsResponse* response) override;
  grpc::ServerUnaryReactor* DeleteSecret(grpc::CallbackServerContext* context,
                                         const v1::DeleteSecretRequest* request,
                                         v1::DeleteSecretResponse* response) override;
  grpc::ServerUnaryReactor* FetchSecrets(grpc::CallbackServerContext* context,
                                         const v1::FetchSecretsRequest* request,
                                         v1::FetchSecretsResponse* response) override;

 private:
  absl::Status Put(Call& call, const v1::PutSecretRequest& request, v1::Secret* response);
  absl::Status List(Call& call, const v1::ListSecretsRequest& request,
                    v1::ListSecretsResponse* response);
  void Fetch(const std::shared_ptr<Call>& call, const v1::FetchSecretsRequest& request,
             v1::FetchSecretsResponse* response, Finish finish);
  absl::StatusOr<v1::Command::Deployment> Admit(Call& call, const v1::FetchSecretsRequest& request);
  absl::Status CheckNode(const v1::FetchSecretsRequest& request);
  absl::StatusOr<v1::Command::Deployment> AdmitNode(const v1::FetchSecretsRequest& request);
  absl::StatusOr<v1::SecretValues> Read(const v1::FetchSecretsRequest& request,
                                        const v1::Command::Deployment& deployment);
  void Withdraw(const v1::FetchSecretsRequest& request);
  absl::Status Send(const Call& call, const v1::FetchSecretsRequest& request,
                    const v1::Command::Deployment& deployment, v1::FetchSecretsResponse* response);

  const RpcRuntime runtime_;
  const Parts parts_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_SECRET_SERVICE_H_
