#include "services/jobs/secret_store.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/runs.h"
#include "services/common/errors/templates.h"
#include "services/common/jobs/secrets_exchange.h"
#include "services/common/rpc/proto_time.h"
#include "services/jobs/audit_outbox.h"

namespace muster {
namespace {

using sqlite::Blob;
using sqlite::Connection;
using sqlite::Rows;

struct Entry {
  int64_t latest = 0;
  bool deleted = false;
};

std::optional<Entry> ReadEntry(Connection& db, const std::string& name) {
  Rows rows = db.Query("SELECT latest, deleted_at FROM secrets WHERE name = ?", name);
  if (!rows.Next()) return std::nullopt;
  Entry entry;
  entry.latest = rows.Int();
  entry.deleted = rows.Int() != 0;
  return entry;
}

int64_t CountExisting(Connection& db) {
  Rows rows = db.Query("SELECT count(*) FROM secrets WHERE deleted_at = 0");
  return rows.Next() ? rows.Int() : 0;
}

std::optional<std::string> ReadWrapped(Connection& db, const std::string& name, int64_t version) {
  Rows rows =
      db.Query("SELECT value FROM secret_versions WHERE name = ? AND version = ?", name, version);
  if (!rows.Next()) return std::nullopt;
  return rows.Text();
}

v1::Secret ReadSecret(Connection& db, const std::string& name) {
  v1::Secret secret;
  secret.set_secret(name);
  Rows rows = db.Query(
      "SELECT version, size, created_by, created_at FROM secret_versions WHERE name = ? "
      "ORDER BY version DESC",
      name);
  while (rows.Next()) {
    v1::Secret::Version& version = *secret.add_versions();
    version.set_version(rows.Int());
    version.set_size(rows.Int());
    version.set_created_by(rows.Text());
    ToProto(absl::FromUnixMicros(rows.Int()), version.mutable_create_time());
  }
  return secret;
}

std::string Reference(const std::string& name, int64_t version) {
  return absl::StrCat(name, "@", version);
}

absl::Status CheckPut(const std::string& name, std::string_view value) {
  if (!IsSecretName(name)) {
    return errors::InvalidSecretValue(absl::StrCat("\"", absl::Utf8SafeCEscape(name.substr(0, 300)),
                                                   "\" is no name of a secret, such as prod/db"));
  }
  if (value.empty() || value.size() > kMaxSecret) {
    return errors::InvalidSecretValue(
        absl::StrCat("the value has ", value.size(), " bytes, and must have 1 to ", kMaxSecret));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::Secret> SecretStore::Put(const std::string& name, std::string_view value,
                                            const std::string& created_by, absl::Time now) {
  RETURN_IF_ERROR(CheckPut(name, value));
  v1::Secret secret;
  RETURN_IF_ERROR(database_.Write([&](Connection& db) -> absl::Status {
    const std::optional<Entry> entry = ReadEntry(db, name);
    const bool exists = entry && !entry->deleted;
    const int64_t latest = entry ? entry->latest : 0;
    if (exists) {
      const auto wrapped = ReadWrapped(db, name, latest);
      const auto stored = key_wrap_.UnwrapSecret(wrapped.value_or(""), Reference(name, latest));
      // One that cannot be read is replaced.
      if (stored.ok() && stored->view() == value) {
        secret = ReadSecret(db, name);
        return absl::OkStatus();
      }
    } else if (CountExisting(db) >= kMaxSecrets) {
      return errors::TooManySecrets(kMaxSecrets);
    }
    const int64_t version = latest + 1;
    ASSIGN_OR_RETURN(const auto wrapped, key_wrap_.WrapSecret(value, Reference(name, version)));
    db.Run("INSERT OR REPLACE INTO secrets VALUES (?, ?, 0)", name, version);
    db.Run("INSERT INTO secret_versions VALUES (?, ?, ?, ?, ?, ?)", name, version, Blob{wrapped},
           static_cast<int64_t>(value.size()), created_by, absl::ToUnixMicros(now));
    db.Run("DELETE FROM secret_versions WHERE name = ? AND version <= ?", name,
           version - kMaxSecretVersions);
    AddAuditRecord(db, v1::AUDIT_KIND_SECRET, {created_by, ""}, name, "stored",
                   absl::StrCat("version ", version), now);
    secret = ReadSecret(db, name);
    return absl::OkStatus();
  }));
  return secret;
}

absl::StatusOr<std::vector<v1::Secret>> SecretStore::List(const std::string& token, size_t limit,
                                                          std::string* next) {
  if (!token.empty() && !IsSecretName(token)) return errors::InvalidPageToken();
  std::vector<v1::Secret> page;
  next->clear();
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    std::vector<std::string> names;
    {
      Rows rows = db.Query(
          "SELECT name FROM secrets WHERE deleted_at = 0 AND name > ? ORDER BY name LIMIT ?", token,
          limit + 1);
      while (rows.Next()) names.push_back(rows.Text());
    }
    if (names.size() > limit) {
      names.resize(limit);
      *next = names.back();
    }
    for (const std::string& name : names) page.push_back(ReadSecret(db, name));
    return absl::OkStatus();
  }));
  return page;
}

absl::Status SecretStore::Delete(const std::string& name, const std::string& by, absl::Time now) {
  return database_.Write([&](Connection& db) -> absl::Status {
    const std::optional<Entry> entry = ReadEntry(db, name);
    if (!entry || entry->deleted) {
      return db.failed() ? absl::OkStatus()
                         : errors::SecretNotFound(absl::Utf8SafeCEscape(name.substr(0, 300)));
    }
    db.Run("DELETE FROM secret_versions WHERE name = ?", name);
    db.Run("UPDATE secrets SET deleted_at = ? WHERE name = ?",
           std::max<int64_t>(absl::ToUnixMicros(now), 1), name);
    AddAuditRecord(db, v1::AUDIT_KIND_SECRET, {by, ""}, name, "deleted", "", now);
    db.Run(
        "DELETE FROM secrets WHERE name IN (SELECT name FROM secrets WHERE deleted_at != 0 "
        "ORDER BY deleted_at DESC, name LIMIT -1 OFFSET ?)",
        kMaxDeletedSecrets);
    return absl::OkStatus();
  });
}

absl::Status SecretStore::Resolve(SecretReferences* references) {
  if (references->size() > kMaxDeploymentSecrets) {
    return errors::InvalidSecrets(absl::StrCat("a deployment has at most ", kMaxDeploymentSecrets));
  }
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    for (v1::Command::SecretReference& reference : *references) {
      const auto entry = ReadEntry(db, reference.secret());
      if (reference.version() == 0 && entry && !entry->deleted) {
        reference.set_version(entry->latest);
      }
    }
    return absl::OkStatus();
  }));
  std::ranges::sort(*references, {}, [](const auto& reference) { return reference.name(); });
  return Check(*references);
}

