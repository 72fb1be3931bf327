// The credentials file, with which its holder can see the status of one run. Its JSON follows the
// original design:
//
//   {
//     "host_address": "https://172.217.6.206:8002/",
//     "created_at": "2026-11-21T15:53:00Z",
//     "ca_cert": "-----BEGIN CERTIFICATE-----...",
//     "client_cert": "-----BEGIN CERTIFICATE-----...",
//     "client_key": "-----BEGIN PRIVATE KEY-----..."
//   }
//
// The file is a secret: it permits reading the status of that run and nothing else.
#ifndef MUSTER_CLI_RPC_CREDENTIALS_FILE_H_
#define MUSTER_CLI_RPC_CREDENTIALS_FILE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/identity/home.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/secret.h"

namespace muster::cli {

inline constexpr absl::Duration kMaxCredentialsAge = absl::Hours(24);

struct StatusCredentials {
  std::string host_address;  // "https://host:port/"
  absl::Time created_at;
  std::string ca_cert;      // PEM: the CA of the server
  std::string client_cert;  // PEM
  Secret client_key;        // PEM

  // Returns "<host_address>status", with one slash between.
  std::string StatusUrl() const;
};

// Returns the file's content.
Secret CredentialsJson(const StatusCredentials& credentials);

// Returns the path of the file that `muster run` writes: credentials/RUN.json in the home.
std::string CredentialsPath(const Home& home, const std::string& run);

// Writes that file with mode 0600 and creates its folder (0700). Replaces a link in its place;
// fails for a link in the place of the folder (SECRET_FILE_EXPOSED).
absl::Status WriteCredentials(const Home& home, const std::string& run,
                              const StatusCredentials& credentials);

// Removes the files in that folder whose certificates have expired at `now`. A file that cannot be
// read or removed stays.
void RemoveExpiredCredentials(const Home& home, absl::Time now);

// Reads and checks a file. Each error has its own reason: NOT_FOUND (CREDENTIALS_NOT_FOUND);
// FAILED_PRECONDITION (SECRET_FILE_EXPOSED) if others can read it; FAILED_PRECONDITION
// (CREDENTIALS_TOO_OLD) if it was created longer than `max_age` before `now`, or after `now`;
// INVALID_ARGUMENT (INVALID_CREDENTIALS) if the JSON is invalid; UNAUTHENTICATED
// (CERTIFICATE_EXPIRED).
absl::StatusOr<StatusCredentials> ReadCredentials(const std::string& path, absl::Time now,
                                                  absl::Duration max_age);

// Returns the identity in the certificate; nothing if it is not one of Muster.
std::optional<Identity> IdentityOf(const StatusCredentials& credentials);

// Returns INVALID_ARGUMENT (CREDENTIALS_OF_OTHER_RUN) if the certificate is for a run whose id does
// not begin with `run`.
absl::Status CheckRun(const StatusCredentials& credentials, const std::string& run);

// Returns the file for a run, given by its id, a prefix of its id, or an empty text for the newest
// file. The order is: $MUSTER_CREDENTIALS, the file of the run in the home, and /tmp/sonobuoy.json
// if it is a regular file of the caller with mode 0600. Returns nothing if none exists, and a usage
// error if the home has files of several runs that begin with the prefix.
absl::StatusOr<std::optional<std::string>> FindCredentials(const Home& home,
                                                           const std::string& run);

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_CREDENTIALS_FILE_H_
