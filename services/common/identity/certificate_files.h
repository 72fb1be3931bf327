// The certificate of a service or a node on disk: its tls/ folder, and how a replacement reaches
// gRPC.
//
//   tls/key.pem    its key, made here and never sent (0600)
//   tls/cert.pem   its certificate, then the intermediate
//   tls/ca.pem     the fleet's root: what it trusts (several while a root is being replaced)
//   tls/next-key.pem  only during a renewal: the key of the certificate that is being asked for
//
// gRPC's file watcher fails every new connection while key and certificate do not match, and frees
// the old pair before it looks at the new one. It therefore never watches tls/ itself: a checked
// copy of the three files is published in a runtime folder, and exchanged as a whole.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_CERTIFICATE_FILES_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_CERTIFICATE_FILES_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/mutex.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/identity.h"

namespace muster {

// The three files, read and found to belong together.
struct CertificateTrio {
  PrivateKey key;
  std::vector<Certificate> chain;  // leaf first
  std::vector<Certificate> roots;
  Identity identity;
};

// Reads a tls/ folder: the key is this certificate's, the chain leads to ca.pem, it is valid at
// `now` (for client and server, or a node's for a client), and its URI is one of `role`. A renewal
// that a crash cut short is completed. FAILED_PRECONDITION (CERTIFICATE_FILES_UNUSABLE),
// UNAUTHENTICATED (see VerifyChain) or as pem_files.h; the message names the file.
absl::StatusOr<CertificateTrio> LoadCertificateTrio(const std::string& folder, Role role,
                                                    absl::Time now);
inline absl::StatusOr<CertificateTrio> LoadCertificateTrio(const std::string& folder,
                                                           ServiceRole role, absl::Time now) {
  return LoadCertificateTrio(folder, RoleOf(role), now);
}

// Keeps a certificate current without a restart. Thread-safe; every call may block on the
// disk.
class CertificateFiles {
 public:
  // Loads `folder` and publishes it below `runtime_folder`, which is made if need be (0700),
  // belongs to this object alone and holds nothing that matters after the process.
  static absl::StatusOr<std::unique_ptr<CertificateFiles>> Open(std::string folder,
                                                                std::string runtime_folder,
                                                                Role role, absl::Time now);
  static absl::StatusOr<std::unique_ptr<CertificateFiles>> Open(std::string folder,
                                                                std::string runtime_folder,
                                                                ServiceRole role, absl::Time now) {
    return Open(std::move(folder), std::move(runtime_folder), RoleOf(role), now);
  }

  // Where gRPC has to watch key.pem, cert.pem and ca.pem. The same path for life.
  const std::string& published_folder() const { return published_folder_; }

  // Whose it is; tells the fleet as well.
  Identity identity() const;
  Certificate certificate() const;

  // What it trusts now.
  std::vector<Certificate> roots() const;

  // The same as PEM texts for one connection of our own, such as that which renews.
  CertificateTrio trio() const;

  // Whether half of the certificate's life is over.
  bool NeedsRenewal(absl::Time now) const;

  // Publishes what is in the folder now, if it changed and is good. Otherwise the last good files
  // stay published and the fault is returned: log it and count it.
  absl::Status Refresh(absl::Time now);

  // A new key and a signing request for it. A request made earlier is void.
  absl::StatusOr<std::string> BeginRenewal();

  // Takes the certificate that was issued for the last request, leaf first in PEM; publishes it.
  // At any crash the folder holds the old pair or the new one. FAILED_PRECONDITION
  // (CERTIFICATE_FILES_UNUSABLE) if it is not for that key or for another name.
  absl::Status CompleteRenewal(std::string_view chain_pem, absl::Time now);

 private:
  CertificateFiles(std::string folder, std::string runtime_folder, Role role, CertificateTrio trio);

  absl::Status Publish(const CertificateTrio& trio) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveAllBut(std::string_view current, std::string_view previous);

  const std::string folder_;
  const std::string runtime_folder_;
  const std::string published_folder_;
  const Role role_;
  mutable Mutex mutex_;
  CertificateTrio trio_ ABSL_GUARDED_BY(mutex_);
  std::string published_name_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_CERTIFICATE_FILES_H_
