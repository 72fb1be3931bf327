// The credentials file of a new run, and its optional status listener.
#ifndef MUSTER_CLI_RPC_VIEWER_H_
#define MUSTER_CLI_RPC_VIEWER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/rpc/client.h"
#include "cli/rpc/credentials_file.h"

namespace muster::cli {

// The files of `--status-client-ca`, `--status-cert` and `--status-key`.
struct StatusListenerFiles {
  std::string client_ca;
  std::string certificate;
  std::string key;

  bool any() const { return !client_ca.empty() || !certificate.empty() || !key.empty(); }
};

// Reads the files into a request. Reads the key only from a file that no other user can read.
absl::StatusOr<v1::SetStatusListenerRequest> ReadStatusListener(const StatusListenerFiles& files);

// Returns a viewer's certificate for the run, with a new key.
absl::StatusOr<StatusCredentials> IssueViewer(Client& client, const std::string& run);

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_VIEWER_H_
