#include "services/agent/jobs/job_secrets.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
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
  MakeRedactor(values);
  return host_.folders->Create(job_, user, values);
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

void JobSecrets::Restore() {
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
  MakeRedactor(*values);
}

void JobSecrets::MakeRedactor(const v1::SecretValues& values) {
  std::vector<std::string_view> views;
  for (const auto& value : values.values()) views.emplace_back(value.value());
  redactor_ = std::make_unique<OutputRedactor>(views);
}

void JobSecrets::Filter(v1::JobStream stream, std::string_view data, OutputRedactor::Sink sink) {
  if (redactor_ != nullptr) redactor_->Add(stream, data, sink);
}

void JobSecrets::Finish(OutputRedactor::Sink sink) {
  if (redactor_ != nullptr) redactor_->Finish(sink);
}

void JobSecrets::CheckOutputs(WrittenOutputs* written) const {
  if (redactor_ == nullptr) {
    written->problems = {"they may contain secrets, which the node does not have any more"};
    return;
  }
  for (const auto& output : written->outputs.outputs()) {
    if (redactor_->Redact(output.value()) == output.value()) continue;
    written->problems.push_back(
        absl::StrCat(output.name(), ": contains the value of a secret; declare it sensitive"));
  }
  for (std::string& problem : written->problems) problem = redactor_->Redact(problem);
}

void JobSecrets::Remove() const {
  if (host_.folders == nullptr) return;
  const absl::Status removed = host_.folders->Remove(job_);
  if (removed.ok()) return;
  Log(LogLevel::kError, "the secrets of a job cannot be removed; remove them by hand",
      {{"job", job_}, {"folder", host_.folders->PathOf(job_).value_or("")}, {"error", removed}});
}

}  // namespace muster
