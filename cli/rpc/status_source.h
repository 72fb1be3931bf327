// The source of the status of a run: a credentials file, or the services with an operator's
// context.
#ifndef MUSTER_CLI_RPC_STATUS_SOURCE_H_
#define MUSTER_CLI_RPC_STATUS_SOURCE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/output/json_view.h"
#include "cli/output/run_view.h"
#include "cli/rpc/client.h"

namespace muster::cli {

// The arguments that choose a source.
struct StatusQuery {
  std::string run;               // an id, a prefix of one, or empty for the newest
  std::string credentials_file;  // --credentials; empty: search for one
  std::string context_file;      // --context; if given, credentials files are ignored
  absl::Duration max_age;        // of a credentials file
};

// The status of one run, for repeated requests. Not thread-safe.
class StatusSource {
 public:
  virtual ~StatusSource() = default;

  // Returns the run and the pairs that need attention. All calls return the same run.
  virtual absl::StatusOr<RunView> Fetch() = 0;

  // Returns the JSON of `GET /status`, with every pair.
  virtual absl::StatusOr<Json> FetchAll() = 0;
};

// Searches for a credentials file in this order: --credentials, $MUSTER_CREDENTIALS, the file of
// the run (or the newest) in $MUSTER_HOME, /tmp/sonobuoy.json. With a file, the source sends `GET
// /status`. Without a file, or with --context, it asks the services as an operator; also if the
// search finds only an outdated file and a context file exists. Removes a file in $MUSTER_HOME
// whose run was deleted.
absl::StatusOr<std::unique_ptr<StatusSource>> OpenStatusSource(const StatusQuery& query);

// Returns a source that asks the services as an operator about `run`, or about the newest run if it
// is empty.
std::unique_ptr<StatusSource> OperatorStatusSource(std::shared_ptr<Client> client, std::string run);

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_STATUS_SOURCE_H_
