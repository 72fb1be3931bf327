// Blocking calls to the services, without gRPC types.
#ifndef MUSTER_CLI_RPC_CLIENT_H_
#define MUSTER_CLI_RPC_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/archives.pb.h"
#include "muster/v1/audit.pb.h"
#include "muster/v1/enrollment.pb.h"
#include "muster/v1/identities.pb.h"
#include "muster/v1/results.pb.h"
#include "muster/v1/runs.pb.h"
#include "muster/v1/status.pb.h"
#include "muster/v1/verification.pb.h"
#include "services/common/base/io.h"
#include "services/common/identity/context.h"

namespace muster::cli {

// A client of the aggregator and the status service, with the identity of an operator. Every call
// has a deadline. While a service is unreachable, a call is retried for about two seconds, as long
// as a restart takes. Errors are marked with FromService (exit_code.h). Not thread-safe.
class Client {
 public:
  explicit Client(const OperatorContext& context);
  ~Client();

  absl::StatusOr<v1::Run> CreateRun(const v1::CreateRunRequest& request);
  // With `limit`: one call of at most this time, which is not repeated.
  absl::StatusOr<v1::Run> GetRun(const std::string& run,
                                 std::optional<absl::Duration> limit = std::nullopt);
  absl::StatusOr<v1::ListRunsResponse> ListRuns(const v1::ListRunsRequest& request);
  absl::StatusOr<v1::Run> CancelRun(const v1::CancelRunRequest& request);
  absl::Status DeleteRun(const std::string& run);
  absl::StatusOr<v1::Run> PinRun(const std::string& run);
  absl::StatusOr<v1::Run> UnpinRun(const std::string& run);
  absl::StatusOr<v1::PreviewRetentionResponse> PreviewRetention(
      const v1::PreviewRetentionRequest& request);
  absl::StatusOr<v1::Credential> IssueCredential(const v1::IssueCredentialRequest& request);
  absl::StatusOr<v1::ViewerCredential> IssueViewerCredential(
      const v1::IssueViewerCredentialRequest& request);

  absl::StatusOr<v1::ListResultsResponse> ListResults(const v1::ListResultsRequest& request);

  // Returns the current result of a pair, with OUTCOME_PENDING if it has none.
  absl::StatusOr<v1::Result> GetResult(const v1::ResultKey& key);

  // Returns the bytes of this result, as ReadArchive does.
  std::unique_ptr<ByteSource> ReadResult(const v1::Result& result, int64_t offset);

  absl::StatusOr<v1::Archive> GetArchive(const std::string& run);

  // Returns the bytes from `offset` to the end. Compares the checksum of each chunk (DATA_LOSS,
  // CRC_MISMATCH). Resumes a broken stream until two minutes have passed without data. Returns
  // CANCELLED when the user interrupts (interrupt.h). The source must not outlive this object.
  std::unique_ptr<ByteSource> ReadArchive(const std::string& run, int64_t offset);

  // Calls `handle` for each response until the verification has ended.
  absl::Status VerifyStore(const std::string& run,
                           const std::function<void(const v1::VerifyStoreResponse&)>& handle);

  // With `limit`, as GetRun.
  absl::StatusOr<v1::RunStatus> GetStatus(const v1::GetStatusRequest& request,
                                          std::optional<absl::Duration> limit = std::nullopt);

  absl::StatusOr<v1::IssuedCertificate> AddOperator(const v1::AddOperatorRequest& request);
  absl::StatusOr<v1::Operator> RevokeOperator(const v1::RevokeOperatorRequest& request);
  absl::StatusOr<v1::ListOperatorsResponse> ListOperators();
  absl::StatusOr<v1::ListAuditRecordsResponse> ListAuditRecords(
      const v1::ListAuditRecordsRequest& request);

  absl::StatusOr<v1::CreateJoinTokenResponse> CreateJoinToken(
      const v1::CreateJoinTokenRequest& request);
  absl::StatusOr<v1::ListJoinTokensResponse> ListJoinTokens();
  absl::StatusOr<v1::JoinToken> RevokeJoinToken(const std::string& id);
  // Returns all nodes that match, from all pages.
  absl::StatusOr<std::vector<v1::EnrolledNode>> ListEnrolledNodes(
      v1::ListEnrolledNodesRequest request);
  absl::StatusOr<v1::EnrolledNode> GetEnrolledNode(const std::string& node);
  absl::StatusOr<v1::EnrolledNode> LabelNode(const v1::LabelNodeRequest& request);
  absl::StatusOr<v1::EnrolledNode> RevokeNode(const v1::RevokeNodeRequest& request);
  absl::Status RemoveNode(const std::string& node);
  // Returns the presence of a node. NOT_FOUND (NODE_NOT_FOUND) if the status service does not know
  // it.
  absl::StatusOr<v1::Node> GetNode(const std::string& node);
  absl::StatusOr<v1::ListNodesResponse> ListNodes(const v1::ListNodesRequest& request);

 private:
  struct Stubs;
  std::unique_ptr<Stubs> stubs_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_CLIENT_H_
