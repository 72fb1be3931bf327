#include "services/agent/jobs/job_folder.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/jobs.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

// The first byte of an entry of `job`.
constexpr char kCommand = 'c';    // a serialised SignedCommand
constexpr char kProcess = 'p';    // ProcessMark::ToText
constexpr char kContainer = 'k';  // ContainerMark::ToText
constexpr char kStop = 's';       // StopMark::ToText
constexpr char kBuild = 'b';      // nothing
constexpr char kDone = 'd';       // nothing

// jobs.proto: a command has 128 KiB and a chain of 16 KiB.
constexpr JournalOptions kOptions = {.max_record = uint32_t{256} << 10,
                                     .max_size = int64_t{1} << 20};

std::string JobPath(const std::string& folder) { return absl::StrCat(folder, "/job"); }
std::string RecordsPath(const std::string& folder) { return absl::StrCat(folder, "/records"); }

}  // namespace

absl::StatusOr<std::unique_ptr<NodeJobFolder>> NodeJobFolder::Create(
    FileOps& ops, const std::string& jobs, const std::string& job, const std::string& node,
    const v1::SignedCommand& command) {
  std::unique_ptr<NodeJobFolder> made(new NodeJobFolder(ops, absl::StrCat(jobs, "/", job)));
  const absl::Status status = made->Fill(jobs, job, node, command);
  if (status.ok()) return made;
  if (absl::IsAlreadyExists(status)) return status;
  // Without its command the folder is no job, even if the rest cannot be removed.
  ops.Remove(JobPath(made->folder_)).IgnoreError();
  RemoveTree(ops, made->folder_).IgnoreError();
  ops.SyncFolder(jobs).IgnoreError();
  return status;
}

absl::Status NodeJobFolder::Fill(const std::string& jobs, const std::string& job,
                                 const std::string& node, const v1::SignedCommand& command) {
  RETURN_IF_ERROR(ReadCommand(command));
  RETURN_IF_ERROR(ops_.MakeFolder(folder_));
  ASSIGN_OR_RETURN(log_, RecordOutbox::Create(ops_, RecordsPath(folder_), job, node));
  ASSIGN_OR_RETURN(journal_, Journal::Create(ops_, JobPath(folder_), kOptions));
  RETURN_IF_ERROR(ops_.SyncFolder(jobs));
  return Note(kCommand, command.SerializeAsString());
}

absl::StatusOr<std::unique_ptr<NodeJobFolder>> NodeJobFolder::Open(FileOps& ops,
                                                                   const std::string& jobs,
                                                                   const std::string& job,
                                                                   const std::string& node) {
  std::unique_ptr<NodeJobFolder> opened(new NodeJobFolder(ops, absl::StrCat(jobs, "/", job)));
  const std::string path = JobPath(opened->folder_);
  const auto end = Journal::Read(
      ops, path, [&](std::string_view entry, int64_t) { return opened->ReadEntry(entry); });
  if (absl::IsNotFound(end.status()) || (end.ok() && !opened->has_command_)) {
    return errors::JobUnfinished(opened->folder_);
  }
  if (!end.ok()) return end.status();
  if (opened->done_) return opened;
  ASSIGN_OR_RETURN(opened->journal_, Journal::Open(ops, path, [](std::string_view, int64_t) {
                     return absl::OkStatus();
                   }));
  RETURN_IF_ERROR(opened->OpenLog(job, node));
  return opened;
}

absl::Status NodeJobFolder::OpenLog(const std::string& job, const std::string& node) {
  const std::string path = RecordsPath(folder_);
  auto log = RecordOutbox::Open(ops_, path, job, node);
  const bool is_missing = absl::IsNotFound(log.status());
  // The journal is created before the command, and removed after the job is done.
  if (absl::IsDataLoss(log.status()) || is_missing) {
    log = RecordOutbox::Salvage(ops_, path, job, node);
  }
  if (!log.ok()) return log.status();
  log_ = *std::move(log);
  if (log_->has_final()) return absl::OkStatus();
  // Also if an earlier process has moved them away, and was killed before it could report that.
  const absl::Status damaged = ops_.Stat(DamagedRecords(path)).status();
  records_damaged_ = damaged.ok() || is_missing;
  return absl::IsNotFound(damaged) ? absl::OkStatus() : damaged;
}

