// Streams at a client, by one state machine (client_stream_core.h). One kind serves all methods: a
// server streaming one gets its request by SendLast.
#ifndef MUSTER_SERVICES_COMMON_RPC_CLIENT_STREAM_H_
#define MUSTER_SERVICES_COMMON_RPC_CLIENT_STREAM_H_

#include <grpcpp/alarm.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/client_callback.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/timers.h"
#include "services/common/rpc/client_stream_core.h"
#include "services/common/rpc/out_message.h"
#include "services/common/rpc/status.h"

namespace muster {

// The objects that streams of a client share; both outlive them.
struct ClientStreamRuntime {
  Executor* executor = nullptr;    // for StreamOptions::on_executor
  TimerService* timers = nullptr;  // for StreamOptions::first_within; null: no limit
};

// Set once a stream's callbacks have returned and gRPC's threads use the stream no more.
// Thread-safe.
class StreamRelease {
 public:
  void Set();
  void Wait();
  bool WaitFor(absl::Duration limit);

 private:
  Mutex mutex_;
  CondVar changed_;
  bool set_ ABSL_GUARDED_BY(mutex_) = false;
};

// The stream of a handler: ReadNext, NotifyWhenWritable, HalfClose and Cancel of the cores, and
// Send. Thread-safe.
//
// The stream holds a reference to its channel. With the last channel or server of a process, gRPC
// 1.51 joins the threads that call reactions: one of them would wait for itself. So the last
// reference to a stream must not be dropped in a callback. StreamOwner guarantees that; without
// one, something else in the process has to keep a channel or server.
class ClientStreamBase : public ClientStreamCore {
 public:
  grpc::ClientContext& context() { return *context_; }
  const std::shared_ptr<StreamRelease>& release() const { return release_; }

 protected:
  ClientStreamBase(const ClientStreamRuntime& runtime, const StreamOptions& options,
                   std::unique_ptr<grpc::ClientContext> context);
  ~ClientStreamBase() override;

 private:
  // The stream for its alarm, which may go off while the stream is destroyed. A weak reference is
  // not enough: the last reference must not be dropped on a thread of gRPC.
  struct Alarmed {
    Mutex mutex;
    ClientStreamBase* stream ABSL_GUARDED_BY(mutex) = nullptr;
  };

  void AwaitEnd() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CancelCall() override;
  bool Post(Executor::Task task) override;

  Executor* const executor_;
  const std::unique_ptr<grpc::ClientContext> context_;
  const std::shared_ptr<StreamRelease> release_ = std::make_shared<StreamRelease>();
  const std::shared_ptr<Alarmed> alarmed_ = std::make_shared<Alarmed>();
  grpc::Alarm end_;  // cancelled by its destructor
};

template <typename Request, typename Response>
class ClientStream;

// The callbacks of a stream. They never overlap (see StreamCore).
template <typename Request, typename Response>
class ClientStreamHandler {
 public:
  virtual ~ClientStreamHandler() = default;

  // The first callback, on the thread that starts the stream.
  virtual void OnStart(const std::shared_ptr<ClientStream<Request, Response>>& stream) = 0;

  // A message that ReadNext asked for.
  virtual void OnMessage(Response message) = 0;

  // There is room in the queue, after NotifyWhenWritable or a Send that found it full, or always
  // with StreamOptions::notify_when_sent.
  virtual void OnWritable() {}

  // The last callback: the call is over. `status` is the server's, or that of Cancel.
  virtual void OnEnd(const absl::Status& status, EndedBy by) = 0;
};

template <typename Request, typename Response>
class ClientStream final : public ClientStreamBase,
                           private grpc::ClientBidiReactor<Request, Response> {
 public:
  using Handler = ClientStreamHandler<Request, Response>;

  // Starts a stream of `method`, "/muster.v1.HeartbeatService/StreamHeartbeats". `context` may
  // carry metadata and a deadline.
  static std::shared_ptr<ClientStream> Start(
      const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
      const StreamOptions& options, std::shared_ptr<Handler> handler,
      const ClientStreamRuntime& runtime = {},
      std::unique_ptr<grpc::ClientContext> context = std::make_unique<grpc::ClientContext>()) {
    const std::shared_ptr<ClientStream> stream(
        new ClientStream(runtime, options, std::move(context)));
    stream->self_ = stream;
    stream->handler_ = handler;
    grpc::TemplatedGenericStub<Request, Response>(channel).PrepareBidiStreamingCall(
        &stream->context(), method, {}, stream.get());
    stream->AddHold();  // until CloseCall: operations are also started from other threads
    stream->AwaitFirstMessage();
    handler->OnStart(stream);
    stream->StartCall();
    return stream;
  }

  Sent Send(Request message) { return Enqueue(MakeOutMessage(&message), /*last=*/false); }

  // Sends a last message, even if the queue is full, and half-closes the stream.
  void SendLast(Request message) { Enqueue(MakeOutMessage(&message), /*last=*/true); }

 private:
  using Reactor = grpc::ClientBidiReactor<Request, Response>;

  using ClientStreamBase::ClientStreamBase;

  // Reactions of gRPC.
  void OnReadDone(bool ok) override { this->HandleRead(ok); }
  void OnWriteDone(bool ok) override { this->HandleWritten(ok); }
  void OnDone(const grpc::Status& status) override { this->HandleDone(FromGrpc(status)); }

  void StartReading() override { Reactor::StartRead(&response_); }
  void StartWriting(OutMessage& message, bool last) override {
    if (last) {
      Reactor::StartWriteLast(&MessageOf<Request>(message), grpc::WriteOptions());
    } else {
      Reactor::StartWrite(&MessageOf<Request>(message));
    }
  }
  void StartHalfClosing() override { Reactor::StartWritesDone(); }
  void CloseCall() override { Reactor::RemoveHold(); }

  void CallMessage() override {
    Response message;
    message.Swap(&response_);
    this->SlotFree();
    handler_->OnMessage(std::move(message));
  }
  void CallWritable() override { handler_->OnWritable(); }
  // The owner waits for the release, so that its reference is the last.
  void CallEnded(const absl::Status& status, EndedBy by) override {
    const std::shared_ptr<StreamRelease> release = this->release();
    auto self = std::move(self_);
    std::exchange(handler_, nullptr)->OnEnd(status, by);
    self.reset();
    release->Set();
  }

  std::shared_ptr<ClientStream> self_;  // until CallEnded
  std::shared_ptr<Handler> handler_;    // until CallEnded
  Response response_;
};

// Owns a stream: its destructor cancels it and waits until the last callback has returned. Must not
// be destroyed in a callback. Thread-safe.
template <typename Request, typename Response>
class StreamOwner {
 public:
  explicit StreamOwner(std::shared_ptr<ClientStream<Request, Response>> stream)
      : stream_(std::move(stream)) {}
  StreamOwner(const StreamOwner&) = delete;
  StreamOwner& operator=(const StreamOwner&) = delete;

  ~StreamOwner() {
    stream_->Cancel(absl::CancelledError("this side no longer needs the stream"));
    stream_->release()->Wait();
  }

  ClientStream<Request, Response>* operator->() const { return stream_.get(); }

  // Waits for the end of the stream; false if it has not ended after `limit`.
  bool AwaitEnd(absl::Duration limit) const { return stream_->release()->WaitFor(limit); }

 private:
  const std::shared_ptr<ClientStream<Request, Response>> stream_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_CLIENT_STREAM_H_
