#include "cli/output/audit_view.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cli/output/format.h"
#include "services/common/base/strings.h"
#include "services/common/identity/signed_command.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

constexpr std::string_view kScheme = "spiffe://";

// Returns the URI of an identity of `fleet` without the fleet: "user/alice", and "run
// 3f2a/plugin/logs/node/n1" for a run credential. Returns other URIs unchanged.
std::string WithoutFleet(const std::string& uri, std::string_view fleet) {
  absl::string_view rest = uri;
  if (!absl::ConsumePrefix(&rest, ToAbsl(kScheme))) return uri;
  const size_t end = std::min(rest.find('/'), rest.size());
  absl::string_view run = rest.substr(0, end);
  if (!absl::ConsumeSuffix(&run, ToAbsl(fleet))) return uri;
  rest.remove_prefix(end);
  if (run.empty()) return std::string(absl::StripPrefix(rest, "/"));
  return absl::ConsumeSuffix(&run, ".") ? absl::StrCat("run ", run, rest) : uri;
}

// Returns "user/alice via service/gateway/main", or "user/alice" if it called directly.
std::string ActorOf(const v1::AuditRecord& record, std::string_view fleet) {
  const std::string actor = WithoutFleet(record.actor(), fleet);
  if (record.vouched_by().empty()) return actor;
  return absl::StrCat(actor, " via ", WithoutFleet(record.vouched_by(), fleet));
}

// Returns true for the changes of the jobs service, whose subjects are no identities.
bool IsChange(v1::AuditKind kind) {
  return kind >= v1::AUDIT_KIND_TEMPLATE && kind <= v1::AUDIT_KIND_WORKSPACE;
}

// An identity contains its own kind.
std::string SubjectPrefix(v1::AuditKind kind) {
  if (kind == v1::AUDIT_KIND_JOB) return "job ";
  return IsChange(kind) ? AuditKindWord(kind) + "/" : "";
}

std::string ObjectOf(const v1::AuditRecord& record, std::string_view fleet) {
  const v1::ResultKey& key = record.key();
  std::vector<std::string> parts;
  if (!record.subject().empty()) {
    parts.push_back(
        absl::StrCat(SubjectPrefix(record.kind()), WithoutFleet(record.subject(), fleet)));
  }
  if (!key.run().empty()) parts.push_back(absl::StrCat("run ", key.run()));
  if (!key.plugin().empty()) parts.push_back(absl::StrCat("plugin ", key.plugin()));
  if (!key.node().empty()) parts.push_back(absl::StrCat("node ", key.node()));
  return absl::StrJoin(parts, ", ");
}

}  // namespace

std::string AuditKindWord(v1::AuditKind kind) {
  const std::string name = v1::AuditKind_Name(kind);
  if (name.empty()) return absl::StrCat("kind-", static_cast<int>(kind));  // of a newer service
  return absl::AsciiStrToLower(name.substr(std::strlen("AUDIT_KIND_")));
}

std::optional<v1::AuditKind> AuditKindOf(std::string_view word) {
  v1::AuditKind kind = v1::AUDIT_KIND_UNSPECIFIED;
  const std::string name = absl::StrCat("AUDIT_KIND_", absl::AsciiStrToUpper(ToAbsl(word)));
  if (!v1::AuditKind_Parse(name, &kind) || kind == v1::AUDIT_KIND_UNSPECIFIED) return std::nullopt;
  return kind;
}

std::string AuditKindWords() {
  std::vector<std::string> words;
  for (int kind = 1; kind <= v1::AuditKind_MAX; ++kind) {
    if (v1::AuditKind_IsValid(kind))
      words.push_back(AuditKindWord(static_cast<v1::AuditKind>(kind)));
  }
  return absl::StrJoin(words, ", ");
}

std::string ActorUri(std::string_view fleet, std::string_view name) {
  if (absl::StartsWith(ToAbsl(name), ToAbsl(kScheme))) return std::string(name);
  const bool has_kind = name.find('/') != std::string_view::npos;
  return absl::StrCat(ToAbsl(kScheme), ToAbsl(fleet), has_kind ? "/" : "/user/", ToAbsl(name));
}

std::optional<v1::AuditKind> AuditKindOfSubject(std::string_view name) {
  const size_t end = name.find('/');
  if (end == std::string_view::npos) return std::nullopt;
  const auto kind = AuditKindOf(name.substr(0, end));
  return kind && IsChange(*kind) ? kind : std::nullopt;
}

std::string AuditSubject(std::string_view fleet, std::string_view name) {
  if (AuditKindOfSubject(name)) return std::string(name.substr(name.find('/') + 1));
  const bool is_certificate = name.find(':') != std::string_view::npos;
  return IsJobId(name) || is_certificate ? std::string(name) : ActorUri(fleet, name);
}

std::vector<std::string> AuditCells(const v1::AuditRecord& record, std::string_view fleet,
                                    absl::Time now) {
  std::string text = JoinLines(record.text());
  if (record.count() > 1) {
    absl::StrAppend(&text, " (", record.count(), " times, the last at ",
                    HumanTime(FromProto(record.last_time()), now), ")");
  }
  return {HumanTime(FromProto(record.time()), now), AuditKindWord(record.kind()),
          ActorOf(record, fleet), ObjectOf(record, fleet), text};
}

std::string AuditLine(const v1::AuditRecord& record, std::string_view fleet, absl::Time now) {
  std::vector<std::string> cells = AuditCells(record, fleet, now);
  std::erase_if(cells, [](const std::string& cell) { return cell.empty(); });
  return Printable(absl::StrJoin(cells, "  "));
}

Json ToJson(const v1::AuditRecord& record) {
  Json json = {{"sequence", record.sequence()},
               {"time", Rfc3339(FromProto(record.time()))},
               {"kind", AuditKindWord(record.kind())},
               {"actor", record.actor()}};
  if (!record.vouched_by().empty()) json["vouched_by"] = record.vouched_by();
  if (!record.key().run().empty()) json["run"] = record.key().run();
  if (!record.key().plugin().empty()) json["plugin"] = record.key().plugin();
  if (!record.key().node().empty()) json["node"] = record.key().node();
  if (!record.subject().empty()) json["subject"] = record.subject();
  json["text"] = record.text();
  json["count"] = record.count();
  json["last_time"] = Rfc3339(FromProto(record.last_time()));
  return json;
}

}  // namespace muster::cli
