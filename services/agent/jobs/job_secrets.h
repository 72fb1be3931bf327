// The secrets of one job, from the jobs service to its container, and their removal.
#ifndef MUSTER_SERVICES_AGENT_JOBS_JOB_SECRETS_H_
#define MUSTER_SERVICES_AGENT_JOBS_JOB_SECRETS_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/jobs.pb.h"
#include "muster/v1/secrets.pb.h"
#include "services/agent/jobs/deployment_state.h"
#include "services/agent/jobs/job_vault.h"
#include "services/agent/jobs/output_redactor.h"
#include "services/agent/jobs/secret_folders.h"
#include "services/common/templates/secrets.h"

namespace muster {

// Gets the secrets of jobs. Thread-safe.
class SecretSource {
 public:
  virtual ~SecretSource() = default;

  // Blocks until they have arrived, for at most a minute, and little longer than `stopped` returns
  // false. The caller wipes the values. UNAVAILABLE (SECRET_UNAVAILABLE), with the cause.
  virtual absl::StatusOr<v1::SecretValues> Fetch(const std::string& job,
                                                 const std::function<bool()>& stopped) = 0;
};

// The objects that the jobs of a node share; they outlive them.
struct SecretHost {
  SecretSource* source = nullptr;          // null: the node has no secrets
  const SecretFolders* folders = nullptr;  // null likewise
};

// Not thread-safe.
class JobSecrets {
 public:
  // `references` are those of the command.
  JobSecrets(const SecretHost& host, std::string job, SecretReferences references);

  // Returns the path of the folder that Provide creates. SECRET_UNAVAILABLE.
  absl::StatusOr<std::string> Folder() const;

  // Lets Provide also serve the values by Vault's protocol (job_vault.h), for this time. Returns
  // the variables for clients in the container, which has the folder at `target`.
  std::vector<std::string> ServeVault(std::string deployment, absl::Duration time_limit,
                                      std::string_view target);

  // Lets the processes of this container (its id) read them so.
  void SetContainer(const std::string& id);

  // Ends that, once the container has ended. Returns "" or, for the final record, how often each
  // secret was read: "reads of secrets: db 2, user 1".
  std::string EndVault();

  // Fetches the values, checks that they are those of the command, and writes them for the user of
  // the container. SECRET_UNAVAILABLE.
  absl::Status Provide(const std::string& user, const std::function<bool()>& stopped);

  // Reads what an earlier process of the agent has provided. If it is lost, as after a restart of
  // the machine, the output cannot be redacted, and Filter drops it. Serves again what that process
  // has served, until `expires`.
  void Restore(std::string deployment, absl::Time started, absl::Time expires);
  bool lost() const { return redactor_ == nullptr; }

  // Passes output with the values masked; some of it later, or at Finish.
  void Filter(v1::JobStream stream, std::string_view data, OutputRedactor::Sink sink);
  void Finish(OutputRedactor::Sink sink);

  // Returns whether the text contains a value, as Filter finds it. Not if they are lost.
  bool AnyIn(std::string_view text) const { return redactor_->Redact(text) != text; }

  // Removes the folder. Logs a failure.
  void Remove();

 private:
  absl::Status CheckValues(const v1::SecretValues& values) const;
  void MakeRedactor(const v1::SecretValues& values, std::string_view token);

  const SecretHost host_;
  const std::string job_;
  const SecretReferences references_;
  std::string new_token_;  // of the vault that Provide makes; empty: none
  JobVault::Options vault_options_;
  std::unique_ptr<JobVault> vault_;  // null: none
  std::unique_ptr<OutputRedactor> redactor_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_JOB_SECRETS_H_
