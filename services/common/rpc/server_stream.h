// Streams at a server: bidirectional, server streaming and client streaming, by one state machine
// (server_stream_core.h). A service implements a handler and starts a stream for it:
//
//   return StartServerStream<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse>(
//       runtime_, context, kMethod, options, std::make_shared<HeartbeatHandler>(parts_));
//
// With `void` as request the method is a server streaming one, with `void` as response a client
// streaming one, whose handler fills in gRPC's response before it ends the stream with OK.
#ifndef MUSTER_SERVICES_COMMON_RPC_SERVER_STREAM_H_
#define MUSTER_SERVICES_COMMON_RPC_SERVER_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string_view>
#include <utility>

#include "services/common/rpc/call.h"
#include "services/common/rpc/open_streams.h"
#include "services/common/rpc/out_message.h"
#include "services/common/rpc/server_stream_core.h"

namespace muster {

struct ServerStreamOptions : StreamOptions {
  // A stream is counted from its first message on, one without messages of the client from its
  // start; or never, if its handler counts it by OpenStreams::Enter.
  bool counted = true;
  // `of_caller` does not apply to services, nor to credentials that many machines share.
  StreamLimits limits;
};

// The stream of a handler: ReadNext, NotifyWhenWritable, End and Cancel of the cores, and Send.
// Thread-safe.
//
// It exists until the call is over and OnEnd has returned; then it drops the handler. So a handler
// may hold the stream by a shared_ptr. Other objects hold the stream or the handler by a weak_ptr,
// or by a shared_ptr whose calls have no effect after the end.
class ServerStreamBase : public ServerStreamCore, public EndableStream {
 public:
  Call& call() { return call_; }

  // EndableStream. Waits for the peer for up to a second.
  void EndSoon(const absl::Status& why) override;

  // Valid until OnEnd.
  grpc::CallbackServerContext* context() const { return context_; }

 protected:
  ServerStreamBase(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                   std::string_view method, const ServerStreamOptions& options);

  // Lets CallCanceller end this stream.
  void Register();

  // Counts the stream; RESOURCE_EXHAUSTED at a limit.
  absl::Status Admit();

  // Reactions of gRPC.
  void HandleReadDone(bool ok);
  void HandleWriteDone(bool ok);
  void HandleCallDone();

  // After OnEnd: CallCanceller::AwaitNone waits for this.
  void Leave();

 private:
  void CancelCall() override;
  bool Post(Executor::Task task) override;

  Executor& executor_;
  TimerService* const timers_;  // null: peers are not waited for
  OpenStreams* const streams_;
  grpc::CallbackServerContext* const context_;
  const StreamLimits limits_;
  Call call_;
  OpenStreams::Ticket ticket_;  // of the callbacks
};

template <typename Response>
class ServerStream : public ServerStreamBase {
 public:
  Sent Send(Response message) { return Enqueue(MakeOutMessage(&message), /*last=*/false); }

  // Returns the message that was sent last, with StreamOptions::keep_sent; else an empty one.
  Response TakeSent() {
    const std::unique_ptr<OutMessage> sent = TakeSentMessage();
    Response message;
    if (sent != nullptr) message.Swap(&static_cast<OutMessageOf<Response>&>(*sent).message);
    return message;
  }

  // Sends a last message, even if the queue is full, and ends the stream with OK.
  void SendAndEnd(Response message) { Enqueue(MakeOutMessage(&message), /*last=*/true); }

 protected:
  using ServerStreamBase::ServerStreamBase;
};

template <>
class ServerStream<void> : public ServerStreamBase {
 protected:
  using ServerStreamBase::ServerStreamBase;
};

// The callbacks of a stream. They never overlap (see StreamCore). A caller whose identity is
// not verified reaches no handler.
template <typename Response>
class ServerStreamHandlerBase {
 public:
  virtual ~ServerStreamHandlerBase() = default;

  // The first callback, on gRPC's thread in any case: must not wait. Messages are not read before
  // ReadNext.
  virtual void OnStart(const std::shared_ptr<ServerStream<Response>>& stream) = 0;

  // There is room in the queue, after NotifyWhenWritable or a Send that found it full.
  virtual void OnWritable() {}

  // The last callback: the call is over. `status` is that of End or Cancel, or CANCELLED if the
  // peer, CallCanceller or a lost connection ended it first. Must not wait.
  virtual void OnEnd(const absl::Status& status, EndedBy by) {}
};

template <typename Request, typename Response>
class ServerStreamHandler : public ServerStreamHandlerBase<Response> {
 public:
  // A message that ReadNext asked for.
  virtual void OnMessage(Request message) = 0;

