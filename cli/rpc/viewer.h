// Gives a new run its credentials file, and the status listener of its own that it may want.
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

// What they hold, read and ready to be sent; the key only from a file that nobody else can read.
absl::StatusOr<v1::SetStatusListenerRequest> ReadStatusListener(const StatusListenerFiles& files);

// A viewer's certificate for the run, with a key that is made here.
absl::StatusOr<StatusCredentials> IssueViewer(Client& client, const std::string& run);

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_VIEWER_H_
