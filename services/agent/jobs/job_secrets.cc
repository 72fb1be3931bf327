#include "services/agent/jobs/job_secrets.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/templates.h"
#include "services/common/jobs/secrets_exchange.h"

namespace muster {

JobSecrets::JobSecrets(const SecretHost& host, std::string job, SecretReferences references)
    : host_(host), job_(std::move(job)), references_(std::move(references)) {}

absl::StatusOr<std::string> JobSecrets::Folder() const {
  if (host_.source == nullptr || host_.folders == nullptr) {
    return errors::SecretUnavailable("this agent has no way to the jobs service");
  }
  return host_.folders->PathOf(job_);
}

absl::Status JobSecrets::Provide(const std::string& user, const std::function<bool()>& stopped) {
  RETURN_IF_ERROR(Folder().status());
  ASSIGN_OR_RETURN(v1::SecretValues values, host_.source->Fetch(job_, stopped));
  const absl::Cleanup wipe = [&values] { Wipe(&values); };
  RETURN_IF_ERROR(CheckValues(values));
  MakeRedactor(values, new_token_);
  RETURN_IF_ERROR(host_.folders->Create(job_, user, values));
  if (new_token_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(vault_options_.folder, Folder());
  vault_options_.created = absl::Now();
  vault_options_.expires += vault_options_.created - absl::UnixEpoch();
  ASSIGN_OR_RETURN(vault_, JobVault::Create(vault_options_, new_token_, values));
  return absl::OkStatus();
}

std::vector<std::string> JobSecrets::ServeVault(std::string deployment, absl::Duration time_limit,
                                                std::string_view target) {
  new_token_ = NewVaultToken();
  vault_options_.job = job_;
  vault_options_.deployment = std::move(deployment);
  vault_options_.references = references_;
  vault_options_.expires = absl::UnixEpoch() + time_limit;  // after the creation
  return {absl::StrCat("VAULT_ADDR=unix://", ToAbsl(target), "/", kVaultSocketFile),
          absl::StrCat("VAULT_TOKEN=", new_token_),
          absl::StrCat("VAULT_PATH=", ToAbsl(kVaultPath))};
}

void JobSecrets::SetContainer(const std::string& id) {
  if (vault_ != nullptr) vault_->SetContainer(id);
}

std::string JobSecrets::EndVault() {
  if (vault_ == nullptr) return "";
  const auto reads = vault_->Reads();
  vault_.reset();
  if (reads.empty()) return "";
  return absl::StrCat("reads of secrets: ", absl::StrJoin(reads, ", ", absl::PairFormatter(" ")));
}

absl::Status JobSecrets::CheckValues(const v1::SecretValues& values) const {
  if (values.ByteSizeLong() > 2 * kMaxSecretsOfJob) {
    return errors::SecretUnavailable("the answer is larger than the secrets of a job can be");
  }
  bool same = values.values_size() == references_.size();
  for (int i = 0; same && i < references_.size(); ++i) {
    const v1::SecretValues::Value& value = values.values(i);
    same = value.name() == references_[i].name() && value.secret() == references_[i].secret() &&
           value.version() == references_[i].version();
  }
  return same ? absl::OkStatus()
              : errors::SecretUnavailable("the answer has other secrets than the command");
}

void JobSecrets::Restore(std::string deployment, absl::Time started, absl::Time expires) {
  if (host_.folders == nullptr) return;
  auto values = host_.folders->Read(job_);
  if (!values.ok()) {
    return Log(LogLevel::kWarning,
               "the secrets of a job are not in memory any more: its output is not recorded",
               {{"job", job_}, {"error", values.status()}});
  }
  const absl::Cleanup wipe = [&values] { Wipe(&*values); };
  std::set<std::string> names;
  for (const auto& value : values->values()) names.insert(value.name());
  for (const auto& reference : references_) {
    if (!names.contains(reference.name())) return;
  }
  auto vault = JobVault::Restore({.folder = host_.folders->PathOf(job_).value_or(""),
                                  .job = job_,
                                  .deployment = std::move(deployment),
                                  .created = started,
                                  .expires = expires,
                                  .references = references_},
                                 *values);
  if (vault.ok()) {
    vault_ = *std::move(vault);
  } else if (!absl::IsNotFound(vault.status())) {
    // Its token is not known: the output cannot be masked completely.
    return Log(LogLevel::kError, "the secrets of a container are not served any more",
               {{"job", job_}, {"error", vault.status()}});
  }
  MakeRedactor(*values, vault_ == nullptr ? "" : vault_->token());
}

void JobSecrets::MakeRedactor(const v1::SecretValues& values, std::string_view token) {
  std::vector<std::string_view> views;
  for (const auto& value : values.values()) views.emplace_back(value.value());
  if (!token.empty()) views.push_back(token);
  redactor_ = std::make_unique<OutputRedactor>(views);
}

void JobSecrets::Filter(v1::JobStream stream, std::string_view data, OutputRedactor::Sink sink) {
  if (redactor_ != nullptr) redactor_->Add(stream, data, sink);
}

void JobSecrets::Finish(OutputRedactor::Sink sink) {
  if (redactor_ != nullptr) redactor_->Finish(sink);
}

void JobSecrets::Remove() {
  vault_.reset();
  if (host_.folders == nullptr) return;
  const absl::Status removed = host_.folders->Remove(job_);
  if (removed.ok()) return;
  Log(LogLevel::kError, "the secrets of a job cannot be removed; remove them by hand",
      {{"job", job_}, {"folder", host_.folders->PathOf(job_).value_or("")}, {"error", removed}});
}

}  // namespace muster
