#include "services/relay/proxy/heartbeats/heartbeat_forward.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "services/common/base/mutex.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/heartbeats.h"
#include "services/common/heartbeat/heartbeat_check.h"
#include "services/common/heartbeat/progress_report.h"
#include "services/common/rpc/forwarded_metadata.h"
#include "services/common/rpc/forwarding.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/rpc/server_stream.h"

namespace muster {
namespace {

constexpr char kRelayHeartbeats[] = "/muster.v1.HeartbeatService/RelayHeartbeats";
constexpr size_t kMaxRelayMessage = size_t{8} << 20;

// The heartbeats of many senders share a message to the status service. All texts of a pair are
// some 220 KiB.
constexpr size_t kMaxHeartbeatBytes = size_t{256} << 10;

// A sender has one stream for each pair that it works on.
constexpr StreamLimits kStreams = {.of_caller = 64};

// The heartbeats of one sender. Small, because thousands of these are idle most of the time.
// Callbacks use the fields without a guard; Probe and End come from any thread.
class HeartbeatHandler final
    : public ServerStreamHandler<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse>,
      public HeartbeatSender,
      public std::enable_shared_from_this<HeartbeatHandler> {
 public:
  HeartbeatHandler(Upstream& upstream, HeartbeatHub& hub, const Clock& clock,
                   StreamStopper& stopper)
      : upstream_(upstream), hub_(hub), clock_(clock), stopper_(stopper) {}

  // ServerStreamHandler.
  void OnStart(const std::shared_ptr<ServerStream<v1::StreamHeartbeatsResponse>>& stream) override {
    stream_ = stream;
    auto ticket = stopper_.Add([stream](const absl::Status& why) { stream->End(why); });
    if (!ticket.ok()) return stream->End(ticket.status());
    ticket_ = *std::move(ticket);
    stream->ReadNext();
  }

  void OnMessage(v1::StreamHeartbeatsRequest request) override {
    const bool goodbye = request.goodbye();
    if (const absl::Status status = Handle(std::move(request)); !status.ok()) return End(status);
    if (goodbye) return End(absl::OkStatus());
    stream_->ReadNext();
  }

  void OnHalfClose() override {
    End(errors::InvalidHeartbeat(
        "the stream ended without a goodbye, or with a message that cannot be read"));
  }

  void OnWritable() override {
    MutexLock lock(mutex_);
    SendDue();
  }

  void OnEnd(const absl::Status&, EndedBy) override {
    ticket_.reset();
    if (id_ != 0) hub_.Remove(id_);
  }

  // HeartbeatSender.
  void Probe() override {
    MutexLock lock(mutex_);
    probe_due_ = true;
    SendDue();
  }
  void End(const absl::Status& why) override { stream_->End(why); }

 private:
  absl::Status Handle(v1::StreamHeartbeatsRequest request) {
    Call& call = stream_->call();
    const Identity& identity = call.caller().identity;
    if (id_ == 0) {
      const auto node = NodeOf(identity, request);
      const absl::Status allowed =
          call.Authorize(Resource::Pair("", "", node.ok() ? *node : std::string()));
      RETURN_IF_ERROR(node.status());
      RETURN_IF_ERROR(allowed);
      RETURN_IF_ERROR(upstream_.StatementFor(call.caller()).status());
      node_ = *node;
      instance_ = request.instance_id();
    }
    RETURN_IF_ERROR(CheckHeartbeat(request, node_, instance_));
    request.DiscardUnknownFields();
    for (v1::Activity& activity : *request.mutable_activities()) {
      CleanActivity(&activity);
      ASSIGN_OR_RETURN(const auto key, PairOf(identity, node_, activity.key()));
      *activity.mutable_key() = key;
      RETURN_IF_ERROR(call.Authorize(Resource::Pair(key.run(), key.plugin(), key.node())));
      RETURN_IF_ERROR(CheckProgress(activity.progress()));
    }
    if (request.ByteSizeLong() > kMaxHeartbeatBytes) {
      return errors::InvalidHeartbeat("it has more than 256 KiB; send each pair on its own stream");
    }
    if (id_ == 0) {
      ASSIGN_OR_RETURN(
          id_, hub_.Add(std::make_shared<Caller>(call.caller()), request, weak_from_this()));
    } else if (request.sequence() > sequence_) {
      hub_.HandleHeartbeat(id_, request);
    }
    sequence_ = std::max(sequence_, request.sequence());
    MutexLock lock(mutex_);
    answer_due_ = sequence_;
    SendDue();
    return absl::OkStatus();
  }

  // While a message is being sent the stream accepts no other; then OnWritable sends what is due.
  void SendDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!answer_due_ && !probe_due_) return;
    v1::StreamHeartbeatsResponse response;
    response.set_sequence(answer_due_.value_or(answered_));
    ToProto(hub_.interval(), response.mutable_interval());
    ToProto(clock_.Now(), response.mutable_time());
    response.set_probe(!answer_due_);
    if (stream_->Send(std::move(response)) != Sent::kQueued) return;
    answered_ = answer_due_.value_or(answered_);
    answer_due_.reset();
    probe_due_ = false;
  }

