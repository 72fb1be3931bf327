// The stored secrets of deployments.
#ifndef MUSTER_SERVICES_JOBS_SECRET_STORE_H_
#define MUSTER_SERVICES_JOBS_SECRET_STORE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/secrets.pb.h"
#include "services/common/identity/key_wrap.h"
#include "services/common/identity/secret.h"
#include "services/common/store/sqlite/local_database.h"
#include "services/common/templates/secrets.h"
#include "services/jobs/secret_provider.h"

namespace muster {

inline constexpr int64_t kMaxSecrets = 1'000;
inline constexpr int64_t kMaxSecretVersions = 10;
// The numbers of the versions of so many deleted secrets are remembered.
inline constexpr int64_t kMaxDeletedSecrets = 10'000;

// Values are encrypted in the database, each with its name and version. Thread-safe; calls wait for
// the disk.
class SecretStore final : public SecretProvider {
 public:
  // `database` with the schema of jobs_schema.h outlives this object.
  SecretStore(sqlite::LocalDatabase& database, KeyWrap key_wrap)
      : database_(database), key_wrap_(std::move(key_wrap)) {}

  // Stores a new version, unless the newest one has this value. Returns the secret with all
  // versions. INVALID_ARGUMENT (INVALID_SECRETS), RESOURCE_EXHAUSTED (TOO_MANY_SECRETS, DISK_FULL).
  absl::StatusOr<v1::Secret> Put(const std::string& name, std::string_view value,
                                 const std::string& created_by, absl::Time now);

  // Returns secrets by name, from the one after `token` on. INVALID_ARGUMENT (INVALID_PAGE_TOKEN).
  absl::StatusOr<std::vector<v1::Secret>> List(const std::string& token, size_t limit,
                                               std::string* next);

  // NOT_FOUND (SECRET_NOT_FOUND).
  absl::Status Delete(const std::string& name, const std::string& by, absl::Time now);

  // Sorts references by name, and replaces version 0 by the newest one. NOT_FOUND
  // (SECRET_NOT_FOUND) if a version is not stored, INVALID_ARGUMENT (INVALID_SECRETS) if they are
  // larger than kMaxSecretsOfJob together.
  absl::Status Resolve(SecretReferences* references) override;

  // Returns OK if all versions are stored; else fails as Resolve.
  absl::Status Check(const SecretReferences& references) override;

  // Decrypts the values, which the caller wipes (jobs/secrets_exchange.h). NOT_FOUND
  // (SECRET_NOT_FOUND), DATA_LOSS (SECRET_UNREADABLE).
  absl::StatusOr<v1::SecretValues> Read(const SecretReferences& references) override;

 private:
  sqlite::LocalDatabase& database_;
  const KeyWrap key_wrap_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_SECRET_STORE_H_
