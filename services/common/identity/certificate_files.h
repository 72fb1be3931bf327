// The certificate of a service or a node in its tls/ folder, and its replacement without a restart.
//
//   tls/key.pem       the private key, generated here and never sent (0600)
//   tls/cert.pem      the certificate, then the intermediate
//   tls/ca.pem        the trusted root of the fleet (several while a root is being replaced)
//   tls/next-key.pem  only during a renewal: the key of the requested certificate
//
// gRPC's file watcher fails every new connection while key and certificate do not match, and frees
// the old pair before it reads the new one. It therefore never watches tls/ itself: a verified copy
// of the three files is published in a runtime folder, and replaced atomically.
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

// The three files, which belong together.
struct CertificateTrio {
  PrivateKey key;
  std::vector<Certificate> chain;  // leaf first
  std::vector<Certificate> roots;
  Identity identity;
};

// Reads a tls/ folder. The key must belong to the certificate, the chain must lead to ca.pem, the
// certificate must be valid at `now` (for client and server; a node's for a client), and its URI
// must have the role `role`. Completes a renewal that a crash interrupted. Fails with
// FAILED_PRECONDITION (CERTIFICATE_FILES_UNUSABLE), UNAUTHENTICATED (see VerifyChain) or as
// pem_files.h does; the message names the file.
absl::StatusOr<CertificateTrio> LoadCertificateTrio(const std::string& folder, Role role,
                                                    absl::Time now);
inline absl::StatusOr<CertificateTrio> LoadCertificateTrio(const std::string& folder,
                                                           ServiceRole role, absl::Time now) {
  return LoadCertificateTrio(folder, RoleOf(role), now);
}

// Keeps a certificate current without a restart. Thread-safe; every call may block on the disk.
class CertificateFiles {
 public:
  // Loads `folder` and publishes it below `runtime_folder`, which is created if it does not exist
  // (0700). The runtime folder belongs to this object alone and is not needed after the process
  // ends.
  static absl::StatusOr<std::unique_ptr<CertificateFiles>> Open(std::string folder,
                                                                std::string runtime_folder,
                                                                Role role, absl::Time now);
  static absl::StatusOr<std::unique_ptr<CertificateFiles>> Open(std::string folder,
                                                                std::string runtime_folder,
                                                                ServiceRole role, absl::Time now) {
    return Open(std::move(folder), std::move(runtime_folder), RoleOf(role), now);
  }

  // The folder with key.pem, cert.pem and ca.pem that gRPC watches. The path never changes.
  const std::string& published_folder() const { return published_folder_; }

  // Returns the identity in the certificate, which includes the fleet.
  Identity identity() const;
  Certificate certificate() const;

  // Returns the roots that are trusted now.
  std::vector<Certificate> roots() const;

  // Returns the same files as PEM texts, for example for the connection that renews the
  // certificate.
  CertificateTrio trio() const;

  // Returns true if half of the certificate's validity has passed.
  bool NeedsRenewal(absl::Time now) const;

  // Publishes the content of the folder if it changed and is valid. Otherwise the last valid files
  // remain published, and the error is returned for the caller to log and count.
  absl::Status Refresh(absl::Time now);

  // Generates a new key and returns a signing request for it. An earlier request becomes invalid.
  absl::StatusOr<std::string> BeginRenewal();

  // Stores and publishes the certificate for the last request (PEM, leaf first). After a crash at
  // any point, the folder contains either the old pair or the new one. Fails with
  // FAILED_PRECONDITION (CERTIFICATE_FILES_UNUSABLE) if the certificate is for another key or
  // another name.
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
