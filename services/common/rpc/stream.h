// Server streaming without a thread per stream: a source that is asked for the next message when
// the one before has gone out.
#ifndef MUSTER_SERVICES_COMMON_RPC_STREAM_H_
#define MUSTER_SERVICES_COMMON_RPC_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/base/mutex.h"
#include "services/common/errors/runs.h"
#include "services/common/rpc/call.h"

namespace muster {

enum class Pull {
  kMessage,  // the message was filled in
  kWait,     // there is none now: ask again after the wake function was called
  kEnd,      // the stream is complete
};

// What a stream sends. Called on the executor, never twice at a time; may wait for the disk.
template <typename Message>
class StreamSource {
 public:
  virtual ~StreamSource() = default;
  virtual absl::StatusOr<Pull> Next(Message* message) = 0;
};

// Makes the source of one call, on the executor; here the handler authorises. `wake` may be kept
// and called from any thread, at any time, also after the stream has ended.
template <typename Message>
using MakeSource = absl::AnyInvocable<absl::StatusOr<std::unique_ptr<StreamSource<Message>>>(
    Call& call, std::function<void()> wake)>;

// The reactor of one stream; deletes itself when gRPC is done with it.
template <typename Message>
class StreamReactor : public grpc::ServerWriteReactor<Message> {
 public:
  static grpc::ServerWriteReactor<Message>* Start(const RpcRuntime& runtime,
                                                  grpc::CallbackServerContext* context,
                                                  std::string_view method,
                                                  MakeSource<Message> make) {
    auto* reactor = new StreamReactor(runtime, context, method);
    reactor->Begin(std::move(make));
    return reactor;
  }

  void OnWriteDone(bool ok) override {
    call_.EndWrite();
    if (!ok) return End(absl::CancelledError("the client went away"));
    Post();
  }

  void OnCancel() override { Wake(); }

  void OnDone() override {
    {
      MutexLock lock(link_->mutex);
      link_->reactor = nullptr;
    }
    delete this;
  }

 private:
  // Lets wake functions outlive the reactor.
  struct Link {
    Mutex mutex;
    StreamReactor* reactor ABSL_GUARDED_BY(mutex);
  };

  StreamReactor(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                std::string_view method)
      : executor_(*runtime.executor),
        context_(context),
        call_(runtime, context, method),
        link_(std::make_shared<Link>()) {
    link_->reactor = this;
  }

  void Begin(MakeSource<Message> make) {
    if (!call_.caller_status().ok()) return End(call_.caller_status());
    const bool queued = executor_.Post([this, make = std::move(make)]() mutable {
      auto source = make(call_, [link = link_] {
        MutexLock lock(link->mutex);
        if (link->reactor != nullptr) link->reactor->Wake();
      });
      if (!source.ok()) return End(source.status());
      source_ = *std::move(source);
      PullNext();
    });
    if (!queued) End(errors::Overloaded());
  }

  // Asks the source again if it is waiting; else remembers to, so that no wake is lost.
  void Wake() {
    bool ask = false;
    {
      MutexLock lock(mutex_);
      if (ended_) return;
      ask = waiting_;
      waiting_ = false;
      if (!ask) woken_ = true;
    }
    if (ask) Post();
  }

  void Post() {
    if (!executor_.Post([this] { PullNext(); })) End(errors::Overloaded());
  }

  void PullNext() {
    for (;;) {
      if (context_->IsCancelled()) return End(absl::CancelledError("the call was cancelled"));
      auto pull = source_->Next(&message_);
      if (!pull.ok()) return End(pull.status());
      if (*pull == Pull::kEnd) return End(absl::OkStatus());
      if (*pull == Pull::kMessage) {
        call_.BeginWrite();
        return this->StartWrite(&message_);
      }
      MutexLock lock(mutex_);
      if (!woken_ && !context_->IsCancelled()) {
        waiting_ = true;
        return;
      }
      woken_ = false;
    }
  }

  void End(const absl::Status& status) {
    {
      MutexLock lock(mutex_);
      if (ended_) return;
      ended_ = true;
    }
    this->Finish(call_.Final(status));
  }

  Executor& executor_;
  grpc::CallbackServerContext* const context_;
  Call call_;
  const std::shared_ptr<Link> link_;
  std::unique_ptr<StreamSource<Message>> source_;
  Message message_;
  Mutex mutex_;
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_STREAM_H_
