#ifndef MUSTER_SERVICES_COMMON_RPC_TESTING_STREAM_FIXTURE_H_
#define MUSTER_SERVICES_COMMON_RPC_TESTING_STREAM_FIXTURE_H_

#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "muster/v1/changes.grpc.pb.h"
#include "muster/v1/heartbeats.grpc.pb.h"
#include "muster/v1/results.grpc.pb.h"
#include "muster/v1/shares.grpc.pb.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/metrics.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/answer_memory.h"
#include "services/common/rpc/caller.h"
#include "services/common/rpc/open_streams.h"
#include "services/common/rpc/rpc_metrics.h"
#include "services/common/rpc/server.h"
#include "services/common/rpc/server_stream.h"

namespace muster::testing {

// Values that threads leave for a test. Thread-safe.
template <typename T>
class Mailbox {
 public:
  void Put(T value) {
    MutexLock lock(mutex_);
    values_.push_back(std::move(value));
    changed_.NotifyAll();
  }

  // The next value; nothing after 30 s.
  std::optional<T> Take() {
    MutexLock lock(mutex_);
    changed_.WaitFor(mutex_, absl::Seconds(30), [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return taken_ < values_.size();
    });
    if (taken_ == values_.size()) return std::nullopt;
    return values_[taken_++];
  }

  size_t size() {
    MutexLock lock(mutex_);
    return values_.size() - taken_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<T> values_ ABSL_GUARDED_BY(mutex_);
  size_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
};

struct StreamEnd {
  absl::Status status;
  EndedBy by;
};

// The behaviour of the handlers of a method, and the events they received.
template <typename Request, typename Response>
struct StreamScript {
  using Stream = ServerStream<Response>;

  std::function<void(Stream&)> on_start;
  std::function<void(Stream&, Request)> on_message;
  std::function<void(Stream&)> on_half_close = [](Stream& s) { s.End(absl::OkStatus()); };
  std::function<void(Stream&)> on_writable;
  bool authorize = true;
  Resource resource = Resource::Own();
  Mailbox<std::shared_ptr<Stream>> started;
  Mailbox<StreamEnd> ended;
};

template <typename Request, typename Response>
class ScriptedHandler : public ServerStreamHandler<Request, Response> {
 public:
  using Stream = ServerStream<Response>;

  explicit ScriptedHandler(StreamScript<Request, Response>& script) : script_(script) {}

  void OnStart(const std::shared_ptr<Stream>& stream) override {
    stream_ = stream;
    EXPECT_TRUE(!script_.authorize || stream->call().Authorize(script_.resource).ok());
    if (script_.on_start) script_.on_start(*stream);
    script_.started.Put(stream);
  }
  void OnMessage(Request message) override { script_.on_message(*stream_, std::move(message)); }
  void OnHalfClose() override { script_.on_half_close(*stream_); }
  void OnWritable() override {
    if (script_.on_writable) script_.on_writable(*stream_);
  }
  void OnEnd(const absl::Status& status, EndedBy by) override { script_.ended.Put({status, by}); }

 private:
  StreamScript<Request, Response>& script_;
  std::shared_ptr<Stream> stream_;
};

using RelayScript = StreamScript<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse>;
using RelayStream = ServerStream<v1::RelayHeartbeatsResponse>;
using UploadScript = StreamScript<v1::UploadRequest, v1::UploadResponse>;

// A server with real mutual TLS on a free port whose streams are the test's. Not thread-safe.
class StreamServer {
 public:
  explicit StreamServer(size_t executor_queue = 64, RpcServerOptions options = {});
  // The same, with an executor of these options.
  StreamServer(Executor::Options executor_options, RpcServerOptions options);
  ~StreamServer();

  void Stop();

  // Returns a channel with a separate connection for the relay or node of this name.
  std::shared_ptr<grpc::Channel> ConnectRelay(const std::string& name) const;
  std::shared_ptr<grpc::Channel> ConnectNode(const std::string& name) const;
  std::shared_ptr<grpc::Channel> ConnectStatus() const;
  // The same without a certificate, to open_port().
  std::shared_ptr<grpc::Channel> ConnectOpen() const;

  // The credential of a node, for a connection without a channel.
  struct Credential {
    std::string chain;
    std::string key;
  };
  Credential IssueNode(const std::string& name) const;
  int port() const { return server_->port(); }
  // The port of the listener for peers without a certificate, which serves ShareService: see
  // RpcServerOptions::open_listen. 0: there is none.
  int open_port() const { return server_->open_port(); }

  RpcRuntime runtime();

  // Give the reactor of the next calls.
  std::function<grpc::ServerBidiReactor<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse>*(
      grpc::CallbackServerContext*)>
      relay_heartbeats;
  std::function<grpc::ServerWriteReactor<v1::FollowChangesResponse>*(
      grpc::CallbackServerContext*, const v1::FollowChangesRequest*)>
      follow_changes;
  std::function<grpc::ServerReadReactor<v1::UploadShareRequest>*(grpc::CallbackServerContext*,
                                                                 v1::Share*)>
      upload_share;

  std::function<grpc::ServerBidiReactor<v1::UploadRequest, v1::UploadResponse>*(
      grpc::CallbackServerContext*)>
      upload;

  std::function<grpc::ServerUnaryReactor*(grpc::CallbackServerContext*, const v1::OpenShareRequest*,
                                          v1::OpenShareResponse*)>
      open_share;
  std::function<grpc::ServerUnaryReactor*(grpc::CallbackServerContext*, const v1::GetShareRequest*,
                                          v1::Share*)>
      get_share;

  // Serves RelayHeartbeats by `script`, which outlives the server's calls.
  void Serve(RelayScript& script, ServerStreamOptions options = {});
  // Serves Upload, likewise.
  void Serve(UploadScript& script, ServerStreamOptions options = {});

  Executor executor;
  FakeClock clock;  // of the streams' timers
  Metrics metrics;
  OpenStreams streams{metrics};
  RequestMemory request_memory{{.in_all = 1 << 20, .of_caller = 100'000}};
  AnswerMemory answer_memory{metrics, {.in_all = 1 << 20, .of_caller = 100'000}};
  CallCanceller canceller;

 private:
  struct Services;
  struct Fleet;

  std::shared_ptr<grpc::Channel> Connect(const FleetName& name) const;

  const std::unique_ptr<Fleet> fleet_;
  RpcMetrics rpc_metrics_{metrics};
  CallerResolver callers_;
  std::unique_ptr<Services> services_;
  std::unique_ptr<RpcServer> server_;
};

// A message of about `bytes`.
v1::RelayHeartbeatsResponse Answer(int number, size_t bytes = 0);

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_COMMON_RPC_TESTING_STREAM_FIXTURE_H_
