#include "cli/rpc/client.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/rpc/operator_channel.h"
#include "cli/rpc/unary_call.h"
#include "muster/v1/archives.grpc.pb.h"
#include "muster/v1/audit.grpc.pb.h"
#include "muster/v1/enrollment.grpc.pb.h"
#include "muster/v1/identities.grpc.pb.h"
#include "muster/v1/results.grpc.pb.h"
#include "muster/v1/runs.grpc.pb.h"
#include "muster/v1/status.grpc.pb.h"
#include "muster/v1/verification.grpc.pb.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"
#include "services/common/rpc/call_end.h"

namespace muster::cli {
namespace {

constexpr absl::Duration kIssueLimit = absl::Seconds(45);  // it waits up to 30 s for a listener
constexpr absl::Duration kRetryPause = absl::Milliseconds(250);
constexpr absl::Duration kStreamRetryLimit = absl::Minutes(2);
constexpr int kNodesOfPage = 1'000;

// Returns the options of one call of at most `limit`, which is not repeated; without it, the usual
// ones.
UnaryCallOptions LimitedTo(std::optional<absl::Duration> limit) {
  if (!limit) return {};
  return {.limit = *limit, .retry_for = absl::ZeroDuration()};
}

using ChunkReader = grpc::ClientReader<v1::FileChunk>;

// Reads an archive or a result from the aggregator. Not thread-safe.
class ChunkSource : public ByteSource {
 public:
  // Opens a stream of the bytes from `offset` on.
  using OpenStream =
      std::function<std::unique_ptr<ChunkReader>(grpc::ClientContext* context, int64_t offset)>;

  ChunkSource(OpenStream open, int64_t offset, std::string subject)
      : open_(std::move(open)),
        subject_(std::move(subject)),
        offset_(offset),
        last_data_time_(absl::Now()) {}

  ~ChunkSource() override { CloseStream(); }

  absl::StatusOr<size_t> Read(std::span<char> buffer) override {
    while (position_ == chunk_.data().size()) {
      if (ended_) return 0;
      const absl::Status next = NextChunk();
      if (!next.ok()) return FromService(next, subject_);
    }
    const size_t count = std::min(buffer.size(), chunk_.data().size() - position_);
    std::memcpy(buffer.data(), chunk_.data().data() + position_, count);
    position_ += count;
    return count;
  }

 private:
  absl::Status NextChunk() {
    if (!reader_) Open();
    position_ = 0;
    if (reader_->Read(&chunk_)) {
      last_data_time_ = absl::Now();
      if (chunk_.offset() != offset_) return errors::OffsetTooHigh(chunk_.offset(), offset_);
      if (Crc32c(chunk_.data()) != chunk_.crc32c()) return errors::CrcMismatch("a chunk");
      offset_ += static_cast<int64_t>(chunk_.data().size());
      return absl::OkStatus();
    }
    chunk_.Clear();
    absl::Status end = AwaitCallEnd(*context_, [&] { return reader_->Finish(); });
    CloseStream();
    ended_ = end.ok();
    if (end.code() != absl::StatusCode::kUnavailable) return end;
    if (absl::Now() - last_data_time_ > kStreamRetryLimit) return end;
    return SleepUnlessInterrupted(kRetryPause) ? absl::OkStatus() : end;
  }

  void Open() {
    context_ = std::make_unique<grpc::ClientContext>();
    hook_ = std::make_unique<InterruptHook>([context = context_.get()] { context->TryCancel(); });
    reader_ = open_(context_.get(), offset_);
  }

  void CloseStream() {
    hook_.reset();
    if (context_) context_->TryCancel();
    reader_.reset();
    context_.reset();
  }

