// Where the status of a run comes from: a credentials file, or an operator's context.
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
struct StatusQuestion {
  std::string run;               // an id, the beginning of one, or empty for the newest
  std::string credentials_file;  // --credentials; empty: look for one
  std::string context_file;      // --context; if given, no credentials file is looked for
  absl::Duration max_age;        // of a credentials file
};

// One run's status, asked for again and again. Not thread-safe.
class StatusSource {
 public:
  virtual ~StatusSource() = default;

  // The run as a whole and the pairs that a person looks at. Stays with the run that was found
  // first.
  virtual absl::StatusOr<RunView> Fetch() = 0;

  // All that is known, with every pair: the JSON of `GET /status`.
  virtual absl::StatusOr<Json> FetchAll() = 0;
};

// Looks for a credentials file in this order: the one that was named, $MUSTER_CREDENTIALS, that of
// the run (or the newest) in $MUSTER_HOME, /tmp/sonobuoy.json; then `GET /status` with it and
// nothing else. Without any, or with a named context, it asks the services as an operator.
absl::StatusOr<std::unique_ptr<StatusSource>> OpenStatusSource(const StatusQuestion& question);

// Asks the services as an operator about `run`; empty: the newest.
std::unique_ptr<StatusSource> OperatorStatusSource(std::shared_ptr<Client> client, std::string run);

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_STATUS_SOURCE_H_
