// One RPC as its handler sees it, and functions that answer unary RPCs.
//
// Every handler calls Call::Authorize for the resource that it touches before it answers. An OK
// without that call becomes an error, so a forgotten check refuses instead of admitting.
#ifndef MUSTER_SERVICES_COMMON_RPC_CALL_H_
#define MUSTER_SERVICES_COMMON_RPC_CALL_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/identity/rpc_authorization.h"
#include "services/common/rpc/answer_memory.h"
#include "services/common/rpc/call_canceller.h"
#include "services/common/rpc/request_memory.h"

namespace muster {

class CallerResolver;
class OpenStreams;
class RpcMetrics;
class TimerService;

// The objects that the handlers of a server share. The pointers outlive every call.
struct RpcRuntime {
  CallerResolver* callers = nullptr;
  // Where handlers run: they may wait for the disk. The holders (HolderOf) take turns.
  Executor* executor = nullptr;
  CallCanceller* canceller = nullptr;
  RpcMetrics* metrics = nullptr;
  // For streams. Null: there is no deadline for the first message, and streams are not counted.
  TimerService* stream_timers = nullptr;
  OpenStreams* streams = nullptr;
  // Null: large requests, or answers, are not counted.
  RequestMemory* request_memory = nullptr;
  AnswerMemory* answer_memory = nullptr;
};

// The messages of a unary call. Without a response, every answer is an error.
class UnaryMessages {
 public:
  // The response outlives the call.
  UnaryMessages(const google::protobuf::MessageLite& request,
                const google::protobuf::MessageLite* response)
      : request_bytes_(static_cast<int64_t>(request.ByteSizeLong())), message_(response) {}
  UnaryMessages(const grpc::ByteBuffer& request, const grpc::ByteBuffer* response)
      : request_bytes_(static_cast<int64_t>(request.Length())), buffer_(response) {}

  int64_t request_bytes() const { return request_bytes_; }

  // To be called once the response is complete.
  int64_t ResponseBytes() const {
    if (message_ != nullptr) return static_cast<int64_t>(message_->ByteSizeLong());
    return buffer_ == nullptr ? 0 : static_cast<int64_t>(buffer_->Length());
  }

 private:
  int64_t request_bytes_ = 0;
  const google::protobuf::MessageLite* message_ = nullptr;
  const grpc::ByteBuffer* buffer_ = nullptr;
};

// Thread-safe. `method` is the full name, "/muster.v1.RunService/GetRun".
class Call {
 public:
  Call(const RpcRuntime& runtime, grpc::CallbackServerContext* context, std::string_view method);
  ~Call();

  // The identity of the caller, if its status is OK. Another status means that the gate in front of
  // the handlers admitted the call by mistake.
  const absl::Status& caller_status() const { return caller_status_; }
  const Caller& caller() const { return *caller_; }
  std::string_view method() const { return method_; }

  // Under this name limits count what the caller holds (HolderOf); likewise.
  const std::string& holder() const { return holder_; }

  // Returns OK if the caller may call the method for `resource`, or PERMISSION_DENIED.
  absl::Status Authorize(const Resource& resource);

  // Counts the bytes of the request until Leave; RESOURCE_EXHAUSTED at a limit of
  // RpcRuntime::request_memory. Called once, before the handler.
  absl::Status CountRequest(int64_t bytes);

  // Reserves memory for the answer of a unary call that has an effect, so that it is refused before
  // the effect and not after it; RESOURCE_EXHAUSTED at a limit of RpcRuntime::answer_memory. Called
  // once, before the handler.
  absl::Status ReserveAnswer();

  // Counts the bytes of a message to the caller, for as long as the ticket exists;
  // RESOURCE_EXHAUSTED at a limit of RpcRuntime::answer_memory.
  absl::StatusOr<AnswerMemory::Ticket> CountAnswer(int64_t bytes) const;

  // Between these two a message is being sent: a client that does not read is cancelled.
  void BeginWrite() { call_entry_->BeginWrite(SystemClock().MonotonicNow()); }
  void EndWrite() { call_entry_->EndWrite(); }

  // Returns the status for the client: `status`, or an error if the handler did not authorise the
  // call. Counts the call, which can no longer be cancelled.
  grpc::Status Final(const absl::Status& status);

  // The same for a unary call whose answer has so many bytes. They are counted, and the call can be
  // cancelled, until Leave: when the peer has taken the answer. A call that only reads fails with
  // RESOURCE_EXHAUSTED at a limit of RpcRuntime::answer_memory.
  grpc::Status FinalOfUnary(const absl::Status& status, int64_t answer_bytes);

  // The same for a stream, which may still be sending its last message with the status: it can be
  // cancelled until ContextGone, and CallCanceller waits for it until Leave.
  grpc::Status FinalOfStream(const absl::Status& status);
  void ContextGone();
  void Leave() {
    memory_ = RequestMemory::Ticket();
    answer_ = AnswerMemory::Ticket();
    call_entry_.reset();
  }

  // Lets CallCanceller::EndIf end the stream of this call with a reason.
  void SetStream(std::weak_ptr<EndableStream> stream);

  // Lets CallCanceller::AwaitNone wait for the call as long as the result exists: for work of a
  // stream that continues after its end. To be called before Leave.
  CallCanceller::Handle Hold() const { return call_entry_; }

 private:
  absl::StatusOr<AnswerMemory::Ticket> CountUnaryAnswer(int64_t bytes) const;

  const RpcRuntime runtime_;
  const std::string_view method_;
  const absl::Duration began_;  // monotonic
  absl::Status caller_status_;
  std::shared_ptr<const Caller> caller_;
  std::string holder_;
  std::atomic<bool> asked_ = false;
  CallCanceller::Handle call_entry_;
  RequestMemory::Ticket memory_;
  AnswerMemory::Ticket answer_;  // until FinalOfUnary: the reservation
};

using Finish = absl::AnyInvocable<void(absl::Status)>;

// Answers a unary RPC: runs `handler` on the executor, in turn with the calls of other holders; it
// calls `finish` once, from any thread. The request and the response exist until then.
// RESOURCE_EXHAUSTED if the executor's queue is full (OVERLOADED), or at a limit for the memory of
// requests or answers.
grpc::ServerUnaryReactor* AnswerLater(
    const RpcRuntime& runtime, grpc::CallbackServerContext* context, std::string_view method,
    const UnaryMessages& messages,
    absl::AnyInvocable<void(std::shared_ptr<Call> call, Finish finish)> handler);

// The same on gRPC's own thread: for a handler that neither waits nor computes for long.
grpc::ServerUnaryReactor* AnswerHere(
    const RpcRuntime& runtime, grpc::CallbackServerContext* context, std::string_view method,
    const UnaryMessages& messages,
    absl::AnyInvocable<void(std::shared_ptr<Call> call, Finish finish)> handler);

// As AnswerLater, for a handler that has its answer when it returns.
grpc::ServerUnaryReactor* Answer(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                                 std::string_view method, const UnaryMessages& messages,
                                 absl::AnyInvocable<absl::Status(Call& call)> handler);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_CALL_H_
