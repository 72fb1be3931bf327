// Which node may read the secrets of which job, and which has.
#ifndef MUSTER_SERVICES_JOBS_SECRET_READS_H_
#define MUSTER_SERVICES_JOBS_SECRET_READS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "muster/v1/secrets.pb.h"
#include "services/common/identity/revocation.h"
#include "services/common/store/sqlite/local_database.h"

namespace muster {

// A node asks once, and again if an answer is lost or its agent is restarted before the start.
inline constexpr int64_t kMaxSecretReads = 10;

// Thread-safe; calls wait for the disk.
class SecretReads {
 public:
  // `database` with the schema of jobs_schema.h outlives this object.
  explicit SecretReads(sqlite::LocalDatabase& database) : database_(database) {}

  // Stores that the node reads the secrets of the job with this request, whose signature the caller
  // has verified, and returns what it signed. A node may read from the creation of the deployment
  // until its start there is known, for as long as it may start: until the command expires, and its
  // time limit has passed, because the node loads the image before. After an operator cancelled the
  // deployment, or its creator was revoked, it may not. Each key once: a request that a relay
  // repeats gets nothing.
  //
  // NOT_FOUND (JOB_NOT_FOUND), PERMISSION_DENIED (SECRETS_REFUSED), FAILED_PRECONDITION
  // (SECRETS_CLOSED), RESOURCE_EXHAUSTED (DISK_FULL).
  absl::StatusOr<v1::Command::Deployment> Admit(const v1::FetchSecretsRequest& request,
                                                const RevocationList& revocations, absl::Time now);

  // Checks again that an admitted read is permitted, after a wait for its secrets. NOT_FOUND
  // (JOB_NOT_FOUND), FAILED_PRECONDITION (SECRETS_CLOSED).
  absl::Status Confirm(const v1::FetchSecretsRequest& request, const RevocationList& revocations,
                       absl::Time now);

  // Takes back a read that was admitted, and whose secrets were not sent: it does not count.
  absl::Status Withdraw(const v1::FetchSecretsRequest& request);

 private:
  sqlite::LocalDatabase& database_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_SECRET_READS_H_
