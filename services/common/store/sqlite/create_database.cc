#include "services/common/store/sqlite/create_database.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/store.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/integrity.h"

namespace muster::sqlite {
namespace {

absl::Status RemoveIfPresent(FileOps& ops, const std::string& path) {
  const absl::Status removed = ops.Remove(path);
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

absl::Status Write(const std::string& draft, const std::string& path, const char* pragmas) {
  ASSIGN_OR_RETURN(auto db, Connection::Open(draft, Connection::Access::kReadWrite));
  db->Execute(pragmas);
  ASSIGN_OR_RETURN(const bool wal, UseWriteAheadLog(*db));
  return wal ? absl::OkStatus() : errors::StoreNeedsLocalDisk(path);
}

}  // namespace

absl::StatusOr<bool> DatabaseExists(FileOps& ops, const std::string& path) {
  const auto file = ops.Stat(path);
  if (absl::IsNotFound(file.status())) return false;
  if (!file.ok()) return file.status();
  return file->size > 0;
}

absl::Status CreateDatabase(FileOps& ops, const std::string& path, const char* pragmas) {
  const std::string draft = path + ".new";
  // Those of the draft are left by a crash; those of the database would be applied to the new one.
  for (const std::string& of : {draft, path}) {
    for (const char* suffix : {"-journal", "-wal", "-shm"}) {
      RETURN_IF_ERROR(RemoveIfPresent(ops, absl::StrCat(of, suffix)));
    }
  }
  RETURN_IF_ERROR(RemoveIfPresent(ops, draft));
  {
    ASSIGN_OR_RETURN(const auto file, ops.Create(draft));
    RETURN_IF_ERROR(Write(draft, path, pragmas));
    RETURN_IF_ERROR(file->SyncData());
  }
  RETURN_IF_ERROR(ops.SyncFolder(ParentFolder(path)));  // the removals precede the new name
  RETURN_IF_ERROR(ops.Rename(draft, path));
  return ops.SyncFolder(ParentFolder(path));
}

}  // namespace muster::sqlite
