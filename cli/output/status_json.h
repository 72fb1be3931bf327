// The JSON of `GET /status`: the fields of the original design (status, percent_complete, plugins
// with name, node, status and last-heartbeat), and additional ones. docs/status.md lists them.
#ifndef MUSTER_CLI_OUTPUT_STATUS_JSON_H_
#define MUSTER_CLI_OUTPUT_STATUS_JSON_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cli/output/json_view.h"
#include "muster/v1/status.pb.h"

namespace muster::cli {

// Returns "running", "not-responding", "network-lost", ..., or an empty text for none.
std::string ReasonWord(v1::Reason reason);

// Returns "online", "late", "suspect", "lost", "offline", "unknown", or an empty text for none.
std::string PresenceWord(v1::Presence presence);

// Returns JSON with an entry of `plugins` for each pair of the status.
Json StatusJson(const v1::RunStatus& status);

// Returns one entry of `plugins`.
Json StatusJson(const v1::PairStatus& pair);

// Parses the JSON; the pairs are those of `plugins`. Ignores unknown fields. Returns
// INVALID_ARGUMENT (INVALID_STATUS) for other JSON.
absl::StatusOr<v1::RunStatus> ParseStatusJson(std::string_view text);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_STATUS_JSON_H_
