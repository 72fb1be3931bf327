// Renews the certificate of a node, or of a joined relay, while its program runs.
#ifndef MUSTER_SERVICES_COMMON_JOINING_IDENTITY_KEEPER_H_
#define MUSTER_SERVICES_COMMON_JOINING_IDENTITY_KEEPER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/backoff.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"
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
// attempt with full jitter within a minute, or within ten minutes if every target that answered
// refused, for example a revoked node. Also renews an expired certificate. Thread-safe.
class IdentityKeeper {
 public:
  struct Options {
    // The folder that JoinFleet wrote: node.json or relay.json, and tls/.
    std::string folder;
    // Used by this object alone. Empty: tls-published in the folder.
    std::string runtime_folder;
    // The addresses for renewals. Empty: the join_targets of the folder, which each response
    // updates.
    std::vector<std::string> join_targets;
    // Called on the executor after each attempt to renew, with its outcome: after a success new
    // connections use the new key. Must not stop the keeper. May be empty.
    std::function<void(const absl::Status&)> attempted;
    const Clock* clock = &SystemClock();
    // Both outlive the keeper. A renewal blocks a thread of the executor for up to 20 s a target.
    TimerService* timers = nullptr;
    Executor* executor = nullptr;
  };

  // Loads and publishes the folder's certificate, and begins to renew it. Fails with NOT_JOINED,
  // INVALID_MEMBER_FILE, or as CertificateFiles::Open does, but accepts an expired certificate.
  static absl::StatusOr<std::unique_ptr<IdentityKeeper>> Open(Options options);

  ~IdentityKeeper();

  // The folder with key.pem, cert.pem and ca.pem that gRPC watches. The path never changes.
  const std::string& published_folder() const { return files_->published_folder(); }

  Identity identity() const { return files_->identity(); }

  // The current key and chain for signatures, and the trusted certificates.
  CertificateTrio trio() const { return files_->trio(); }
  std::vector<Certificate> roots() const { return files_->roots(); }

  // Returns the addresses from the fleet's last response.
  MemberFile member() const;

  // Cancels a running request and waits for it. Nothing is renewed afterwards. Idempotent.
  void Stop();

 private:
  IdentityKeeper(Options options, MemberFile member, std::unique_ptr<CertificateFiles> files);

  // Renews the certificate if that is due, and schedules the next check.
  void Check() ABSL_LOCKS_EXCLUDED(mutex_);
  void Refresh();
  absl::Duration NextAttempt(const absl::Status& failure);
  absl::Time NextRenewal() const;
  absl::Status Renew();
  // Stores and publishes the first answer that can be used, and returns it.
  absl::StatusOr<v1::NodeCertificate> Ask(const std::string& csr);
  absl::StatusOr<v1::NodeCertificate> AskAt(const std::string& target, const std::string& csr,
                                            const CertificateTrio& trio)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void UpdateMember(const v1::NodeCertificate& response) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const Clock& clock_;
  const std::unique_ptr<CertificateFiles> files_;
  absl::Time due_;           // used by Check, as the next two
  Backoff backoff_;          // after a failed attempt
  Backoff refused_backoff_;  // after a refusal
  mutable Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* asking_ ABSL_GUARDED_BY(mutex_) = nullptr;
  MemberFile member_ ABSL_GUARDED_BY(mutex_);
  ScheduledTask check_;  // last: it uses the members above
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_JOINING_IDENTITY_KEEPER_H_