absl::Status NodeJobFolder::ReadEntry(std::string_view entry) {
  const std::string_view body = entry.substr(1);
  switch (entry[0]) {
    case kCommand: {
      v1::SignedCommand command;
      if (!command.ParseFromArray(body.data(), static_cast<int>(body.size()))) break;
      has_command_ = true;
      return ReadCommand(command);
    }
    case kProcess: {
      auto mark = ProcessMark::FromText(body);
      if (!mark.ok()) break;
      process_ = *std::move(mark);
      return absl::OkStatus();
    }
    case kContainer: {
      auto mark = ContainerMark::FromText(body);
      if (!mark.ok()) break;
      container_ = *std::move(mark);
      return absl::OkStatus();
    }
    case kStop: {
      auto mark = StopMark::FromText(body);
      if (!mark.ok()) break;
      stop_ = *std::move(mark);
      return absl::OkStatus();
    }
    case kBuild:
      build_started_ = true;
      return absl::OkStatus();
    case kDone:
      done_ = true;
      return absl::OkStatus();
    default:
      break;
  }
  return errors::JobOfNodeDamaged(folder_);
}

absl::Status NodeJobFolder::ReadCommand(const v1::SignedCommand& signed_command) {
  v1::Command command;
  if (!command.ParseFromString(signed_command.command())) return errors::JobFolderDamaged(folder_);
  not_after_ = absl::FromUnixSeconds(command.not_after().seconds());
  time_limit_ = FromProto(command.time_limit());
  has_deployment_ = command.container().has_deployment();
  has_build_ = command.container().has_build();
  return absl::OkStatus();
}

absl::StatusOr<v1::Command::Container> NodeJobFolder::ReadContainerOfCommand() const {
  v1::Command command;
  const auto end =
      Journal::Read(ops_, JobPath(folder_), [&](std::string_view entry, int64_t) -> absl::Status {
        if (entry[0] != kCommand) return absl::OkStatus();
        v1::SignedCommand signed_command;
        const auto size = static_cast<int>(entry.size() - 1);
        if (!signed_command.ParseFromArray(entry.data() + 1, size) ||
            !command.ParseFromString(signed_command.command())) {
          return errors::JobOfNodeDamaged(folder_);
        }
        return absl::OkStatus();
      });
  if (!end.ok()) return end.status();
  return std::move(*command.mutable_container());
}

absl::StatusOr<v1::Command::Deployment> NodeJobFolder::ReadDeployment() const {
  ASSIGN_OR_RETURN(auto container, ReadContainerOfCommand());
  if (!container.has_deployment()) return errors::JobOfNodeDamaged(folder_);
  return std::move(*container.mutable_deployment());
}

absl::StatusOr<v1::Command::Build> NodeJobFolder::ReadBuild() const {
  ASSIGN_OR_RETURN(auto container, ReadContainerOfCommand());
  if (!container.has_build()) return errors::JobOfNodeDamaged(folder_);
  return std::move(*container.mutable_build());
}

absl::Status NodeJobFolder::Note(char kind, std::string_view body) {
  RETURN_IF_ERROR(journal_->Append(std::string(1, kind).append(body)));
  return journal_->Sync();
}

absl::Status NodeJobFolder::NoteProcess(const ProcessMark& mark) {
  process_ = mark;
  return Note(kProcess, mark.ToText());
}

absl::Status NodeJobFolder::NoteContainer(const ContainerMark& mark) {
  container_ = mark;
  return Note(kContainer, mark.ToText());
}

absl::Status NodeJobFolder::NoteStop(const StopMark& mark) {
  stop_ = mark;
  return Note(kStop, mark.ToText());
}

absl::Status NodeJobFolder::NoteBuild() {
  build_started_ = true;
  return Note(kBuild, "");
}

absl::Status NodeJobFolder::SetDone() {
  RETURN_IF_ERROR(Note(kDone, ""));
  done_ = true;
  journal_.reset();
  log_.reset();
  const absl::Status s = ops_.Remove(RecordsPath(folder_));
  return absl::IsNotFound(s) ? absl::OkStatus() : s;
}

absl::Status NodeJobFolder::Remove() {
  journal_.reset();
  log_.reset();
  // A crash in between leaves a folder without a command, which is no job.
  const absl::Status s = ops_.Remove(JobPath(folder_));
  if (!s.ok() && !absl::IsNotFound(s)) return s;
  return RemoveTree(ops_, folder_);
}

}  // namespace muster
