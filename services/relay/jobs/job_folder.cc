#include "services/relay/jobs/job_folder.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/jobs.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr char kHalfMade[] = ".new-";
constexpr int64_t kMaxFile = int64_t{64} << 20;  // 50,000 names of 253 bytes, and as much again

template <typename Message>
absl::StatusOr<Message> ReadMessage(FileOps& files, const std::string& path) {
  ASSIGN_OR_RETURN(const auto bytes, ReadSmallFile(files, path, kMaxFile));
  Message message;
  if (!message.ParseFromString(bytes)) {
    return errors::JobDamaged(path);
  }
  return message;
}

}  // namespace

std::string RecordsPath(const std::string& folder) { return folder + "/records"; }

absl::StatusOr<std::vector<std::string>> ListJobFolders(FileOps& files, const std::string& folder) {
  RETURN_IF_ERROR(MakeFolders(files, folder));
  ASSIGN_OR_RETURN(auto listed, files.List(folder));
  std::vector<std::string> ids;
  for (FolderEntry& entry : listed) {
    if (absl::StartsWith(entry.name, kHalfMade)) {
      RETURN_IF_ERROR(RemoveTree(files, absl::StrCat(folder, "/", entry.name)));
    } else if (entry.type == FileType::kFolder) {
      ids.push_back(std::move(entry.name));
    }
  }
  return ids;
}

absl::Status CreateJobFolder(FileOps& files, const std::string& folder,
                             const v1::SubmitJobRequest& request, const v1::Job& job,
                             const std::vector<std::string>& targets) {
  const std::string parent = ParentFolder(folder);
  const std::string half = absl::StrCat(parent, "/", kHalfMade, job.job());
  absl::Status status = RemoveTree(files, half);
  if (status.ok()) status = files.MakeFolder(half);
  if (status.ok()) {
    status = WriteFileDurably(files, half + "/request", request.SerializeAsString());
  }
  if (status.ok()) {
    status = WriteFileDurably(files, half + "/targets",
                              absl::StrCat(absl::StrJoin(targets, "\n"), "\n"));
  }
  if (status.ok()) status = WriteFileDurably(files, half + "/job", job.SerializeAsString());
  if (status.ok()) status = files.RenameNoReplace(half, folder);
  if (status.ok()) status = files.SyncFolder(parent);
  if (!status.ok()) RemoveTree(files, half).IgnoreError();
  return absl::IsAlreadyExists(status) ? errors::JobExists(job.job()) : status;
}

absl::StatusOr<JobRequest> ReadRequest(FileOps& files, const std::string& folder) {
  ASSIGN_OR_RETURN(auto message, ReadMessage<v1::SubmitJobRequest>(files, folder + "/request"));
  return ReadJobRequest(std::move(message));
}

absl::StatusOr<v1::Job> ReadJob(FileOps& files, const std::string& folder) {
  return ReadMessage<v1::Job>(files, folder + "/job");
}

absl::StatusOr<std::vector<std::string>> ReadTargets(FileOps& files, const std::string& folder) {
  ASSIGN_OR_RETURN(const auto text, ReadSmallFile(files, folder + "/targets", kMaxFile));
  return std::vector<std::string>(absl::StrSplit(text, '\n', absl::SkipEmpty()));
}

absl::Status WriteJob(FileOps& files, const std::string& folder, const v1::Job& job) {
  return WriteFileDurably(files, folder + "/job", job.SerializeAsString());
}

absl::Status MarkCancelled(FileOps& files, const std::string& folder) {
  return WriteFileDurably(files, folder + "/cancelled", "");
}

bool IsCancelled(FileOps& files, const std::string& folder) {
  return files.Stat(folder + "/cancelled").ok();
}

v1::Job NewJob(const JobRequest& request, const std::string& submitter, absl::Time now) {
  v1::Job job;
  job.set_job(request.command.job());
  job.set_submitted_by(submitter);
  ToProto(now, job.mutable_submit_time());
  job.set_state(v1::JOB_STATE_RUNNING);
  job.set_action(request.command.action());
  *job.mutable_argv() = request.command.argv();
  *job.mutable_classes() = request.command.classes();
  job.set_discard_output(request.command.discard_output());
  ToProto(now + request.begin_within() + FromProto(request.command.time_limit()),
          job.mutable_deadline());
  return job;
}

JobState::Plan PlanOf(const JobRequest& request, const v1::Job& job,
                      std::vector<std::string> targets, int64_t max_output) {
  const absl::Time submitted = FromProto(job.submit_time());
  JobState::Plan plan;
  plan.job = job;
  plan.targets = std::move(targets);
  plan.parallel = request.message.parallel();
  plan.wait_until = submitted + request.wait();
  plan.begin_until = submitted + request.begin_within();
  plan.time_limit = FromProto(request.command.time_limit());
  plan.max_output = max_output;
  return plan;
}

v1::JobCancel CancelOf(const std::string& job) {
  v1::JobCancel cancel;
  cancel.set_job(job);
  return cancel;
}

}  // namespace muster
