#include "services/common/rpc/server.h"

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_interceptor.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"
#include "services/common/errors/rpc.h"
#include "services/common/identity/caller_uri.h"
#include "services/common/identity/rpc_authorization.h"
#include "services/common/rpc/accept_guard.h"
#include "services/common/rpc/call_admission.h"
#include "services/common/rpc/call_limits.h"
#include "services/common/rpc/connection_closer.h"
#include "services/common/rpc/forwarding.h"
#include "services/common/rpc/frame_guard.h"
#include "services/common/rpc/header_guard.h"
#include "services/common/rpc/limits.h"
#include "services/common/rpc/peer.h"
#include "services/common/rpc/process.h"
#include "services/common/rpc/refusal_text.h"
#include "services/common/rpc/status.h"
#include "services/common/rpc/unacked_settings.h"

namespace muster {
namespace {

using InputMetadata = grpc::AuthMetadataProcessor::InputMetadata;

std::string PathOf(const InputMetadata& metadata) {
  const auto path = metadata.find(":path");
  return path == metadata.end() ? "" : std::string(path->second.data(), path->second.size());
}

// Returns the key of a peer for CallAdmission.
using PeerKey = std::string (*)(const grpc::AuthContext& context);

// Returns whether the peer forwards the calls of other identities: a service, such as a gateway, or
// a relay.
bool ForwardsCalls(std::string_view uri) { return uri.find("/service/") != uri.npos; }

// The property of a connection of a peer without a certificate that holds its number.
constexpr char kConnectionProperty[] = "muster_connection";

// Returns the number of a connection, which OpenGate sets before its first call; empty before.
std::string ConnectionKey(const grpc::AuthContext& context) {
  const std::vector<grpc::string_ref> values = context.FindPropertyValues(kConnectionProperty);
  return values.empty() ? "" : std::string(values[0].data(), values[0].size());
}

grpc::Status ToGateStatus(const absl::Status& status, const RpcMetrics& metrics) {
  if (status.ok()) return grpc::Status::OK;
  metrics.CountRefused(status.code());
  return {static_cast<grpc::StatusCode>(status.code()), RefusalText(status)};
}

// The gate of a listener for peers without a certificate: admits the methods of one service, and of
// the health service.
class OpenGate : public grpc::AuthMetadataProcessor {
 public:
  OpenGate(const std::string& service, CallAdmission& calls, RpcMetrics& metrics)
      : calls_(calls),
        metrics_(metrics),
        methods_({"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"}) {
    const std::string prefix = absl::StrCat("/", service, "/");
    for (const std::string_view method : AuthorizedMethods()) {
      if (method.starts_with(prefix)) methods_.insert(std::string(method));
    }
  }

  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    const std::string method = PathOf(metadata);
    if (!methods_.contains(method)) {
      return ToGateStatus(errors::UnknownMethod(method.substr(0, 200)), metrics_);
    }
    constexpr CallLimits kLimits = {
        {kOpenCalls, kOpenCallBurst}, kOpenWaitingCalls, kOpenWaitingCalls};
    const std::string peer = NumberOf(*context);
    return ToGateStatus(calls_.Accept(peer, peer, peer, kLimits, SystemClock().MonotonicNow()),
                        metrics_);
  }

 private:
  // Returns the number of the connection. No later connection has the same. The first call sets it,
  // and all readers belong to calls that have passed this function.
  std::string NumberOf(grpc::AuthContext& context) {
    MutexLock lock(mutex_);
    std::string number = ConnectionKey(context);
    if (number.empty()) {
      number = absl::StrCat(++connections_);
      context.AddProperty(kConnectionProperty, number);
    }
    return number;
  }

  CallAdmission& calls_;
  RpcMetrics& metrics_;
  absl::flat_hash_set<std::string> methods_;
  Mutex mutex_;
  int64_t connections_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Tells `calls` when gRPC starts a call, and closes the connection of a peer whose calls are a
// flood. It intercepts no call.
class StartObserver : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  // `port` is set once the listener is bound.
  StartObserver(CallAdmission& calls, ConnectionCloser& closer, PeerKey peer_key, const int& port)
      : calls_(calls), closer_(closer), peer_key_(peer_key), port_(port) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    grpc::ServerContextBase* const context = info->server_context();
    // gRPC's own blocking methods (reflection, channelz) have no peer yet: they wait for a period.
    const auto auth = context->auth_context();
    if (auth == nullptr) return nullptr;
    const std::string peer = peer_key_(*auth);
    if (ForwardsCalls(PeerUri(*auth))) MarkForwarder(context->peer());
    const std::string caller = ForwardedClient(context->client_metadata()).value_or(peer);
    if (calls_.Start(peer, caller, SystemClock().MonotonicNow())) {
      closer_.CloseFlood(context->peer(), port_, PeerUri(*auth));
    }
    return nullptr;
  }

 private:
  CallAdmission& calls_;
  ConnectionCloser& closer_;
  const PeerKey peer_key_;
  const int& port_;
};

