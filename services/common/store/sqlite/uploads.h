// Open uploads and their owners.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_UPLOADS_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_UPLOADS_H_

#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/store/commands.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/feed.h"

namespace muster::sqlite {

absl::StatusOr<OpenUpload::Result> Execute(WriteContext& context, const OpenUpload& command);
absl::StatusOr<AbandonUpload::Result> Execute(WriteContext& context, const AbandonUpload& command);

// These functions read; the caller holds a read transaction.
std::optional<UploadRecord> ReadUpload(Connection& db, std::string_view id);
std::vector<UploadRecord> ReadUploads(Connection& db, std::string_view run);
std::vector<UploadRecord> ReadExpiredUploads(Connection& db, int64_t now, int limit);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_UPLOADS_H_