  const OpenStream open_;
  const std::string subject_;
  int64_t offset_;  // of the next chunk
  absl::Time last_data_time_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<InterruptHook> hook_;
  std::unique_ptr<ChunkReader> reader_;
  v1::FileChunk chunk_;
  size_t position_ = 0;  // in chunk_, of the next byte to return
  bool ended_ = false;
};

}  // namespace

struct Client::Stubs {
  explicit Stubs(const OperatorContext& context)
      : aggregator_target(absl::StrJoin(context.aggregator_targets, ", ")),
        status_target(absl::StrJoin(context.status_targets, ", ")) {
    const auto aggregator =
        MakeOperatorChannel(context, context.aggregator_targets, ServiceRole::kAggregator);
    const auto status = MakeOperatorChannel(context, context.status_targets, ServiceRole::kStatus);
    runs = v1::RunService::NewStub(aggregator);
    results = v1::ResultService::NewStub(aggregator);
    archives = v1::ArchiveService::NewStub(aggregator);
    identities = v1::IdentityService::NewStub(aggregator);
    audit = v1::AuditService::NewStub(aggregator);
    enrollment = v1::EnrollmentService::NewStub(aggregator);
    verification = v1::VerificationService::NewStub(aggregator);
    statuses = v1::StatusService::NewStub(status);
  }

  std::string Subject(const std::string& what) const {
    return absl::StrCat(what, ", at the aggregator ", aggregator_target);
  }
  std::string RunSubject(const std::string& run) const {
    return Subject(absl::StrCat("run ", run));
  }
  std::string NodeSubject(const std::string& node) const {
    return Subject(absl::StrCat("node ", node));
  }