void ObserveStarts(grpc::ServerBuilder& builder, std::unique_ptr<StartObserver> observer) {
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> factories;
  factories.push_back(std::move(observer));
  builder.experimental().SetInterceptorCreators(std::move(factories));
}

}  // namespace

// Runs before any handler, for every RPC of the server, also for methods that do not exist. It is
// asked on gRPC's threads, so it only looks things up in memory.
class RpcServer::Gate : public grpc::AuthMetadataProcessor {
 public:
  Gate(CallerResolver& callers, CallAdmission& calls, RpcMetrics& metrics,
       std::function<bool(const Caller&)> is_revoked,
       std::function<absl::Status(const Caller&)> check_caller)
      : callers_(callers),
        calls_(calls),
        metrics_(metrics),
        is_revoked_(std::move(is_revoked)),
        check_caller_(std::move(check_caller)) {}

  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    return ToGateStatus(Check(metadata, *context, PathOf(metadata)), metrics_);
  }

 private:
  absl::Status Check(const InputMetadata& metadata, const grpc::AuthContext& context,
                     const std::string& method) {
    ASSIGN_OR_RETURN(auto caller, callers_.Resolve(context, metadata));
    if (is_revoked_ && is_revoked_(*caller)) {
      return errors::CallerRevoked();
    }
    if (check_caller_) RETURN_IF_ERROR(check_caller_(*caller));
    RETURN_IF_ERROR(CheckRole(*caller, method));
    const std::string peer = PeerUri(context);
    return calls_.Accept(peer, ForwardedClient(metadata).value_or(peer), HolderOf(*caller),
                         CallLimitsOf(*caller), SystemClock().MonotonicNow());
  }

  CallerResolver& callers_;
  CallAdmission& calls_;
  RpcMetrics& metrics_;
  const std::function<bool(const Caller&)> is_revoked_;
  const std::function<absl::Status(const Caller&)> check_caller_;
};

namespace {

// The one place where a listener gets its TLS settings.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const std::string& folder, grpc_ssl_client_certificate_request_type request,
    std::shared_ptr<grpc::AuthMetadataProcessor> gate) {
  auto provider = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      absl::StrCat(folder, "/key.pem"), absl::StrCat(folder, "/cert.pem"),
      absl::StrCat(folder, "/ca.pem"), kCertificateRefreshSeconds);
  grpc::experimental::TlsServerCredentialsOptions options(std::move(provider));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(request);
  auto credentials = grpc::experimental::TlsServerCredentials(options);
  credentials->SetAuthMetadataProcessor(std::move(gate));
  return credentials;
}

using Queues = std::vector<std::unique_ptr<grpc::ServerCompletionQueue>>;

// gRPC's threads for blocking methods (health, reflection) would poll the connections of all
// servers of the process, and hand what they read to the threads of the callbacks. They leave that
// to the latter if the server has a separate queue, although no call uses it. Without epoll, some
// connections would be polled by that queue alone.
void LeavePollingToCallbacks(grpc::ServerBuilder& builder, Queues& unused) {
  const char* const strategy = std::getenv("GRPC_POLL_STRATEGY");
  if (strategy == nullptr || std::string_view(strategy) == "epoll1") {
    unused.push_back(builder.AddCompletionQueue());
  }
}

// The limits of a listener.
struct ListenerLimits {
  int message_bytes = 0;
  size_t memory_bytes = 0;
  int streams = 0;  // of a connection
  int read_at_once = 0;
  int idle_ms = 0;
};

void SetLimits(grpc::ServerBuilder& builder, const ListenerLimits& limits) {
  builder.SetMaxReceiveMessageSize(limits.message_bytes);
  builder.SetResourceQuota(grpc::ResourceQuota().Resize(limits.memory_bytes));
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits.streams);
  builder.AddChannelArgument(GRPC_ARG_TCP_READ_CHUNK_SIZE, std::min(limits.read_at_once, 8 * 1024));
  builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, limits.read_at_once);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, limits.idle_ms);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 15'000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  // A second instance has to fail to bind instead of taking half of the connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Compressed messages are no smaller than chunks that are zstd frames, and could be bombs.
  builder.SetDefaultCompressionAlgorithm(GRPC_COMPRESS_NONE);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
}

// The limits of a listener for peers without a certificate.
constexpr ListenerLimits kOpenLimits = {kMaxOpenMessageBytes, kOpenServerMemoryBytes,
                                        kMaxOpenStreamsPerConnection, kOpenReadAtOnce,
                                        kIdleOpenConnectionMs};

// Plaintext, loopback, and built before channelz is switched on, which is for operators only.
std::unique_ptr<grpc::Server> StartHealthServer(const std::string& listen, int* port,
                                                Queues& unused) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  SetLimits(builder, kOpenLimits);
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), port);
  LeavePollingToCallbacks(builder, unused);
  return builder.BuildAndStart();
}

