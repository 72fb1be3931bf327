// Messages of the API as the JSON of --json: field names as in proto/muster/v1, states as
// lower-case words, times in RFC 3339 ("" if not set), sizes in bytes, digests in hex.
#ifndef MUSTER_CLI_OUTPUT_JSON_VIEW_H_
#define MUSTER_CLI_OUTPUT_JSON_VIEW_H_

#include <nlohmann/json.hpp>
#include <string>

#include "muster/v1/archives.pb.h"
#include "muster/v1/enrollment.pb.h"
#include "muster/v1/identities.pb.h"
#include "muster/v1/results.pb.h"
#include "muster/v1/runs.pb.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {

using Json = nlohmann::ordered_json;

// Returns "planned", "running", "post-processing", "complete", "failed", "cancelled".
std::string StateWord(v1::RunState state);

// Returns true for complete, failed and cancelled.
bool HasEnded(v1::RunState state);

// Returns "pending", "genuine", "error", "timed-out".
std::string OutcomeWord(v1::Outcome outcome);
// Returns the same for a pair of a run in this state: "no-outcome" if the pair is pending and the
// run has ended.
std::string OutcomeWord(v1::Outcome outcome, v1::RunState state);

Json ToJson(const v1::ResultCounts& counts);
Json ToJson(const v1::Run& run);
Json ToJson(const v1::Result& result, v1::RunState state);
Json ToJson(const v1::Operator& person);
Json ToJson(const v1::JoinToken& token);
Json ToJson(const v1::EnrolledNode& node);

// Returns one line for stdout. Numbers of exact_json.h keep their text. Replaces bytes that are not
// UTF-8, so that it never fails. Escapes the control characters that PrintableLength names: C1 and
// bidirectional marks, too.
std::string Dump(const Json& json);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_JSON_VIEW_H_
