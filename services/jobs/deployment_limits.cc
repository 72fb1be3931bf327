#include "services/jobs/deployment_limits.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/errors/templates.h"
#include "services/jobs/content_rows.h"

namespace muster {
namespace {

using sqlite::Connection;
using sqlite::Rows;

constexpr int64_t kRemovedAtOnce = 10;

int64_t CountOf(Connection& db, bool ended) {
  Rows rows = db.Query("SELECT count(*) FROM deployments WHERE ended = ?", ended);
  return rows.Next() ? rows.Int() : 0;
}

int64_t CountOpenOf(Connection& db, const std::string& creator) {
  Rows rows =
      db.Query("SELECT count(*) FROM deployments WHERE ended = 0 AND created_by = ?", creator);
  return rows.Next() ? rows.Int() : 0;
}

// Removes the oldest ended deployments of the creator that has most of them, at most
// kRemovedAtOnce: the next new deployment removes more.
void RemoveOldest(Connection& db, int64_t max_ended) {
  const int64_t excess = CountOf(db, true) - max_ended;
  if (excess <= 0) return;
  std::vector<int64_t> oldest;
  {
    Rows rows = db.Query(
        "SELECT id FROM deployments WHERE ended = 1 AND created_by = "
        "(SELECT created_by FROM deployments WHERE ended = 1 "
        "GROUP BY created_by ORDER BY count(*) DESC, min(id) LIMIT 1) ORDER BY id LIMIT ?",
        std::min(excess, kRemovedAtOnce));
    while (rows.Next()) oldest.push_back(rows.Int());
  }
  for (const int64_t id : oldest) {
    db.Run("DELETE FROM deployment_nodes WHERE deployment = ?", id);
    DeleteContentsOf(db, id);
    db.Run("DELETE FROM secret_reads WHERE deployment = ?", id);
    db.Run("DELETE FROM deployments WHERE id = ?", id);
  }
}

}  // namespace

absl::Status MakeRoomForDeployment(Connection& db, const std::string& creator,
                                   const DeploymentLimits& limits) {
  if (CountOf(db, false) >= limits.max_open) {
    return errors::TooManyDeployments("", limits.max_open);
  }
  if (CountOpenOf(db, creator) >= limits.max_open / 2) {
    return errors::TooManyDeployments(absl::StrCat(" of ", creator), limits.max_open / 2);
  }
  RemoveOldest(db, limits.max_ended);
  return absl::OkStatus();
}

}  // namespace muster