// As the health server, it is built before channelz is switched on.
std::unique_ptr<grpc::Server> StartOpenServer(const RpcServerOptions& options, CallAdmission& calls,
                                              ConnectionCloser& closer, RpcMetrics& metrics,
                                              int* port) {
  grpc::ServerBuilder builder;
  SetLimits(builder, kOpenLimits);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, kOpenConnectionAgeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, kOpenConnectionAgeMs);
  ObserveStarts(builder, std::make_unique<StartObserver>(calls, closer, ConnectionKey, *port));
  builder.AddListeningPort(
      options.open_listen,
      MakeServerCredentials(options.certificate_folder, GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
                            std::make_shared<OpenGate>(options.open_service_name, calls, metrics)),
      port);
  builder.RegisterService(options.open_service);
  return builder.BuildAndStart();
}

std::vector<ConnectionCloser::Listener> ListenersOf(int port, int open_port) {
  const size_t files = FileDescriptorLimit();
  std::vector<ConnectionCloser::Listener> listeners = {
      {port, {kConnectionsOfAddress, std::min(kConnections, files / 2)}}};
  if (open_port != 0) {
    listeners.push_back(
        {open_port, {kOpenConnectionsOfAddress, std::min(kOpenConnections, files / 4)}});
  }
  return listeners;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    RpcServerOptions options, CallerResolver& callers, CallCanceller& canceller,
    RpcMetrics& metrics, const std::vector<grpc::Service*>& services) {
  GuardAccept();
  RETURN_IF_ERROR(GuardHeaders());
  RETURN_IF_ERROR(GuardFrames());
  RETURN_IF_ERROR(BoundUnackedSettings({kMaxUnackedStreams, kMaxUnackedMetadataBytes}));
  std::unique_ptr<RpcServer> result(new RpcServer(canceller, metrics));
  result->health_server_ =
      StartHealthServer(options.health_listen, &result->health_port_, result->unused_queues_);
  if (result->health_server_ == nullptr) return errors::ListenFailed(options.health_listen);
  if (!options.open_listen.empty()) {
    result->open_server_ = StartOpenServer(options, *result->open_calls_, *result->closer_, metrics,
                                           &result->open_port_);
    if (result->open_server_ == nullptr || result->open_port_ == 0) {
      return errors::ListenFailed(options.open_listen);
    }
  }
  EnableInspectionPlugins();
  result->failed_handshakes_ = ObserveFailedHandshakes(
      [&metrics](std::string_view reason) { metrics.CountRefusedHandshake(reason); });
  grpc::ServerBuilder builder;
  SetLimits(builder, {options.max_message_bytes, options.memory_bytes, kMaxStreamsPerConnection,
                      kReadAtOnce, kIdleConnectionMs});
  ObserveStarts(builder, std::make_unique<StartObserver>(*result->calls_, *result->closer_, PeerUri,
                                                         result->port_));
  builder.AddListeningPort(
      options.listen,
      MakeServerCredentials(options.certificate_folder,
                            GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY,
                            std::make_shared<Gate>(callers, *result->calls_, metrics,
                                                   options.is_revoked, options.check_caller)),
      &result->port_);
  for (grpc::Service* service : services) builder.RegisterService(service);
  LeavePollingToCallbacks(builder, result->unused_queues_);
  result->server_ = builder.BuildAndStart();
  if (result->server_ == nullptr || result->port_ == 0) return errors::ListenFailed(options.listen);
  result->closer_->Start(ListenersOf(result->port_, result->open_port_));
  result->SetServing(true);
  return result;
}

RpcServer::RpcServer(CallCanceller& canceller, RpcMetrics& metrics)
    : canceller_(canceller),
      closer_(std::make_unique<ConnectionCloser>(metrics)),
      calls_(std::make_unique<CallAdmission>()),
      open_calls_(std::make_unique<CallAdmission>()) {}

RpcServer::~RpcServer() { Stop(absl::Now()); }

void RpcServer::SetServing(bool serving) {
  for (grpc::Server* server : {health_server_.get(), open_server_.get(), server_.get()}) {
    if (server == nullptr) continue;
    if (auto* health = server->GetHealthCheckService()) health->SetServingStatus(serving);
  }
}

void RpcServer::Stop(absl::Time deadline) {
  // At the same time as the other one: a Shutdown rejects new calls, and waits for its own calls.
  std::thread open_stop;
  if (open_server_ != nullptr) {
    open_stop =
        std::thread([this, deadline] { open_server_->Shutdown(absl::ToChronoTime(deadline)); });
  }
  if (server_ != nullptr) {
    SetServing(false);
    server_->Shutdown(absl::ToChronoTime(deadline));
    canceller_.CancelAll();
    server_->Wait();
    canceller_.AwaitNone();
    server_.reset();
  }
  if (open_stop.joinable()) open_stop.join();
  open_server_.reset();
  if (health_server_ != nullptr) {
    health_server_->Shutdown(absl::ToChronoTime(deadline));
    health_server_.reset();
  }
  for (const auto& queue : unused_queues_) {
    queue->Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue->Next(&tag, &ok)) {
    }
  }
  unused_queues_.clear();
}

}  // namespace muster
