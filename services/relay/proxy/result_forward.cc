#include "services/relay/proxy/result_forward.h"

#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "services/common/base/error.h"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"
#include "services/common/rpc/limits.h"
#include "services/common/upload/description_limits.h"
#include "services/relay/proxy/upload_into_spool.h"
#include "services/relay/proxy/upstream_stream.h"

namespace muster {
namespace {

constexpr std::string_view kOpenUpload = "/muster.v1.ResultService/OpenUpload";
constexpr char kUpload[] = "/muster.v1.ResultService/Upload";

// The first message names an upload and an epoch.
constexpr size_t kMaxStart = 4096;

// Higher than the limits on forwarded uploads (forwarding.cc), because uploads into the spool
// count. A child relay delivers the spooled results of all its descendants.
constexpr StreamLimits kStreams = {.in_all = 1000, .of_caller = kUploadStreamsOfNode};
constexpr StreamLimits kRelayStreams = {.in_all = 1000, .of_caller = 500};

// A chunk with its header, or a finish with its chain of certificates.
constexpr size_t kMaxMessage = kChunkMaxLarge + 64 * 1024;

constexpr int64_t kSubmitMax = 64 * 1024;
constexpr size_t kMaxOpen = 64 * 1024;

Resource PairOf(const v1::ResultKey& key) {
  return Resource::Pair(key.run(), key.plugin(), key.node());
}

// The aggregator or the spool decides whether the upload is the caller's: only they know it.
Resource OwnPair(const Caller& caller) {
  const auto* node = std::get_if<NodeIdentity>(&caller.identity.name);
  return Resource::Pair("", "", node == nullptr ? "" : node->name);
}

// The names become parts of paths and keys. A result that the aggregator will refuse is not
// spooled.
absl::Status CheckRequest(const v1::OpenUploadRequest& request) {
  const v1::ResultKey& key = request.description().key();
  if (request.ByteSizeLong() > kMaxOpen) return errors::TextTooLong("the request", kMaxOpen);
  if (!IsRunId(key.run())) return errors::InvalidRunId(absl::CHexEscape(key.run().substr(0, 64)));
  if (request.has_size() && request.size() < 0) return errors::InvalidOffset(request.size());
  RETURN_IF_ERROR(CheckTexts(request.description()));
  RETURN_IF_ERROR(ValidateName("plugin", key.plugin()));
  return ValidateName("node", key.node());
}

// Returns whether no upstream service accepts results now.
bool HasNoUpstream(const absl::Status& status) {
  return absl::IsUnavailable(status) || ReasonOf(status) == "SPOOL_FULL";
}

}  // namespace

// One OpenUpload: forwarded upstream, or into the spool without an upstream connection. Kept by its
// callbacks.
class ResultForward::Opening : public std::enable_shared_from_this<Opening> {
 public:
  Opening(ResultForward& service, std::shared_ptr<Call> call, const v1::OpenUploadRequest* request,
          v1::OpenUploadResponse* response, Finish finish)
      : service_(service),
        call_(std::move(call)),
        request_(request),
        response_(response),
        finish_(std::move(finish)) {}

  void Begin(grpc::CallbackServerContext* context) {
    const v1::ResultDescription& description = request_->description();
    if (auto allowed = call_->Authorize(PairOf(description.key())); !allowed.ok()) {
      return finish_(allowed);
    }
    if (auto valid = CheckRequest(*request_); !valid.ok()) return finish_(valid);
    Upstream& upstream = service_.parts_.upstream;
    spool_ = RoleOf(call_->caller().identity) == Role::kNode ? service_.spool_ : nullptr;
    if (spool_ != nullptr && (!upstream.connected() || spool_->Holds(description)))
      return IntoSpool();
    auto upstream_call =
        BeginUpstreamCall(upstream, &Upstream::Results, service_.parts_.calls, *call_, context,
                          static_cast<int64_t>(request_->ByteSizeLong()));
    if (!upstream_call.ok()) return Answered(upstream_call.status());
    CallUpstream(
        *std::move(upstream_call), kOpenUpload, request_, response_,
        [self = shared_from_this()](const absl::Status& status) { self->Answered(status); });
  }

 private:
  void Answered(const absl::Status& status) {
    if (spool_ == nullptr) return finish_(status);
    if (HasNoUpstream(status)) return IntoSpool();
    if (status.ok()) spool_->DiscardUpload(request_->description());
    finish_(status);
  }

  void IntoSpool() {
    const auto statement = service_.parts_.upstream.StatementFor(call_->caller());
    if (!statement.ok()) return finish_(statement.status());
    spool_->OpenUpload(*request_, PeerOf(call_->caller()),
                       [self = shared_from_this()](auto opened) {
                         if (opened.ok()) *self->response_ = *std::move(opened);
                         self->finish_(opened.status());
                       });
  }

