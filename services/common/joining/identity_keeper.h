// Keeps the certificate of a node, or of a relay that joined, current for as long as its program
// runs.
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

// Renews at half of the certificate's life, spread over a tenth of it, by JoinService.Rejoin at the
// join targets in turn: the fleet's own, or relays that forward it. The proof is by the key that
// ends, so that nobody on the way can put another in. A try that fails is repeated after a random
// time of up to a minute (ten where the fleet refuses for good, such as a revoked node), also when
// the certificate has ended meanwhile, and after a start with one that had. Thread-safe.
class IdentityKeeper {
 public:
  struct Options {
    // As JoinFleet left it: node.json or relay.json, and tls/.
    std::string folder;
    // Belongs to this object alone. Empty: tls-published in the folder.
    std::string runtime_folder;
    // Where to renew. Empty: the join_targets of the folder, and what each answer says anew.
    std::vector<std::string> join_targets;
    // Runs on the keeper's thread after each attempt to renew, with its outcome, if it is set. It
    // must not stop the keeper.
    std::function<void(const absl::Status&)> attempted;
    const Clock* clock = &SystemClock();
  };

  // Loads and publishes what is in the folder, and begins to keep it current. NOT_JOINED,
  // INVALID_MEMBER_FILE, or as CertificateFiles::Open, but for a certificate that has ended.
  static absl::StatusOr<std::unique_ptr<IdentityKeeper>> Open(Options options);

  ~IdentityKeeper();

  // Where gRPC has to watch key.pem, cert.pem and ca.pem. The same path for life.
  const std::string& published_folder() const { return files_->published_folder(); }

  Identity identity() const { return files_->identity(); }

  // Key and chain as they are now, to sign with; and what to trust.
  CertificateTrio trio() const { return files_->trio(); }
  std::vector<Certificate> roots() const { return files_->roots(); }

  // What the fleet said last of where things are.
  MemberFile member() const;

  // Ends the keeping; waits for a request under way, which is cancelled. Idempotent.
  void Stop();

 private:
  IdentityKeeper(Options options, MemberFile member, std::unique_ptr<CertificateFiles> files);

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Sleeps until the time, a moment that a clock that jumps cannot move far; false: it is over.
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
