// The status of a run as `GET /status` gives it: the fields of the original design (status,
// percent_complete, plugins with name, node, status and last-heartbeat), and finer ones beside
// them. docs/status.md lists all.
#ifndef MUSTER_CLI_OUTPUT_STATUS_JSON_H_
#define MUSTER_CLI_OUTPUT_STATUS_JSON_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cli/output/json_view.h"
#include "muster/v1/status.pb.h"

namespace muster::cli {

// "running", "not-responding", "network-lost", ...; empty for none.
std::string ReasonWord(v1::Reason reason);

// "online", "late", "suspect", "lost", "offline", "unknown"; empty for none.
std::string PresenceWord(v1::Presence presence);

// With an entry of `plugins` for each of the status' pairs.
Json StatusJson(const v1::RunStatus& status);

// One entry of `plugins`.
Json StatusJson(const v1::PairStatus& pair);

// The same backwards; the pairs are those of `plugins`. Fields that are not known are ignored.
// INVALID_ARGUMENT (INVALID_STATUS) if it is no such JSON.
absl::StatusOr<v1::RunStatus> ParseStatusJson(std::string_view text);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_STATUS_JSON_H_
