// The stored versions of template types and templates.
#ifndef MUSTER_SERVICES_JOBS_DOCUMENT_STORE_H_
#define MUSTER_SERVICES_JOBS_DOCUMENT_STORE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/local_database.h"

namespace muster {

// The limit for each kind; one creator may have half of it.
inline constexpr int64_t kMaxVersions = 10'000;

enum class DocumentKind { kType = 0, kTemplate = 1 };

struct StoredDocument {
  std::string name;
  std::string version;
  std::string document;  // JSON
  std::string created_by;
  int64_t created_at = 0;  // microseconds
  // The gateway that forwarded the call (ChangeOrigin). It is in the audit record alone.
  std::string vouched_by = {};
  std::string built_by = {};  // the deployment; empty: none. It is in the audit record alone.
};

// For other transactions with the documents: return a whole version, and store a new one with its
// audit record. RESOURCE_EXHAUSTED (TOO_MANY_VERSIONS).
std::optional<StoredDocument> FindVersion(sqlite::Connection& db, DocumentKind kind,
                                          const std::string& name, const std::string& version);
absl::Status AddVersion(sqlite::Connection& db, DocumentKind kind, const StoredDocument& document,
                        int64_t max_versions);

// A version never changes, and is never removed. Thread-safe; calls wait for the disk.
class DocumentStore {
 public:
  // `database` with the schema of jobs_schema.h outlives this object.
  explicit DocumentStore(sqlite::LocalDatabase& database, int64_t max_versions = kMaxVersions)
      : database_(database), max_versions_(max_versions) {}

  // Stores a version, and returns what is stored: the earlier document if it has the same content.
  // ALREADY_EXISTS (VERSION_EXISTS), RESOURCE_EXHAUSTED (TOO_MANY_VERSIONS, DISK_FULL).
  absl::StatusOr<StoredDocument> Put(DocumentKind kind, const StoredDocument& document);

  // Returns the version that a reference means (version.h). INVALID_ARGUMENT (INVALID_REFERENCE),
  // NOT_FOUND (TYPE_NOT_FOUND, TEMPLATE_NOT_FOUND).
  absl::StatusOr<StoredDocument> Find(DocumentKind kind, std::string_view reference);

  // Returns versions by name, and then the newest first, from the one after `token` on; with
  // `name`, only its versions. `next` is set to the token of the next page; empty: there is none.
  // INVALID_ARGUMENT (INVALID_PAGE_TOKEN).
  absl::StatusOr<std::vector<StoredDocument>> List(DocumentKind kind, std::string_view name,
                                                   std::string_view token, size_t limit,
                                                   std::string* next);

 private:
  sqlite::LocalDatabase& database_;
  const int64_t max_versions_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_DOCUMENT_STORE_H_
