#include "services/common/rpc/call.h"

#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/errors/rpc.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/caller_uri.h"
#include "services/common/rpc/caller.h"
#include "services/common/rpc/limits.h"
#include "services/common/rpc/rpc_metrics.h"
#include "services/common/rpc/status.h"

namespace muster {
namespace {

// Returns whether the method has no effect, so that a call may fail after its handler. Methods are
// named by the API Improvement Proposals.
bool OnlyReads(std::string_view method) {
  const std::string_view name = method.substr(method.rfind('/') + 1);
  return name.starts_with("Get") || name.starts_with("List") || name.starts_with("Preview");
}

// Returns whether every answer of the method has fewer bytes than kCountedAnswerBytes. Sources of
// results call these all the time, and thousands of them may share one credential.
bool HasSmallAnswer(std::string_view method) {
  return method == "/muster.v1.ResultService/OpenUpload" ||
         method == "/muster.v1.ResultService/SubmitResult" ||
         method == "/muster.v1.StatusService/ReportProgress" ||
         method == "/muster.v1.HeartbeatService/SendHeartbeat";
}

}  // namespace

Call::Call(const RpcRuntime& runtime, grpc::CallbackServerContext* context, std::string_view method)
    : runtime_(runtime), method_(method), began_(SystemClock().MonotonicNow()) {
  auto caller = runtime_.callers->Resolve(*context->auth_context(), context->client_metadata());
  caller_status_ = caller.status();
  if (!caller.ok()) return;
  caller_ = *std::move(caller);
  holder_ = HolderOf(*caller_);
  call_entry_ = runtime_.canceller->Add(caller_, context);
}

Call::~Call() = default;

absl::Status Call::Authorize(const Resource& resource) {
  if (!caller_status_.ok()) return caller_status_;
  asked_ = true;
  return muster::Authorize(*caller_, method_, resource);
}

absl::Status Call::CountRequest(int64_t bytes) {
  if (!caller_status_.ok() || runtime_.request_memory == nullptr) return caller_status_;
  if (bytes < kCountedRequestBytes) return absl::OkStatus();
  ASSIGN_OR_RETURN(memory_, runtime_.request_memory->Reserve(holder_, bytes));
  return absl::OkStatus();
}

absl::Status Call::ReserveAnswer() {
  if (!caller_status_.ok() || runtime_.answer_memory == nullptr) return caller_status_;
  if (OnlyReads(method_) || HasSmallAnswer(method_)) return absl::OkStatus();
  ASSIGN_OR_RETURN(answer_, runtime_.answer_memory->Reserve(holder_, kCountedAnswerBytes));
  return absl::OkStatus();
}

absl::StatusOr<AnswerMemory::Ticket> Call::CountAnswer(int64_t bytes) const {
  if (runtime_.answer_memory == nullptr || bytes < kCountedAnswerBytes) {
    return AnswerMemory::Ticket();
  }
  return runtime_.answer_memory->Reserve(holder_, bytes);
}

absl::StatusOr<AnswerMemory::Ticket> Call::CountUnaryAnswer(int64_t bytes) const {
  if (OnlyReads(method_)) return CountAnswer(bytes);
  if (runtime_.answer_memory == nullptr || bytes < kCountedAnswerBytes) {
    return AnswerMemory::Ticket();
  }
  return runtime_.answer_memory->Charge(holder_, bytes);
}

grpc::Status Call::Final(const absl::Status& status) {
  const grpc::Status final = FinalOfStream(status);
  Leave();
  return final;
}

grpc::Status Call::FinalOfUnary(const absl::Status& status, int64_t answer_bytes) {
  absl::Status answer = status;
  if (answer.ok()) {
    auto counted = CountUnaryAnswer(answer_bytes);
    answer = counted.status();
    if (counted.ok()) answer_ = *std::move(counted);
  } else {
    answer_ = AnswerMemory::Ticket();
  }
  const grpc::Status final = FinalOfStream(answer);
  if (call_entry_ != nullptr) BeginWrite();
  return final;
}

grpc::Status Call::FinalOfStream(const absl::Status& status) {
  absl::Status answer = status;
  if (answer.ok() && !asked_) {
    answer = errors::NotAuthorizedByHandler(method_);
  }
  runtime_.metrics->Count(method_, answer.code(), SystemClock().MonotonicNow() - began_);
  return ToGrpc(answer);
}

void Call::SetStream(std::weak_ptr<EndableStream> stream) {
  if (call_entry_ != nullptr) runtime_.canceller->SetStream(*call_entry_, std::move(stream));
}

void Call::ContextGone() {
  if (call_entry_ != nullptr) runtime_.canceller->ForgetContext(*call_entry_);
}

namespace {

// The answer of a unary call. Deletes itself when gRPC has sent it, as far as the peer takes it, or
// the call was cancelled.
class UnaryAnswer : public grpc::ServerUnaryReactor {
 public:
  UnaryAnswer(std::shared_ptr<Call> call, const UnaryMessages& messages)
      : call_(std::move(call)), messages_(messages) {}

  void Answer(const absl::Status& status) {
    const grpc::Status final =
        call_->FinalOfUnary(status, status.ok() ? messages_.ResponseBytes() : 0);
    answered_.exchange(true);
    Finish(final);
  }

  void OnDone() override {
    // Orders this after Answer for race detectors, which do not see the order that gRPC guarantees.
    answered_.exchange(true);
    call_->Leave();
    delete this;
  }

 private:
  const std::shared_ptr<Call> call_;
  const UnaryMessages messages_;
  std::atomic<bool> answered_ = false;
};

}  // namespace

grpc::ServerUnaryReactor* AnswerHere(
    const RpcRuntime& runtime, grpc::CallbackServerContext* context, std::string_view method,
    const UnaryMessages& messages,
    absl::AnyInvocable<void(std::shared_ptr<Call>, Finish)> handler) {
  auto call = std::make_shared<Call>(runtime, context, method);
  auto* const answer = new UnaryAnswer(call, messages);
  absl::Status status = call->CountRequest(messages.request_bytes());
  if (status.ok()) status = call->ReserveAnswer();
  if (!status.ok()) {
    answer->Answer(status);
    return answer;
  }
  handler(std::move(call), [answer](const absl::Status& status) { answer->Answer(status); });
  return answer;
}

grpc::ServerUnaryReactor* AnswerLater(
    const RpcRuntime& runtime, grpc::CallbackServerContext* context, std::string_view method,
    const UnaryMessages& messages,
    absl::AnyInvocable<void(std::shared_ptr<Call>, Finish)> handler) {
  return AnswerHere(
      runtime, context, method, messages,
      [executor = runtime.executor, handler = std::move(handler)](const std::shared_ptr<Call>& call,
                                                                  Finish finish) mutable {
        // Shared, since a queue that is full drops what it was given.
        auto done = std::make_shared<Finish>(std::move(finish));
        if (executor->Post(call->holder(), [call, done, handler = std::move(handler)]() mutable {
              handler(call, std::move(*done));
            })) {
          return;
        }
        (*done)(errors::Overloaded());
      });
}

grpc::ServerUnaryReactor* Answer(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                                 std::string_view method, const UnaryMessages& messages,
                                 absl::AnyInvocable<absl::Status(Call&)> handler) {
  return AnswerLater(
      runtime, context, method, messages,
      [handler = std::move(handler)](const std::shared_ptr<Call>& call, Finish finish) mutable {
        finish(handler(*call));
      });
}

}  // namespace muster
