// The rows of deployments in jobs.db (jobs_schema.h).
#ifndef MUSTER_SERVICES_JOBS_DEPLOYMENT_ROWS_H_
#define MUSTER_SERVICES_JOBS_DEPLOYMENT_ROWS_H_

#include <cstdint>
#include <string>

#include "muster/v1/deployments.pb.h"
#include "services/common/rpc/message_text.h"
#include "services/common/store/sqlite/connection.h"

namespace muster {

inline std::string Serialised(const google::protobuf::MessageLite& message) {
  return message.SerializeAsString();
}

// A message of an earlier Muster always parses; a damaged one shows what is readable.
template <typename Message>
Message Parsed(const std::string& bytes) {
  Message message;
  if (!ParseCleaned(bytes, &message)) message.Clear();
  return message;
}

// `id`: of the row of the deployment. Returns the node without a record if it has no row.
v1::DeploymentNode ReadNode(sqlite::Connection& db, int64_t id, const std::string& name);
void WriteNode(sqlite::Connection& db, int64_t id, const v1::DeploymentNode& node);

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_DEPLOYMENT_ROWS_H_
