#include "services/aggregator/result_service.h"

#include <memory>
#include <optional>
#include <utility>

#include "services/aggregator/convert.h"
#include "services/aggregator/file_stream.h"
#include "services/aggregator/verify/damage.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/log.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"
#include "services/common/rpc/limits.h"
#include "services/common/upload/attempt.h"
#include "services/common/upload/delivery_signature.h"
#include "services/common/upload/error_reason.h"

namespace muster {
namespace {

constexpr int64_t kReadAheadBytes = 64 * 1024 * 1024;

// A result up to this size is verified on the thread that received it, unless it is signed: hashing
// takes about 10 us, less than a switch of threads (docs/decisions/0015).
constexpr size_t kQuicklyHashed = 16 * 1024;

constexpr int64_t kMaxDeclineReason = 256;  // bytes

constexpr int kMaxPage = 10'000;
constexpr int kDefaultPage = 1'000;

absl::Status CheckSha256(const std::string& sha256) {
  if (sha256.empty() || sha256.size() == kSha256Size) return absl::OkStatus();
  return errors::InvalidChunk("a SHA-256 that is not 32 bytes");
}

void FillIn(const OpenedUpload& opened, v1::OpenUploadResponse* response) {
  if (opened.committed) {
    *response->mutable_committed() = ToProto(*opened.committed);
    return;
  }
  response->set_upload_id(opened.id);
  response->set_epoch(opened.epoch);
  response->set_offset(opened.offset);
  response->set_chunk_max(opened.pace.chunk_max);
  response->set_window(opened.pace.window);
  *response->mutable_expire_time() = ToTimestamp(opened.expires_at);
  response->set_zstd_accepted(true);
}

}  // namespace

// Returns the described upload if the caller may open it: a relay only with a node's signature.
absl::StatusOr<UploadRecord> ResultService::Describe(Call& call,
                                                     const v1::ResultDescription& description,
                                                     const v1::SpooledProof* proof) const {
  auto upload = FromProto(description, call.caller());
  if (!upload.ok()) return upload.status();
  const ResultKey& key = upload->key;
  RETURN_IF_ERROR(call.Authorize(Resource::Pair(key.run, key.plugin, key.node)));
  if (RoleOf(call.caller().identity) != Role::kRelay) {
    if (proof == nullptr) return upload;
    return errors::InvalidSignature("only relays deliver results for other nodes");
  }
  RETURN_IF_ERROR(proofs_.Check(proof == nullptr ? v1::SpooledProof::default_instance() : *proof,
                                call.caller(), &*upload));
  return upload;
}

absl::StatusOr<UploadRecord> ResultService::ToUpload(Call& call,
                                                     const v1::OpenUploadRequest& request) const {
  auto upload =
      Describe(call, request.description(), request.has_spooled() ? &request.spooled() : nullptr);
  if (!upload.ok()) return upload.status();
  if (request.has_size() && request.size() < 0) return errors::InvalidOffset(request.size());
  upload->size = request.has_size() ? request.size() : -1;
  RETURN_IF_ERROR(CheckSha256(request.sha256()));
  upload->sha256 = request.sha256();
  if (request.has_spooled()) {
    // The bytes have to be those that the proof covers: the signature of the finish may be another.
    upload->size = request.spooled().size();
    upload->sha256 = request.spooled().sha256();
    upload->is_error = request.spooled().is_error();
  }
  return upload;
}

// Verifies a small result: its digests match its bytes, and its signature is valid.
absl::StatusOr<VerifiedResult> ResultService::Verify(Call& call,
                                                     const v1::SubmitResultRequest& request) const {
  ASSIGN_OR_RETURN(auto upload, Describe(call, request.description(),
                                         request.has_spooled() ? &request.spooled() : nullptr));
  RETURN_IF_ERROR(CheckAttempt(upload.attempt, clock_.Now()));
  if (request.has_spooled() && !upload.is_error) {
    return errors::InvalidSignature("relays deliver spooled results by OpenUpload and Upload");
  }
  RETURN_IF_ERROR(ValidateSignature(request.signature()));
  const auto size = static_cast<int64_t>(request.body().size());
  if (size > kInlineLimit) return errors::TooLargeForSubmit(size, kInlineLimit);
  if (Crc32c(request.body()) != request.crc32c()) return errors::CrcMismatch("result");
  const std::string sha256 = DigestBytes(Sha256::Of(request.body()));
  RETURN_IF_ERROR(CheckSha256(request.sha256()));
  if (!request.sha256().empty() && request.sha256() != sha256) return errors::DigestMismatch();
  VerifiedResult verified;
  verified.attempt = upload.attempt;
  verified.relay_report = request.has_spooled();
  ResultRecord& result = verified.result;
  result.key = upload.key;
  result.outcome = upload.is_error ? Outcome::kError : Outcome::kGenuine;
  result.size = size;
  result.crc32c = request.crc32c();
  result.sha256 = sha256;
  result.media_type = upload.media_type;
  result.file_name = upload.file_name;
  if (upload.is_error) {
    result.error = ErrorReason(request.body());
  }
  result.body = request.body();
  result.delivery = upload.delivery;
  result.delivery.signature = request.signature().value();
  result.delivery.signer_pem = request.signature().certificate_chain_pem();
  RETURN_IF_ERROR(committer_.CheckSignature(verified));
  return verified;
}

ResultService::ResultService(const RpcRuntime& runtime, StateStore& store, BlobStore& blobs,
                             Uploads& uploads, ResultCommitter& committer,
                             const SpooledProofs& proofs, RunReaders& readers, const Clock& clock)
    : runtime_(runtime),
      store_(store),
      blobs_(blobs),
      uploads_(uploads),
      committer_(committer),
      proofs_(proofs),
      readers_(readers),
      clock_(clock),
      read_ahead_(kReadAheadBytes) {}

grpc::ServerUnaryReactor* ResultService::OpenUpload(grpc::CallbackServerContext* context,
                                                    const v1::OpenUploadRequest* request,
                                                    v1::OpenUploadResponse* response) {
  return AnswerLater(runtime_, context, "/muster.v1.ResultService/OpenUpload", {*request, response},
                     [this, request, response](const std::shared_ptr<Call>& call, Finish finish) {
                       auto upload = ToUpload(*call, *request);
                       if (!upload.ok()) return finish(upload.status());
                       std::optional<absl::Time> signed_at;
                       if (request->has_spooled()) signed_at = AcceptTime(request->spooled());
                       uploads_.Open(*std::move(upload), PeerOf(call->caller()), signed_at,
                                     [response, finish = std::move(finish)](
                                         const absl::StatusOr<OpenedUpload>& opened) mutable {
                                       if (opened.ok()) FillIn(*opened, response);
                                       finish(opened.status());
                                     });
                     });
}

grpc::ServerBidiReactor<v1::UploadRequest, v1::UploadResponse>* ResultService::Upload(
    grpc::CallbackServerContext* context) {
  return UploadHandler::Start(runtime_, context, uploads_, read_ahead_);
}

grpc::ServerUnaryReactor* ResultService::SubmitResult(grpc::CallbackServerContext* context,
                                                      const v1::SubmitResultRequest* request,
                                                      v1::Result* response) {
  const bool quick = request->body().size() <= kQuicklyHashed &&
                     request->signature().value().empty() && !request->has_spooled();
  return (quick ? AnswerHere : AnswerLater)(
      runtime_, context, "/muster.v1.ResultService/SubmitResult", {*request, response},
      [this, request, response](const std::shared_ptr<Call>& call, Finish finish) {
        auto verified = Verify(*call, *request);
        if (!verified.ok()) return finish(verified.status());
        committer_.Commit(*std::move(verified), [response, finish = std::move(finish)](
                                                    absl::StatusOr<ResultRecord> result) mutable {
          if (result.ok()) *response = ToProto(*result);
          finish(result.status());
        });
      });
}

grpc::ServerUnaryReactor* ResultService::GetResult(grpc::CallbackServerContext* context,
                                                   const v1::GetResultRequest* request,
                                                   v1::Result* response) {
  return Answer(runtime_, context, "/muster.v1.ResultService/GetResult", {*request, response},
                [this, request, response](Call& call) -> absl::Status {
                  const ResultKey key = FromProto(request->key());
                  RETURN_IF_ERROR(CheckKey(key));
                  RETURN_IF_ERROR(call.Authorize(Resource::Pair(key.run, key.plugin, key.node)));
                  ASSIGN_OR_RETURN(const auto result, FindResult(store_, key));
                  *response = ToProto(result);
                  return absl::OkStatus();
                });
}

grpc::ServerUnaryReactor* ResultService::DeclineRedelivery(
    grpc::CallbackServerContext* context, const v1::DeclineRedeliveryRequest* request,
    v1::DeclineRedeliveryResponse* response) {
  return Answer(runtime_, context, "/muster.v1.ResultService/DeclineRedelivery",
                {*request, response}, [this, request](Call& call) -> absl::Status {
                  const ResultKey key = FromProto(request->key());
                  RETURN_IF_ERROR(CheckKey(key));
                  RETURN_IF_ERROR(call.Authorize(Resource::Pair(key.run, key.plugin, key.node)));
                  std::string reason = request->reason();
                  if (reason.size() > kMaxDeclineReason) {
                    return errors::TextTooLong("reason", kMaxDeclineReason);
                  }
                  if (reason.empty()) reason = "the node gave no reason";
                  RETURN_IF_ERROR(FindResult(store_, key).status());
                  const muster::DeclineRedelivery command{key, reason, ActorOf(call.caller()),
                                                          absl::ToUnixMicros(clock_.Now())};
                  return store_.ApplyAndWait(command).status();
                });
}

grpc::ServerUnaryReactor* ResultService::ListResults(grpc::CallbackServerContext* context,
                                                     const v1::ListResultsRequest* request,
                                                     v1::ListResultsResponse* response) {
  return Answer(runtime_, context, "/muster.v1.ResultService/ListResults", {*request, response},
                [this, request, response](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(CheckRunId(request->run()));
                  RETURN_IF_ERROR(call.Authorize(Resource::Run(request->run())));
                  const int size = request->page_size() == 0 ? kDefaultPage : request->page_size();
                  if (size < 1 || size > kMaxPage) return errors::InvalidPageSize(kMaxPage);
                  ASSIGN_OR_RETURN(const auto run, store_.GetRun(request->run()));
                  if (!run) return errors::RunNotFound(request->run());
                  ResultFilter filter;
                  filter.run = request->run();
                  filter.plugin = request->plugin();
                  filter.node = request->node();
                  filter.with_pending = true;
                  ASSIGN_OR_RETURN(const auto page,
                                   store_.ListResults(filter, request->page_token(), size));
                  for (const ResultRecord& result : page.items) {
                    *response->add_results() = ToProto(result);
                  }
                  response->set_next_page_token(page.next);
                  return absl::OkStatus();
                });
}

grpc::ServerWriteReactor<v1::FileChunk>* ResultService::ReadResult(
    grpc::CallbackServerContext* context, const v1::ReadResultRequest* request) {
  return StartSourceStream<v1::FileChunk>(
      runtime_, context, "/muster.v1.ResultService/ReadResult", kFileStreams,
      [this, request](Call& call, const std::function<void()>&)
          -> absl::StatusOr<std::unique_ptr<StreamSource<v1::FileChunk>>> {
        const ResultKey key = FromProto(request->key());
        RETURN_IF_ERROR(CheckKey(key));
        RETURN_IF_ERROR(call.Authorize(Resource::Pair(key.run, key.plugin, key.node)));
        RunReaders::Hold hold = readers_.Add(key.run);
        ASSIGN_OR_RETURN(auto result, FindResult(store_, key));
        if (result.outcome == Outcome::kPending) {
          return errors::ResultNotFound(key.plugin, key.node);
        }
        if (request->generation() != 0 && request->generation() != result.generation) {
          return errors::ResultReplaced(request->generation(), result.generation);
        }
        if (!result.damage.empty()) {
          return errors::ResultDamaged(key.plugin, key.node, result.damage);
        }
        const DamageRecorder recorder(store_, clock_, ActorOf(call.caller()));
        auto source = StreamResult(blobs_, recorder, std::move(result), request->offset());
        if (absl::IsDataLoss(source.status())) {  // the run may have been deleted since
          RETURN_IF_ERROR(FindResult(store_, key).status());
        }
        RETURN_IF_ERROR(source.status());
        return WithHold(*std::move(source), std::move(hold));
      });
}

}  // namespace muster
