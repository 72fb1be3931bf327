// The secrets of a node's jobs, from the jobs service through the relay.
#ifndef MUSTER_SERVICES_AGENT_ATTACH_RELAY_SECRETS_H_
#define MUSTER_SERVICES_AGENT_ATTACH_RELAY_SECRETS_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/agent/jobs/job_secrets.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/service_channel.h"

namespace muster {

// Each request has a new key, so a lost answer is of no use to anyone. Repeats a request while the
// relay or the jobs service is unreachable. Thread-safe.
class RelaySecrets final : public SecretSource {
 public:
  struct Options {
    std::string fleet;
    std::string node;
    std::string identity_folder;  // as in AttachedNodeOptions
    absl::Duration patience = absl::Minutes(1);
  };

  explicit RelaySecrets(Options options) : options_(std::move(options)) {}

  // Sets where the relay is reached: `channel` returns null while there is none. Null: Fetch fails.
  void SetChannel(GetChannel channel) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<v1::SecretValues> Fetch(const std::string& job,
                                         const std::function<bool()>& stopped) override;

 private:
  // Returns an error with another reason than SECRET_UNAVAILABLE if the call failed.
  absl::StatusOr<v1::SecretValues> Try(const std::string& job, const std::function<bool()>& stopped)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  Mutex mutex_;
  GetChannel channel_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_ATTACH_RELAY_SECRETS_H_
