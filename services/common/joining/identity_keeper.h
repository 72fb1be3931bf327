// Renews the certificate of a node, or of a joined relay, while its program runs.
#ifndef MUSTER_SERVICES_COMMON_JOINING_IDENTITY_KEEPER_H_
#define MUSTER_SERVICES_COMMON_JOINING_IDENTITY_KEEPER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/identity/certificate_files.h"
#include "services/common/joining/member_file.h"

namespace grpc {
class ClientContext;
}

namespace muster {

namespace v1 {
class NodeCertificate;
}

// Renews at half of the certificate's validity, randomised over a tenth of it, by
// JoinService.Rejoin at the join targets in turn: the fleet's own, or relays that forward it. The
// request is signed with the current key, so a relay cannot insert another key. Retries a failed
// attempt with full jitter within a minute, or within ten minutes after a permanent refusal, such
// as of a revoked node. Also renews an expired certificate. Thread-safe.
class IdentityKeeper {
 public:
  struct Options {
    // The folder that JoinFleet wrote: node.json or relay.json, and tls/.
    std::string folder;
    // Belongs to this object alone. Empty: tls-published in the folder.
    std::string runtime_folder;
    // The addresses for renewals. Empty: the join_targets of the folder, which each response
    // updates.
    std::vector<std::string> join_targets;
    // Runs on the keeper's thread after each attempt to renew, with its outcome, if it is set. It
    // must not stop the keeper.
    std::function<void(const absl::Status&)> attempted;
    const Clock* clock = &SystemClock();
  };

  // Loads and publishes the folder's certificate, and begins to renew it. Fails with NOT_JOINED,
  // INVALID_MEMBER_FILE, or as CertificateFiles::Open does, but accepts an expired certificate.
  static absl::StatusOr<std::unique_ptr<IdentityKeeper>> Open(Options options);

  ~IdentityKeeper();

  // The folder with key.pem, cert.pem and ca.pem that gRPC watches. The path never changes.
  const std::string& published_folder() const { return files_->published_folder(); }

  Identity identity() const { return files_->identity(); }

  // Return the current key and chain, for signatures, and the trusted roots.
  CertificateTrio trio() const { return files_->trio(); }
  std::vector<Certificate> roots() const { return files_->roots(); }

  // Returns the addresses of the last response.
  MemberFile member() const;

  // Ends the renewals; cancels a request in progress and waits for it. Idempotent.
  void Stop();

 private:
  IdentityKeeper(Options options, MemberFile member, std::unique_ptr<CertificateFiles> files);

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until the time, in steps that limit the effect of a jumping clock; returns false at the
  // end.
  bool WaitUntil(absl::Time due) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Time NextRenewal();
  absl::Time NextTry(const absl::Status& failure, int failures);
  absl::Status Renew();
  absl::StatusOr<v1::NodeCertificate> Ask(const std::string& csr);
  absl::StatusOr<v1::NodeCertificate> AskAt(const std::string& target, const std::string& csr,
                                            const CertificateTrio& trio)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Take(const v1::NodeCertificate& answer) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const Clock& clock_;
  const std::unique_ptr<CertificateFiles> files_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* asking_ ABSL_GUARDED_BY(mutex_) = nullptr;
  MemberFile member_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_JOINING_IDENTITY_KEEPER_H_
