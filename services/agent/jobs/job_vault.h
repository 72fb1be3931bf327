// The secrets of one job behind Vault's protocol: the socket in the folder of its secrets.
#ifndef MUSTER_SERVICES_AGENT_JOBS_JOB_VAULT_H_
#define MUSTER_SERVICES_AGENT_JOBS_JOB_VAULT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/secrets.pb.h"
#include "services/agent/vault/vault_socket.h"
#include "services/common/base/mutex.h"
#include "services/common/base/unique_fd.h"
#include "services/common/templates/secrets.h"

namespace muster {

// The files in the folder of the secrets of a job. No secret has a name with a dot.
inline constexpr char kVaultSocketFile[] = "vault.sock";
inline constexpr char kVaultTokenFile[] = "vault.token";  // for the next process of the agent
inline constexpr char kVaultReadsFile[] = "vault.reads";  // likewise

// Returns a new token.
std::string NewVaultToken();

// Serves the secrets to the processes of the container of the job that have its token, and counts
// the reads. Thread-safe.
class JobVault {
 public:
  struct Options {
    std::string folder;  // of the secrets, in memory (secret_folders.h)
    std::string job;
    std::string deployment;
    absl::Time created;  // of the token; wall times
    absl::Time expires;
    SecretReferences references;
  };

  // Creates the files with a token, and serves the values. UNAVAILABLE (SECRET_UNAVAILABLE).
  static absl::StatusOr<std::unique_ptr<JobVault>> Create(const Options& options,
                                                          const std::string& token,
                                                          const v1::SecretValues& values);

  // Serves again what an earlier process of the agent has served: the token and the counts are in
  // the folder. NOT_FOUND if it has served nothing, or UNAVAILABLE (SECRET_UNAVAILABLE).
  static absl::StatusOr<std::unique_ptr<JobVault>> Restore(const Options& options,
                                                           const v1::SecretValues& values);

  // Closes the socket.
  ~JobVault() = default;

  // Lets the processes of this container (its id) connect; before, none may.
  void SetContainer(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string& token() const { return token_; }

  // Returns the number of reads of each secret that was read, also those of an earlier process of
  // the agent.
  std::map<std::string, int64_t> Reads() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  JobVault(std::string token, UniqueFd reads);
  absl::Status Serve(const Options& options, const v1::SecretValues& values);
  bool Admits(int socket) const ABSL_LOCKS_EXCLUDED(mutex_);
  void Count(const std::vector<std::string>& names) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string token_;
  const UniqueFd reads_file_;
  mutable Mutex mutex_;
  std::string container_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> reads_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<VaultSocket> socket_;  // last: its thread uses the members above
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_JOB_VAULT_H_