  Upstream& upstream_;
  HeartbeatHub& hub_;
  const Clock& clock_;
  StreamStopper& stopper_;
  StreamStopper::Ticket ticket_;  // of stopper_, until the end
  std::shared_ptr<ServerStream<v1::StreamHeartbeatsResponse>> stream_;
  std::string node_;
  std::string instance_;
  int32_t id_ = 0;  // in the hub
  int64_t sequence_ = -1;

  Mutex mutex_;
  std::optional<int64_t> answer_due_ ABSL_GUARDED_BY(mutex_);  // the sequence
  bool probe_due_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t answered_ ABSL_GUARDED_BY(mutex_) = -1;
};

// Adds the statement of the relay whose stream this is: that of the child, unless the child has
// added the statement of its descendant.
absl::Status AddRelayStatement(Upstream& upstream, const Call& call,
                               const grpc::CallbackServerContext& downstream,
                               grpc::ClientContext& forwarded) {
  const auto& metadata = downstream.client_metadata();
  const auto given = metadata.find(kRelayStatement);
  std::string statement;
  if (given != metadata.end()) {
    statement.assign(given->second.data(), given->second.size());
  } else {
    ASSIGN_OR_RETURN(statement, upstream.StatementOfChildRelay(call.caller()));
  }
  return AddMetadata(forwarded, {{kRelayStatement, statement}});
}

}  // namespace

grpc::ServerBidiReactor<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse>*
HeartbeatForward::StreamHeartbeats(grpc::CallbackServerContext* context) {
  ServerStreamOptions options;
  // A sender that never sends a heartbeat could not be missed.
  options.first_late = errors::NoFirstHeartbeat;
  options.limits = kStreams;
  return StartServerStream<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse>(
      parts_.runtime, context, "/muster.v1.HeartbeatService/StreamHeartbeats", options,
      std::make_shared<HeartbeatHandler>(parts_.upstream, hub_, clock_, stopper_));
}

grpc::ServerUnaryReactor* HeartbeatForward::SendHeartbeat(grpc::CallbackServerContext* context,
                                                          const v1::SendHeartbeatRequest* request,
                                                          v1::SendHeartbeatResponse* response) {
  const v1::ResultKey& key = request->key();
  return ForwardUnary(parts_, &Upstream::Status, context,
                      "/muster.v1.HeartbeatService/SendHeartbeat",
                      Resource::Pair(key.run(), key.plugin(), key.node()), request, response);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* HeartbeatForward::RelayHeartbeats(
    grpc::CallbackServerContext* context) {
  // `parts_.calls` limits the streams: those of all descendant relays arrive in the child's name.
  return DownstreamStream::Start(
      parts_.runtime, context, kRelayHeartbeats, ServerStreamOptions(), kMaxRelayMessage,
      [this](Call& call, const grpc::ByteBuffer&,
             const std::shared_ptr<DownstreamStream>& downstream)
          -> absl::StatusOr<std::shared_ptr<MessageSink>> {
        RETURN_IF_ERROR(call.Authorize(Resource::Own()));
        ASSIGN_OR_RETURN(auto upstream_call,
                         BeginUpstreamCall(parts_.upstream, &Upstream::Status, parts_.calls, call,
                                           downstream->context(), 0));
        RETURN_IF_ERROR(AddRelayStatement(parts_.upstream, call, *downstream->context(),
                                          *upstream_call.context));
        ASSIGN_OR_RETURN(auto ticket,
                         stopper_.Add([weak = std::weak_ptr(downstream)](const absl::Status& why) {
                           if (const auto stream = weak.lock()) stream->End(why);
                         }));
        // The stream keeps both tickets until its upstream side has ended.
        using Tickets = std::pair<Admission::Ticket, StreamStopper::Ticket>;
        const auto tickets =
            std::make_shared<Tickets>(std::move(upstream_call.ticket), std::move(ticket));
        upstream_call.ticket = Admission::Ticket(tickets, tickets->first.get());
        auto upstream = std::make_shared<UpstreamStream>(downstream, ahead_);
        upstream->Start(std::move(upstream_call), kRelayHeartbeats);
        return upstream;
      });
}

}  // namespace muster