absl::Status SecretStore::Check(const SecretReferences& references) {
  int64_t bytes = 0;
  std::string missing;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    for (const v1::Command::SecretReference& reference : references) {
      Rows rows = db.Query("SELECT size FROM secret_versions WHERE name = ? AND version = ?",
                           reference.secret(), reference.version());
      if (rows.Next()) {
        bytes += rows.Int();
      } else if (missing.empty()) {
        missing = reference.version() == 0 ? reference.secret() : SecretText(reference);
      }
    }
    return absl::OkStatus();
  }));
  if (!missing.empty()) {
    return errors::SecretNotFound(absl::Utf8SafeCEscape(missing.substr(0, 300)));
  }
  if (bytes <= static_cast<int64_t>(kMaxSecretsOfJob)) return absl::OkStatus();
  return errors::InvalidSecrets(absl::StrCat("they have ", bytes, " bytes together, and at most ",
                                             kMaxSecretsOfJob, " are possible"));
}

absl::StatusOr<v1::SecretValues> SecretStore::Read(const SecretReferences& references) {
  RETURN_IF_ERROR(Check(references));
  std::vector<std::optional<std::string>> wrapped;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    for (const v1::Command::SecretReference& reference : references) {
      wrapped.push_back(ReadWrapped(db, reference.secret(), reference.version()));
    }
    return absl::OkStatus();
  }));
  v1::SecretValues values;
  for (int i = 0; i < references.size(); ++i) {
    const std::string text = SecretText(references[i]);
    if (!wrapped[static_cast<size_t>(i)]) {
      Wipe(&values);
      return errors::SecretNotFound(text);
    }
    const auto value = key_wrap_.UnwrapSecret(*wrapped[static_cast<size_t>(i)], text);
    if (!value.ok()) {
      Log(LogLevel::kError, "a secret cannot be decrypted",
          {{"secret", text}, {"error", value.status()}});
      Wipe(&values);
      return errors::SecretUnreadable(text);
    }
    v1::SecretValues::Value& added = *values.add_values();
    added.set_name(references[i].name());
    added.set_secret(references[i].secret());
    added.set_version(references[i].version());
    added.mutable_value()->assign(value->view());
  }
  return values;
}

}  // namespace muster
