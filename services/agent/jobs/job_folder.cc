#include "services/agent/jobs/job_folder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/jobs.h"

namespace muster {
namespace {

constexpr int64_t kMaxCommandFile = int64_t{256} << 10;  // jobs.proto: 128 KiB and 16 KiB
constexpr int64_t kMaxMarkFile = 256;

}  // namespace

absl::StatusOr<std::unique_ptr<NodeJobFolder>> NodeJobFolder::Create(
    FileOps& ops, const std::string& jobs, const std::string& job, const std::string& node,
    const v1::SignedCommand& command) {
  std::unique_ptr<NodeJobFolder> made(new NodeJobFolder(ops, absl::StrCat(jobs, "/", job)));
  RETURN_IF_ERROR(made->ReadCommand(command));
  RETURN_IF_ERROR(ops.MakeFolder(made->folder_));
  ASSIGN_OR_RETURN(made->log_,
                   NodeRecordLog::Open(ops, absl::StrCat(made->folder_, "/records"), job, node));
  // The command comes last: with it the folder counts.
  absl::Status s =
      WriteFileDurably(ops, absl::StrCat(made->folder_, "/command"), command.SerializeAsString());
  if (s.ok()) s = ops.SyncFolder(jobs);
  if (!s.ok()) return s;
  return made;
}

absl::StatusOr<std::unique_ptr<NodeJobFolder>> NodeJobFolder::Open(FileOps& ops,
                                                                   const std::string& jobs,
                                                                   const std::string& job,
                                                                   const std::string& node) {
  std::unique_ptr<NodeJobFolder> opened(new NodeJobFolder(ops, absl::StrCat(jobs, "/", job)));
  const std::string& folder = opened->folder_;
  const auto bytes = ReadSmallFile(ops, absl::StrCat(folder, "/command"), kMaxCommandFile);
  v1::SignedCommand command;
  if (absl::IsNotFound(bytes.status())) return errors::JobFolderDamaged(folder);
  if (!bytes.ok()) return bytes.status();
  if (!command.ParseFromString(*bytes)) return errors::JobFolderDamaged(folder);
  RETURN_IF_ERROR(opened->ReadCommand(command));
  opened->done_ = ops.Stat(absl::StrCat(folder, "/done")).ok();
  if (opened->done_) return opened;
  const auto mark = ReadSmallFile(ops, absl::StrCat(folder, "/process"), kMaxMarkFile);
  if (mark.ok()) {
    ASSIGN_OR_RETURN(opened->process_, ProcessMark::FromText(*mark));
  } else if (!absl::IsNotFound(mark.status())) {
    return mark.status();
  }
  ASSIGN_OR_RETURN(opened->log_,
                   NodeRecordLog::Open(ops, absl::StrCat(folder, "/records"), job, node));
  return opened;
}

absl::Status NodeJobFolder::ReadCommand(const v1::SignedCommand& signed_command) {
  v1::Command command;
  if (!command.ParseFromString(signed_command.command())) return errors::JobFolderDamaged(folder_);
  command_sha256_ = DigestBytes(Sha256::Of(signed_command.command()));
  not_after_ = absl::FromUnixSeconds(command.not_after().seconds());
  return absl::OkStatus();
}

absl::Status NodeJobFolder::NoteProcess(const ProcessMark& mark) {
  process_ = mark;
  return WriteFileDurably(ops_, absl::StrCat(folder_, "/process"), mark.ToText());
}

absl::Status NodeJobFolder::SetDone() {
  RETURN_IF_ERROR(WriteFileDurably(ops_, absl::StrCat(folder_, "/done"), ""));
  done_ = true;
  log_.reset();
  for (const char* name : {"/records", "/process"}) {
    const absl::Status s = ops_.Remove(absl::StrCat(folder_, name));
    if (!s.ok() && !absl::IsNotFound(s)) return s;
  }
  return absl::OkStatus();
}

absl::Status NodeJobFolder::Remove() {
  log_.reset();
  // A crash on the way leaves a folder without a command, which counts for nothing.
  const absl::Status s = ops_.Remove(absl::StrCat(folder_, "/command"));
  if (!s.ok() && !absl::IsNotFound(s)) return s;
  return RemoveTree(ops_, folder_);
}

}  // namespace muster