  // The client sends nothing more, or has sent what cannot be read. Without a message before it,
  // the stream ends with NO_READABLE_MESSAGE instead.
  virtual void OnHalfClose() = 0;
};

template <typename Response>
class ServerStreamHandler<void, Response> : public ServerStreamHandlerBase<Response> {};

namespace internal {

template <typename Request, typename Response>
struct ServerReactorOf {
  using Type = grpc::ServerBidiReactor<Request, Response>;
};
template <typename Response>
struct ServerReactorOf<void, Response> {
  using Type = grpc::ServerWriteReactor<Response>;
};
template <typename Request>
struct ServerReactorOf<Request, void> {
  using Type = grpc::ServerReadReactor<Request>;
};

// The base of all three kinds.
template <typename Request, typename Response>
class ServerStreamReactor : public ServerReactorOf<Request, Response>::Type,
                            public ServerStream<Response> {
 public:
  using Reactor = typename ServerReactorOf<Request, Response>::Type;
  using Handler = ServerStreamHandler<Request, Response>;

  ServerStreamReactor(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                      std::string_view method, const ServerStreamOptions& options)
      : ServerStream<Response>(runtime, context, method, options) {}

  Reactor* Begin(std::shared_ptr<Handler> handler) {
    const auto self = std::static_pointer_cast<ServerStreamReactor>(this->shared_from_this());
    self_ = self;
    absl::Status status = this->call().caller_status();
    if (status.ok() && std::is_void_v<Request>) status = this->Admit();
    if (!status.ok()) {
      this->End(status);
      return this;
    }
    this->Register();
    handler_ = std::move(handler);
    if (!std::is_void_v<Request>) this->AwaitFirstMessage();
    handler_->OnStart(self);
    return this;
  }

  void OnCancel() override { this->HandleCancel(); }
  void OnDone() override { this->HandleCallDone(); }

 protected:
  Handler& handler() { return *handler_; }

 private:
  void FinishCall(const absl::Status& status, std::unique_ptr<OutMessage>) override {
    this->Finish(this->call().FinalOfStream(status));
  }
  void CallWritable() override { handler_->OnWritable(); }
  void CallEnded(const absl::Status& status, EndedBy by) override {
    const auto self = std::move(self_);
    if (handler_ != nullptr) std::exchange(handler_, nullptr)->OnEnd(status, by);
    this->Leave();
  }

  std::shared_ptr<ServerStreamReactor> self_;  // until CallEnded
  std::shared_ptr<Handler> handler_;           // until CallEnded
};

template <typename Base, typename Request>
class ReadingStream : public Base {
 public:
  using Base::Base;

  void OnReadDone(bool ok) override { this->HandleReadDone(ok); }

 private:
  void StartReading() override { this->StartRead(&request_); }
  void CallMessage() override {
    if (!admitted_) {
      if (const absl::Status status = this->Admit(); !status.ok()) return this->End(status);
      admitted_ = true;
    }
    Request message;
    message.Swap(&request_);
    this->SlotFree();
    this->handler().OnMessage(std::move(message));
  }
  void CallHalfClosed() override {
    if (!admitted_) return this->End(errors::NoReadableMessage());
    this->handler().OnHalfClose();
  }

  Request request_;
  bool admitted_ = false;  // of the callbacks
};

template <typename Base, typename Response>
class WritingStream : public Base {
 public:
  using Base::Base;

  void OnWriteDone(bool ok) override { this->HandleWriteDone(ok); }

 private:
  void StartWriting(OutMessage& message, bool) override {
    this->call().BeginWrite();
    this->StartWrite(&MessageOf<Response>(message));
  }
  void FinishCall(const absl::Status& status, std::unique_ptr<OutMessage> last) override {
    const grpc::Status final = this->call().FinalOfStream(status);
    if (last == nullptr || !final.ok()) return this->Finish(final);
    last_ = std::move(last);
    this->call().BeginWrite();
    this->StartWriteAndFinish(&MessageOf<Response>(*last_), grpc::WriteOptions(), final);
  }

  std::unique_ptr<OutMessage> last_;  // goes out with the status
};

template <typename Request, typename Response>
struct ServerStreamOf {
  using Type =
      WritingStream<ReadingStream<ServerStreamReactor<Request, Response>, Request>, Response>;
};
template <typename Response>
struct ServerStreamOf<void, Response> {
  using Type = WritingStream<ServerStreamReactor<void, Response>, Response>;
};
template <typename Request>
struct ServerStreamOf<Request, void> {
  using Type = ReadingStream<ServerStreamReactor<Request, void>, Request>;
};

}  // namespace internal

// Starts the stream of one call; the reactor is for gRPC alone. `method` outlives the call.
template <typename Request, typename Response>
typename internal::ServerReactorOf<Request, Response>::Type* StartServerStream(
    const RpcRuntime& runtime, grpc::CallbackServerContext* context, std::string_view method,
    const ServerStreamOptions& options,
    std::shared_ptr<ServerStreamHandler<Request, Response>> handler) {
  using Stream = typename internal::ServerStreamOf<Request, Response>::Type;
  return std::make_shared<Stream>(runtime, context, method, options)->Begin(std::move(handler));
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_SERVER_STREAM_H_
