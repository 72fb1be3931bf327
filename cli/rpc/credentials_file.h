// The file that lets its holder see the status of one run: the JSON of the original design.
//
//   {
//     "host_address": "https://172.217.6.206:8002/",
//     "created_at": "2026-11-21T15:53:00Z",
//     "ca_cert": "-----BEGIN CERTIFICATE-----...",
//     "client_cert": "-----BEGIN CERTIFICATE-----...",
//     "client_key": "-----BEGIN PRIVATE KEY-----..."
//   }
//
// It is a secret, though a small one: whoever has it sees that run's status and nothing else.
#ifndef MUSTER_CLI_RPC_CREDENTIALS_FILE_H_
#define MUSTER_CLI_RPC_CREDENTIALS_FILE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/identity/home.h"
#include "services/common/identity/secret.h"

namespace muster::cli {

inline constexpr absl::Duration kMaxCredentialsAge = absl::Hours(24);

struct StatusCredentials {
  std::string host_address;  // "https://host:port/"
  absl::Time created_at;
  std::string ca_cert;      // PEM: whom to trust as the server
  std::string client_cert;  // PEM
  Secret client_key;        // PEM

  // "<host_address>status", with one slash between.
  std::string StatusUrl() const;
};

// The file's content.
Secret CredentialsJson(const StatusCredentials& credentials);

// Where `muster run` puts the file of a run: credentials/RUN.json in the home.
std::string CredentialsPath(const Home& home, const std::string& run);

// Writes that file with mode 0600 and makes its folder (0700). A link in its place is replaced, a
// link in the folder's place refused (SECRET_FILE_EXPOSED).
absl::Status WriteCredentials(const Home& home, const std::string& run,
                              const StatusCredentials& credentials);

// Reads one and checks it. Each fault has its own message: NOT_FOUND (CREDENTIALS_NOT_FOUND);
// FAILED_PRECONDITION (SECRET_FILE_EXPOSED) if others can read it, (CREDENTIALS_TOO_OLD) if it was
// made longer than `max_age` before `now`, or after it; INVALID_ARGUMENT (INVALID_CREDENTIALS) if
// it is no such JSON; UNAUTHENTICATED (CERTIFICATE_EXPIRED).
absl::StatusOr<StatusCredentials> ReadCredentials(const std::string& path, absl::Time now,
                                                  absl::Duration max_age);

// The file to use for a run (an id, the beginning of one, or empty for the newest file), where none
// was named: $MUSTER_CREDENTIALS, the run's own in the home, /tmp/sonobuoy.json if that is a plain
// file of the caller with mode 0600. Nothing if there is none.
std::optional<std::string> FindCredentials(const Home& home, const std::string& run);

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_CREDENTIALS_FILE_H_
