// Join tokens and enrolled nodes.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_NODES_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_NODES_H_

#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/store/commands.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/feed.h"
#include "services/common/store/state_store.h"

namespace muster::sqlite {

// A join token is kept for this long after its expiry.
inline constexpr int64_t kJoinTokenKept = int64_t{7} * 24 * 3600 * 1'000'000;

absl::StatusOr<CreateJoinToken::Result> Execute(WriteContext& context,
                                                const CreateJoinToken& command);
absl::StatusOr<RevokeJoinToken::Result> Execute(WriteContext& context,
                                                const RevokeJoinToken& command);
absl::StatusOr<JoinNode::Result> Execute(WriteContext& context, const JoinNode& command);
absl::StatusOr<LabelNode::Result> Execute(WriteContext& context, const LabelNode& command);
absl::StatusOr<RevokeNode::Result> Execute(WriteContext& context, const RevokeNode& command);
absl::StatusOr<RemoveNode::Result> Execute(WriteContext& context, const RemoveNode& command);

// These functions read; the caller holds a read transaction.
std::optional<JoinTokenRecord> ReadJoinToken(Connection& db, std::string_view id);
std::vector<JoinTokenRecord> ReadJoinTokens(Connection& db, int limit);
std::optional<NodeRecord> ReadNode(Connection& db, std::string_view name);
absl::StatusOr<Page<NodeRecord>> ReadNodes(Connection& db, const Labels& labels,
                                           std::string_view page_token, int limit);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_NODES_H_
