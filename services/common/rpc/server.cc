#include "services/common/rpc/server.h"

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/server_builder.h>

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/rpc.h"
#include "services/common/identity/rpc_authorization.h"
#include "services/common/rpc/limits.h"
#include "services/common/rpc/process.h"
#include "services/common/rpc/status.h"

namespace muster {

// Runs before any handler, for every RPC of the server, also for methods that do not exist. It is
// asked on gRPC's threads, so it only looks things up in memory. Its refusals cannot carry details,
// so the message holds the reason.
class RpcServer::Gate : public grpc::AuthMetadataProcessor {
 public:
  Gate(CallerResolver& callers, RpcMetrics& metrics, std::function<bool(const Caller&)> is_revoked)
      : callers_(callers), metrics_(metrics), is_revoked_(std::move(is_revoked)) {}

  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    const auto path = metadata.find(":path");
    const std::string method =
        path == metadata.end() ? "" : std::string(path->second.data(), path->second.size());
    const absl::Status status = Check(metadata, *context, method);
    if (status.ok()) return grpc::Status::OK;
    metrics_.CountRefused(status.code());
    return {static_cast<grpc::StatusCode>(status.code()),
            absl::StrCat(ReasonOf(status), ": ", status.message(), ". ", NextStepOf(status))};
  }

 private:
  absl::Status Check(const InputMetadata& metadata, const grpc::AuthContext& context,
                     const std::string& method) {
    ASSIGN_OR_RETURN(auto caller, callers_.Resolve(context, metadata));
    if (is_revoked_ && is_revoked_(*caller)) {
      return errors::CallerRevoked();
    }
    return CheckRole(*caller, method);
  }

  CallerResolver& callers_;
  RpcMetrics& metrics_;
  const std::function<bool(const Caller&)> is_revoked_;
};

namespace {

// The one place where a listener gets its TLS settings. Without a gate the peer is not asked who it
// is.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const std::string& folder, std::shared_ptr<grpc::AuthMetadataProcessor> gate) {
  auto provider = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      absl::StrCat(folder, "/key.pem"), absl::StrCat(folder, "/cert.pem"),
      absl::StrCat(folder, "/ca.pem"), kCertificateRefreshSeconds);
  grpc::experimental::TlsServerCredentialsOptions options(std::move(provider));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(gate == nullptr
                                    ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                    : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  auto credentials = grpc::experimental::TlsServerCredentials(options);
  if (gate != nullptr) credentials->SetAuthMetadataProcessor(std::move(gate));
  return credentials;
}

// Plaintext, loopback, and built before channelz is switched on, which is for operators only.
std::unique_ptr<grpc::Server> StartHealthServer(const std::string& listen, int* port) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), port);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  return builder.BuildAndStart();
}

void SetLimits(grpc::ServerBuilder& builder, int message_bytes, size_t memory_bytes) {
  builder.SetMaxReceiveMessageSize(message_bytes);
  builder.SetResourceQuota(grpc::ResourceQuota().Resize(memory_bytes));
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
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

// As the health server, it is built before channelz is switched on.
std::unique_ptr<grpc::Server> StartOpenServer(const RpcServerOptions& options, int* port) {
  grpc::ServerBuilder builder;
  SetLimits(builder, kMaxOpenMessageBytes, kOpenServerMemoryBytes);
  builder.AddListeningPort(options.open_listen,
                           MakeServerCredentials(options.certificate_folder, nullptr), port);
  builder.RegisterService(options.open_service);
  return builder.BuildAndStart();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    RpcServerOptions options, CallerResolver& callers, CallCanceller& canceller,
    RpcMetrics& metrics, const std::vector<grpc::Service*>& services) {
  std::unique_ptr<RpcServer> result(new RpcServer(canceller));
  result->health_server_ = StartHealthServer(options.health_listen, &result->health_port_);
  if (result->health_server_ == nullptr) return errors::ListenFailed(options.health_listen);
  if (!options.open_listen.empty()) {
    result->open_server_ = StartOpenServer(options, &result->open_port_);
    if (result->open_server_ == nullptr || result->open_port_ == 0) {
      return errors::ListenFailed(options.open_listen);
    }
  }
  EnableInspectionPlugins();
  result->failed_handshakes_ = ObserveFailedHandshakes(
      [&metrics](std::string_view reason) { metrics.CountRefusedHandshake(reason); });
  grpc::ServerBuilder builder;
  SetLimits(builder, options.max_message_bytes, options.memory_bytes);
  builder.AddListeningPort(
      options.listen,
      MakeServerCredentials(options.certificate_folder,
                            std::make_shared<Gate>(callers, metrics, options.is_revoked)),
      &result->port_);
  for (grpc::Service* service : services) builder.RegisterService(service);
  result->server_ = builder.BuildAndStart();
  if (result->server_ == nullptr || result->port_ == 0) return errors::ListenFailed(options.listen);
  result->SetServing(true);
  return result;
}

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
}

}  // namespace muster
