// The separate status listeners of runs.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_STATUS_LISTENERS_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_STATUS_LISTENERS_H_

#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/common/store/commands.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/feed.h"

namespace muster::sqlite {

absl::StatusOr<SetStatusListener::Result> Execute(WriteContext& context,
                                                  const SetStatusListener& command);
absl::StatusOr<ReportStatusListener::Result> Execute(WriteContext& context,
                                                     const ReportStatusListener& command);

// The caller holds a read transaction.
std::optional<StatusListenerRecord> ReadStatusListener(Connection& db, std::string_view run);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_STATUS_LISTENERS_H_
