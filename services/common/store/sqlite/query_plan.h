// How SQLite runs the statements of a connection, for tests.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_QUERY_PLAN_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_QUERY_PLAN_H_

#include <sqlite3.h>

#include <string>
#include <string_view>

#include "services/common/store/sqlite/connection.h"

namespace muster::sqlite {

// Returns the plan of the statements that this connection has run and whose text contains `part`, a
// line for each step, such as "SCAN deployments". Empty if there is no such statement.
inline std::string QueryPlan(Connection& db, std::string_view part) {
  std::string explain;
  for (sqlite3_stmt* each = sqlite3_next_stmt(db.handle(), nullptr); each != nullptr;
       each = sqlite3_next_stmt(db.handle(), each)) {
    const std::string_view sql = sqlite3_sql(each);
    if (sql.find(part) != std::string_view::npos) {
      explain.append("EXPLAIN QUERY PLAN ").append(sql).append(";");
    }
  }
  std::string plan;
  for (const char* rest = explain.c_str(); *rest != '\0';) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db.handle(), rest, -1, &statement, &rest) != SQLITE_OK) break;
    while (sqlite3_step(statement) == SQLITE_ROW) {
      plan.append(reinterpret_cast<const char*>(sqlite3_column_text(statement, 3))).append("\n");
    }
    sqlite3_finalize(statement);
  }
  return plan;
}

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_QUERY_PLAN_H_
