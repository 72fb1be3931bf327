#include "services/jobs/document_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/runs.h"
#include "services/common/errors/templates.h"
#include "services/common/store/sqlite/page_token.h"
#include "services/common/templates/version.h"
#include "services/jobs/audit_outbox.h"

namespace muster {
namespace {

using sqlite::Connection;
using sqlite::Rows;

std::string_view NameOf(DocumentKind kind) {
  return kind == DocumentKind::kType ? "template type" : "template";
}

absl::Status NotFound(DocumentKind kind, std::string_view reference) {
  return kind == DocumentKind::kType ? errors::TypeNotFound(reference)
                                     : errors::TemplateNotFound(reference);
}

StoredDocument Read(Rows& rows) {
  StoredDocument found;
  found.name = rows.Text();
  found.version = rows.Text();
  found.document = rows.Text();
  found.created_by = rows.Text();
  found.created_at = rows.Int();
  return found;
}

// A release has a key that ends with "~".
std::optional<StoredDocument> ReadNewest(Connection& db, DocumentKind kind,
                                         const VersionReference& reference) {
  Rows rows = db.Query(
      "SELECT name, version, document, created_by, created_at FROM documents "
      "WHERE kind = ?1 AND name = ?2 AND substr(rank, 1, length(?3)) = ?3 "
      "AND substr(rank, -1) = '~' ORDER BY rank DESC LIMIT 1",
      kind, reference.name, reference.key_prefix);
  if (!rows.Next()) return std::nullopt;
  return Read(rows);
}

int64_t CountVersions(Connection& db, DocumentKind kind) {
  Rows rows = db.Query("SELECT count(*) FROM documents WHERE kind = ?", kind);
  return rows.Next() ? rows.Int() : 0;
}

int64_t CountVersionsOf(Connection& db, DocumentKind kind, const std::string& creator) {
  Rows rows =
      db.Query("SELECT count(*) FROM documents WHERE kind = ? AND created_by = ?", kind, creator);
  return rows.Next() ? rows.Int() : 0;
}

}  // namespace

std::optional<StoredDocument> FindVersion(Connection& db, DocumentKind kind,
                                          const std::string& name, const std::string& version) {
  Rows rows = db.Query(
      "SELECT name, version, document, created_by, created_at FROM documents "
      "WHERE kind = ? AND name = ? AND rank = ?",
      kind, name, VersionSortKey(version));
  if (!rows.Next()) return std::nullopt;
  return Read(rows);
}

absl::Status AddVersion(Connection& db, DocumentKind kind, const StoredDocument& document,
                        int64_t max_versions) {
  const std::string kinds = absl::StrCat(ToAbsl(NameOf(kind)), "s");
  if (CountVersions(db, kind) >= max_versions) {
    return errors::TooManyVersions(kinds, max_versions);
  }
  if (CountVersionsOf(db, kind, document.created_by) >= max_versions / 2) {
    return errors::TooManyVersions(absl::StrCat(kinds, " of ", document.created_by),
                                   max_versions / 2);
  }
  db.Run("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?)", kind, document.name,
         VersionSortKey(document.version), document.version, document.document, document.created_by,
         document.created_at);
  AddAuditRecord(
      db, v1::AUDIT_KIND_TEMPLATE, {document.created_by, document.vouched_by},
      absl::StrCat(document.name, "@", document.version), "stored",
      absl::StrCat(ToAbsl(NameOf(kind)), document.built_by.empty() ? "" : " built by ",
                   document.built_by, ", document sha256:", ToHex(Sha256::Of(document.document))),
      absl::FromUnixMicros(document.created_at));
  return absl::OkStatus();
}

absl::StatusOr<StoredDocument> DocumentStore::Put(DocumentKind kind,
                                                  const StoredDocument& document) {
  StoredDocument stored = document;
  RETURN_IF_ERROR(database_.Write([&](Connection& db) -> absl::Status {
    if (auto found = FindVersion(db, kind, document.name, document.version)) {
      if (found->document != document.document) {
        return errors::VersionExists(NameOf(kind),
                                     absl::StrCat(document.name, "@", document.version));
      }
      stored = *std::move(found);
      return absl::OkStatus();
    }
    stored = document;
    return AddVersion(db, kind, document, max_versions_);
  }));
  return stored;
}

absl::StatusOr<StoredDocument> DocumentStore::Find(DocumentKind kind, std::string_view reference) {
  const auto parsed = ParseVersionReference(reference);
  if (!parsed) return errors::InvalidReference(NameOf(kind), reference.substr(0, 300));
  std::optional<StoredDocument> found;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    found = parsed->version.empty() ? ReadNewest(db, kind, *parsed)
                                    : FindVersion(db, kind, parsed->name, parsed->version);
    return absl::OkStatus();
  }));
  if (!found) return NotFound(kind, reference);
  return *std::move(found);
}

absl::StatusOr<std::vector<StoredDocument>> DocumentStore::List(DocumentKind kind,
                                                                std::string_view name,
                                                                std::string_view token,
                                                                size_t limit, std::string* next) {
  std::string after_name;
  std::string after_rank;
  if (!token.empty()) {
    ASSIGN_OR_RETURN(const auto after, sqlite::ParsePageToken(token));
    if (!IsVersion(after.second)) return errors::InvalidPageToken();
    after_name = std::string(after.first);
    after_rank = VersionSortKey(after.second);
  }
  std::vector<StoredDocument> page;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    Rows rows = db.Query(
        "SELECT name, version, document, created_by, created_at FROM documents WHERE kind = ?1 "
        "AND (?2 = '' OR name = ?2) AND (name > ?3 OR (name = ?3 AND rank < ?4)) "
        "ORDER BY name, rank DESC LIMIT ?5",
        kind, name, after_name, after_rank, limit + 1);
    while (rows.Next()) page.push_back(Read(rows));
    return absl::OkStatus();
  }));
  next->clear();
  if (page.size() > limit) {
    page.resize(limit);
    *next = sqlite::MakePageToken(page.back().name, page.back().version);
  }
  return page;
}

}  // namespace muster