  const std::string aggregator_target;
  const std::string status_target;
  std::unique_ptr<v1::RunService::Stub> runs;
  std::unique_ptr<v1::ResultService::Stub> results;
  std::unique_ptr<v1::ArchiveService::Stub> archives;
  std::unique_ptr<v1::IdentityService::Stub> identities;
  std::unique_ptr<v1::AuditService::Stub> audit;
  std::unique_ptr<v1::EnrollmentService::Stub> enrollment;
  std::unique_ptr<v1::VerificationService::Stub> verification;
  std::unique_ptr<v1::StatusService::Stub> statuses;
};

Client::Client(const OperatorContext& context) : stubs_(std::make_unique<Stubs>(context)) {}
Client::~Client() = default;

absl::StatusOr<v1::Run> Client::CreateRun(const v1::CreateRunRequest& request) {
  return CallUnary(*stubs_->runs, &v1::RunService::Stub::CreateRun, request,
                   stubs_->Subject("a new run"));
}

absl::Status Client::VerifyStore(
    const std::string& run, const std::function<void(const v1::VerifyStoreResponse&)>& handle) {
  const std::string subject = run.empty() ? stubs_->Subject("the store") : stubs_->RunSubject(run);
  grpc::ClientContext context;
  const InterruptHook hook([&context] { context.TryCancel(); });
  v1::VerifyStoreRequest request;
  request.set_run(run);
  const auto reader = stubs_->verification->VerifyStore(&context, request);
  v1::VerifyStoreResponse response;
  while (reader->Read(&response)) handle(response);
  const absl::Status end = AwaitCallEnd(context, [&] { return reader->Finish(); });
  if (!end.ok()) return FromService(end, subject);
  // A stream that ends early has verified less than was asked for.
  return response.complete() ? absl::OkStatus()
                             : FromService(errors::VerificationIncomplete(), subject);
}

absl::StatusOr<v1::Run> Client::GetRun(const std::string& run,
                                       std::optional<absl::Duration> limit) {
  v1::GetRunRequest request;
  request.set_run(run);
  return CallUnary(*stubs_->runs, &v1::RunService::Stub::GetRun, request, stubs_->RunSubject(run),
                   LimitedTo(limit));
}

absl::StatusOr<v1::ListRunsResponse> Client::ListRuns(const v1::ListRunsRequest& request) {
  return CallUnary(*stubs_->runs, &v1::RunService::Stub::ListRuns, request,
                   stubs_->Subject("the list of runs"));
}

absl::StatusOr<v1::Run> Client::CancelRun(const v1::CancelRunRequest& request) {
  return CallUnary(*stubs_->runs, &v1::RunService::Stub::CancelRun, request,
                   stubs_->RunSubject(request.run()));
}

absl::Status Client::DeleteRun(const std::string& run) {
  v1::DeleteRunRequest request;
  request.set_run(run);
  return CallUnary(*stubs_->runs, &v1::RunService::Stub::DeleteRun, request,
                   stubs_->RunSubject(run))
      .status();
}

absl::StatusOr<v1::Run> Client::PinRun(const std::string& run) {
  v1::PinRunRequest request;
  request.set_run(run);
  return CallUnary(*stubs_->runs, &v1::RunService::Stub::PinRun, request, stubs_->RunSubject(run));
}

absl::StatusOr<v1::Run> Client::UnpinRun(const std::string& run) {
  v1::UnpinRunRequest request;
  request.set_run(run);
  return CallUnary(*stubs_->runs, &v1::RunService::Stub::UnpinRun, request,
                   stubs_->RunSubject(run));
}

absl::StatusOr<v1::PreviewRetentionResponse> Client::PreviewRetention(
    const v1::PreviewRetentionRequest& request) {
  return CallUnary(*stubs_->runs, &v1::RunService::Stub::PreviewRetention, request,
                   stubs_->Subject("the list of runs"));
}

absl::StatusOr<v1::Credential> Client::IssueCredential(const v1::IssueCredentialRequest& request) {
  return CallUnary(*stubs_->runs, &v1::RunService::Stub::IssueCredential, request,
                   stubs_->RunSubject(request.run()), {.limit = kIssueLimit});
}

absl::StatusOr<v1::ViewerCredential> Client::IssueViewerCredential(
    const v1::IssueViewerCredentialRequest& request) {
  return CallUnary(*stubs_->runs, &v1::RunService::Stub::IssueViewerCredential, request,
                   stubs_->RunSubject(request.run()), {.limit = kIssueLimit});
}

absl::StatusOr<v1::ListResultsResponse> Client::ListResults(const v1::ListResultsRequest& request) {
  return CallUnary(*stubs_->results, &v1::ResultService::Stub::ListResults, request,
                   stubs_->RunSubject(request.run()));
}

absl::StatusOr<v1::Result> Client::GetResult(const v1::ResultKey& key) {
  v1::GetResultRequest request;
  *request.mutable_key() = key;
  return CallUnary(*stubs_->results, &v1::ResultService::Stub::GetResult, request,
                   stubs_->RunSubject(key.run()));
}

std::unique_ptr<ByteSource> Client::ReadResult(const v1::Result& result, int64_t offset) {
  v1::ReadResultRequest request;
  *request.mutable_key() = result.key();
  request.set_generation(result.generation());
  return std::make_unique<ChunkSource>(
      [this, request](grpc::ClientContext* context, int64_t from) mutable {
        request.set_offset(from);
        return stubs_->results->ReadResult(context, request);
      },
      offset, stubs_->RunSubject(result.key().run()));
}

absl::StatusOr<v1::Archive> Client::GetArchive(const std::string& run) {
  v1::GetArchiveRequest request;
  request.set_run(run);
  return CallUnary(*stubs_->archives, &v1::ArchiveService::Stub::GetArchive, request,
                   stubs_->RunSubject(run));
}

std::unique_ptr<ByteSource> Client::ReadArchive(const std::string& run, int64_t offset) {
  v1::ReadArchiveRequest request;
  request.set_run(run);
  return std::make_unique<ChunkSource>(
      [this, request](grpc::ClientContext* context, int64_t from) mutable {
        request.set_offset(from);
        return stubs_->archives->ReadArchive(context, request);
      },
      offset, stubs_->RunSubject(run));
}

absl::StatusOr<v1::RunStatus> Client::GetStatus(const v1::GetStatusRequest& request,
                                                std::optional<absl::Duration> limit) {
  return CallUnary(*stubs_->statuses, &v1::StatusService::Stub::GetStatus, request,
                   absl::StrCat(request.run().empty() ? "the newest run" : "run ", request.run(),
                                ", at the status service ", stubs_->status_target),
                   LimitedTo(limit));
}

absl::StatusOr<v1::IssuedCertificate> Client::AddOperator(const v1::AddOperatorRequest& request) {
  return CallUnary(*stubs_->identities, &v1::IdentityService::Stub::AddOperator, request,
                   stubs_->Subject(absl::StrCat("operator ", request.name())));
}

absl::StatusOr<v1::Operator> Client::RevokeOperator(const v1::RevokeOperatorRequest& request) {
  return CallUnary(*stubs_->identities, &v1::IdentityService::Stub::RevokeOperator, request,
                   stubs_->Subject(absl::StrCat("operator ", request.name())));
}

absl::StatusOr<v1::ListAuditRecordsResponse> Client::ListAuditRecords(
    const v1::ListAuditRecordsRequest& request) {
  return CallUnary(*stubs_->audit, &v1::AuditService::Stub::ListAuditRecords, request,
                   stubs_->Subject("the audit log"));
}

absl::StatusOr<v1::ListOperatorsResponse> Client::ListOperators() {
  return CallUnary(*stubs_->identities, &v1::IdentityService::Stub::ListOperators,
                   v1::ListOperatorsRequest(), stubs_->Subject("the list of operators"));
}

absl::StatusOr<v1::CreateJoinTokenResponse> Client::CreateJoinToken(
    const v1::CreateJoinTokenRequest& request) {
  return CallUnary(*stubs_->enrollment, &v1::EnrollmentService::Stub::CreateJoinToken, request,
                   stubs_->Subject("a new join token"));
}

absl::StatusOr<v1::ListJoinTokensResponse> Client::ListJoinTokens() {
  return CallUnary(*stubs_->enrollment, &v1::EnrollmentService::Stub::ListJoinTokens,
                   v1::ListJoinTokensRequest(), stubs_->Subject("the list of join tokens"));
}

absl::StatusOr<v1::JoinToken> Client::RevokeJoinToken(const std::string& id) {
  v1::RevokeJoinTokenRequest request;
  request.set_id(id);
  return CallUnary(*stubs_->enrollment, &v1::EnrollmentService::Stub::RevokeJoinToken, request,
                   stubs_->Subject(absl::StrCat("join token ", id)));
}

absl::StatusOr<std::vector<v1::EnrolledNode>> Client::ListEnrolledNodes(
    v1::ListEnrolledNodesRequest request) {
  std::vector<v1::EnrolledNode> nodes;
  request.set_page_size(kNodesOfPage);
  do {
    ASSIGN_OR_RETURN(auto page,
                     CallUnary(*stubs_->enrollment, &v1::EnrollmentService::Stub::ListEnrolledNodes,
                               request, stubs_->Subject("the list of nodes")));
    nodes.insert(nodes.end(), std::make_move_iterator(page.mutable_nodes()->begin()),
                 std::make_move_iterator(page.mutable_nodes()->end()));
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return nodes;
}

absl::StatusOr<v1::EnrolledNode> Client::GetEnrolledNode(const std::string& node) {
  v1::GetEnrolledNodeRequest request;
  request.set_node(node);
  return CallUnary(*stubs_->enrollment, &v1::EnrollmentService::Stub::GetEnrolledNode, request,
                   stubs_->NodeSubject(node));
}

absl::StatusOr<v1::EnrolledNode> Client::LabelNode(const v1::LabelNodeRequest& request) {
  return CallUnary(*stubs_->enrollment, &v1::EnrollmentService::Stub::LabelNode, request,
                   stubs_->NodeSubject(request.node()));
}

absl::StatusOr<v1::EnrolledNode> Client::RevokeNode(const v1::RevokeNodeRequest& request) {
  return CallUnary(*stubs_->enrollment, &v1::EnrollmentService::Stub::RevokeNode, request,
                   stubs_->NodeSubject(request.node()));
}

absl::Status Client::RemoveNode(const std::string& node) {
  v1::RemoveNodeRequest request;
  request.set_node(node);
  return CallUnary(*stubs_->enrollment, &v1::EnrollmentService::Stub::RemoveNode, request,
                   stubs_->NodeSubject(node))
      .status();
}

absl::StatusOr<v1::Node> Client::GetNode(const std::string& node) {
  v1::GetNodeRequest request;
  request.set_node(node);
  return CallUnary(*stubs_->statuses, &v1::StatusService::Stub::GetNode, request,
                   absl::StrCat("node ", node, ", at the status service ", stubs_->status_target));
}

absl::StatusOr<v1::ListNodesResponse> Client::ListNodes(const v1::ListNodesRequest& request) {
  return CallUnary(*stubs_->statuses, &v1::StatusService::Stub::ListNodes, request,
                   absl::StrCat("the nodes, at the status service ", stubs_->status_target));
}

}  // namespace muster::cli
