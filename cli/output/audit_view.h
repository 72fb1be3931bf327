// Audit records, for people and for programs.
#ifndef MUSTER_CLI_OUTPUT_AUDIT_VIEW_H_
#define MUSTER_CLI_OUTPUT_AUDIT_VIEW_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "cli/output/json_view.h"
#include "muster/v1/audit.pb.h"

namespace muster::cli {

// Returns "refused" for AUDIT_KIND_REFUSED.
std::string AuditKindWord(v1::AuditKind kind);

// Returns the kind that this word names, or nothing.
std::optional<v1::AuditKind> AuditKindOf(std::string_view word);

// Returns all words: "conflict, late, ...".
std::string AuditKindWords();

// Returns the URI of `name`: a URI, a name with its kind ("node/n1"), or the name of an operator.
std::string ActorUri(std::string_view fleet, std::string_view name);

// Returns the subject that `name` names: as ActorUri, or the id of a job or a deployment, or a
// certificate ("ISSUER:SERIAL"), or a changed object with its kind ("secret/prod/db").
std::string AuditSubject(std::string_view fleet, std::string_view name);

// Returns the kind of the changed object that `name` begins with; nothing for other names.
std::optional<v1::AuditKind> AuditKindOfSubject(std::string_view name);

// Returns the time, the kind, the actor, the object and the text. Identities of `fleet` are
// named without it.
std::vector<std::string> AuditCells(const v1::AuditRecord& record, std::string_view fleet,
                                    absl::Time now);

// Returns these as one line, without a newline.
std::string AuditLine(const v1::AuditRecord& record, std::string_view fleet, absl::Time now);

Json ToJson(const v1::AuditRecord& record);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_AUDIT_VIEW_H_
