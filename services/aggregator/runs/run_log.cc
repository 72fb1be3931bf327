#include "services/aggregator/runs/run_log.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/time/time.h"
#include "services/common/base/status_macros.h"

namespace muster {
namespace {

constexpr int kPage = 1000;

struct Wording {
  std::string_view level;
  std::string_view message;
};

Wording Describe(AuditKind kind) {
  switch (kind) {
    case AuditKind::kConflict:
      return {"warning", "different content for a committed result was refused"};
    case AuditKind::kLate:
      return {"warning", "a delivery after the seal was refused"};
    case AuditKind::kReplaced:
      return {"info", "a genuine result replaced an error"};
    case AuditKind::kRefused:
      return {"warning", "a call was not allowed"};
    case AuditKind::kCredential:
      return {"info", "a credential was issued"};
    case AuditKind::kRevocation:
      return {"warning", "an identity was revoked"};
    case AuditKind::kRun:
      return {"info", "the run"};
    case AuditKind::kUnplanned:
      return {"warning", "a delivery that the plan does not name was refused"};
    case AuditKind::kExpired:
      return {"warning", "a relay cannot deliver a result"};
    case AuditKind::kNode:
      return {"info", "a node"};
    case AuditKind::kDamage:
      return {"warning", "a stored result was verified"};
    case AuditKind::kJob:
      return {"info", "a job"};
    case AuditKind::kShare:
      return {"info", "a shared file"};
    case AuditKind::kTemplate:
      return {"info", "a template"};
    case AuditKind::kDeployment:
      return {"info", "a deployment"};
    case AuditKind::kConformance:
      return {"info", "the baseline of conformance"};
    case AuditKind::kSecret:
      return {"info", "a secret"};
    case AuditKind::kWorkspace:
      return {"info", "a workspace"};
  }
  return {"info", "?"};
}

std::string Line(const AuditRecord& record) {
  const Wording wording = Describe(record.kind);
  nlohmann::ordered_json line = {
      {"time",
       absl::FormatTime(absl::RFC3339_full, absl::FromUnixMicros(record.at), absl::UTCTimeZone())},
      {"level", wording.level},
      {"msg", wording.message},
      {"by", record.actor}};
  if (!record.vouched_by.empty()) line["vouched_by"] = record.vouched_by;
  if (!record.key.plugin.empty()) line["plugin"] = record.key.plugin;
  if (!record.key.node.empty()) line["node"] = record.key.node;
  if (!record.text.empty()) line["text"] = record.text;
  if (record.count > 1) line["count"] = record.count;
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

absl::StatusOr<std::string> RunLog(StateStore& store, const std::string& run, size_t max_bytes) {
  std::string log;
  std::string token;
  do {
    ASSIGN_OR_RETURN(const auto page, store.Audit({.run = run}, token, kPage));
    for (const AuditRecord& record : page.items) {
      const std::string line = Line(record);
      if (log.size() + line.size() > max_bytes) {
        return log + "{\"level\":\"warning\",\"msg\":\"more was left out here\"}\n";
      }
      log += line;
    }
    token = page.next;
  } while (!token.empty());
  return log;
}

}  // namespace muster