  ResultForward& service_;
  const std::shared_ptr<Call> call_;
  const v1::OpenUploadRequest* const request_;
  v1::OpenUploadResponse* const response_;
  Finish finish_;
  Spool* spool_ = nullptr;  // null: uploads of this caller are not spooled
};

grpc::ServerUnaryReactor* ResultForward::OpenUpload(grpc::CallbackServerContext* context,
                                                    const v1::OpenUploadRequest* request,
                                                    v1::OpenUploadResponse* response) {
  return AnswerHere(
      parts_.runtime, context, kOpenUpload, {*request, response},
      [this, context, request, response](const std::shared_ptr<Call>& call, Finish finish) {
        std::make_shared<Opening>(*this, call, request, response, std::move(finish))
            ->Begin(context);
      });
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ResultForward::Upload(
    grpc::CallbackServerContext* context) {
  ServerStreamOptions options;
  options.counted = false;  // ChooseSink
  return DownstreamStream::Start(parts_.runtime, context, kUpload, options, kMaxMessage,
                                 [this](Call& call, const grpc::ByteBuffer& first,
                                        const std::shared_ptr<DownstreamStream>& downstream) {
                                   return ChooseSink(call, first, downstream);
                                 });
}

// A stream is counted after the earlier stream of its upload was ended, so that a sender at its
// limit can resume its uploads before the loss of its old connection is noticed.
absl::StatusOr<std::shared_ptr<MessageSink>> ResultForward::ChooseSink(
    Call& call, const grpc::ByteBuffer& first,
    const std::shared_ptr<DownstreamStream>& downstream) {
  v1::UploadRequest request;
  if (first.Length() > kMaxStart || !Parse(first, &request) || !request.has_start()) {
    return errors::InvalidChunk("the first message is not a start");
  }
  const std::string& id = request.start().upload_id();
  const Resource own = OwnPair(call.caller());
  RETURN_IF_ERROR(call.Authorize(own));
  ASSIGN_OR_RETURN(const auto uri, ToUri(call.caller().identity));
  const bool is_relay = RoleOf(call.caller().identity) == Role::kRelay;
  const auto count = [streams = parts_.runtime.streams, uri, is_relay] {
    return streams->Enter(kUpload, uri, is_relay ? kRelayStreams : kStreams);
  };
  if (spool_ != nullptr && spool_->Has(id)) {
    return UploadIntoSpool(id, {downstream, PeerOf(call.caller()), own.node, count}, *spool_,
                           ahead_);
  }
  auto upstream = std::make_shared<UpstreamStream>(downstream, ahead_);
  ASSIGN_OR_RETURN(auto ownership, owners_.Acquire(uri, id, request.start().epoch(),
                                                   [weak = std::weak_ptr(upstream), id] {
                                                     const auto stream = weak.lock();
                                                     if (stream != nullptr)
                                                       stream->Abandon(errors::TakenOver(id));
                                                   }));
  ASSIGN_OR_RETURN(auto counted, count());
  ASSIGN_OR_RETURN(auto upstream_call, BeginUpstreamCall(parts_.upstream, &Upstream::Results,
                                                         uploads_, call, downstream->context(), 0));
  upstream->Start(std::move(upstream_call), kUpload, std::move(counted), std::move(ownership));
  return upstream;
}

grpc::ServerUnaryReactor* ResultForward::SubmitResult(grpc::CallbackServerContext* context,
                                                      const v1::SubmitResultRequest* request,
                                                      v1::Result* response) {
  constexpr std::string_view kMethod = "/muster.v1.ResultService/SubmitResult";
  if (const auto size = static_cast<int64_t>(request->body().size()); size > kSubmitMax) {
    return AnswerHere(parts_.runtime, context, kMethod, {*request, response},
                      [size](const std::shared_ptr<Call>&, Finish finish) {
                        finish(errors::TooLargeForSubmit(size, kSubmitMax));
                      });
  }
  return ForwardUnary(parts_, &Upstream::Results, context, kMethod,
                      PairOf(request->description().key()), request, response);
}

grpc::ServerUnaryReactor* ResultForward::GetResult(grpc::CallbackServerContext* context,
                                                   const v1::GetResultRequest* request,
                                                   v1::Result* response) {
  return ForwardUnary(parts_, &Upstream::Results, context, "/muster.v1.ResultService/GetResult",
                      PairOf(request->key()), request, response);
}

grpc::ServerUnaryReactor* ResultForward::DeclineRedelivery(
    grpc::CallbackServerContext* context, const v1::DeclineRedeliveryRequest* request,
    v1::DeclineRedeliveryResponse* response) {
  return ForwardUnary(parts_, &Upstream::Results, context,
                      "/muster.v1.ResultService/DeclineRedelivery", PairOf(request->key()), request,
                      response);
}

grpc::ServerUnaryReactor* ResultForward::ListResults(grpc::CallbackServerContext* context,
                                                     const v1::ListResultsRequest*,
                                                     v1::ListResultsResponse*) {
  return RejectUnary(parts_.runtime, context, "/muster.v1.ResultService/ListResults");
}

grpc::ServerWriteReactor<v1::FileChunk>* ResultForward::ReadResult(
    grpc::CallbackServerContext* context, const v1::ReadResultRequest*) {
  return RejectStream<v1::FileChunk>(parts_.runtime, context,
                                     "/muster.v1.ResultService/ReadResult");
}

}  // namespace muster
