#include "services/common/rpc/channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "services/common/rpc/channel_driver.h"
#include "services/common/rpc/channel_target.h"
#include "services/common/rpc/limits.h"
#include "services/common/tunnel/tunnels.h"

namespace muster {
namespace {

using grpc::experimental::CertificateProviderInterface;
using grpc::experimental::ExternalCertificateVerifier;
using grpc::experimental::TlsCustomVerificationCheckRequest;

// Accepts a server by the URI in its certificate, after the chain has been verified.
class RoleVerifier : public ExternalCertificateVerifier {
 public:
  RoleVerifier(std::string fleet, std::vector<ServiceRole> roles, std::string relay)
      : fleet_(std::move(fleet)), roles_(std::move(roles)), relay_(std::move(relay)) {}

  bool Verify(TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* sync_status) override {
    *sync_status = Check(request->uri_names());
    return true;
  }

  void Cancel(TlsCustomVerificationCheckRequest*) override {}

 private:
  grpc::Status Check(const std::vector<grpc::string_ref>& uris) const {
    if (uris.size() != 1) {
      return {grpc::StatusCode::UNAUTHENTICATED,
              absl::StrCat("the server's certificate has ", uris.size(), " URIs, not one")};
    }
    const auto identity = ParseIdentity({uris[0].data(), uris[0].size()}, fleet_);
    if (!identity.ok()) {
      return {grpc::StatusCode::UNAUTHENTICATED, std::string(identity.status().message())};
    }
    const auto* service = std::get_if<ServiceIdentity>(&identity->name);
    const bool wanted =
        service != nullptr && std::ranges::find(roles_, service->role) != roles_.end() &&
        (service->role != ServiceRole::kRelay || relay_.empty() || service->name == relay_);
    if (!wanted) {
      return {grpc::StatusCode::UNAUTHENTICATED,
              absl::StrCat("the server is ", std::string(uris[0].data(), uris[0].size()),
                           ", which is not the service that was wanted")};
    }
    return grpc::Status::OK;
  }

  const std::string fleet_;
  const std::vector<ServiceRole> roles_;
  const std::string relay_;
};

enum class Own { kIdentity, kNothing };

std::shared_ptr<grpc::ChannelCredentials> FromProvider(
    std::shared_ptr<CertificateProviderInterface> provider, const std::string& fleet,
    std::vector<ServiceRole> roles, Own own = Own::kIdentity, const std::string& relay = "") {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::move(provider));
  options.watch_root_certs();
  if (own == Own::kIdentity) options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(true);
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      ExternalCertificateVerifier::Create<RoleVerifier>(fleet, std::move(roles), relay));
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(const ChannelIdentity& identity,
                                                                 std::vector<ServiceRole> roles) {
  std::vector<grpc::experimental::IdentityKeyCertPair> pairs;
  pairs.push_back({identity.private_key_pem, identity.certificate_chain_pem});
  return FromProvider(std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
                          identity.fleet_ca_pem, std::move(pairs)),
                      identity.fleet, std::move(roles), Own::kIdentity, identity.relay);
}

std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(
    const ChannelIdentityFolder& identity, std::vector<ServiceRole> roles) {
  return FromProvider(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          absl::StrCat(identity.folder, "/key.pem"), absl::StrCat(identity.folder, "/cert.pem"),
          absl::StrCat(identity.folder, "/ca.pem"), kCertificateRefreshSeconds),
      identity.fleet, std::move(roles));
}

std::shared_ptr<grpc::ChannelCredentials> MakeOpenChannelCredentials(
    const std::string& fleet, const std::string& fleet_ca_pem, std::vector<ServiceRole> roles) {
  return FromProvider(std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
                          fleet_ca_pem, std::vector<grpc::experimental::IdentityKeyCertPair>()),
                      fleet, std::move(roles), Own::kNothing);
}

std::shared_ptr<grpc::Channel> MakeResolvedChannel(
    const std::string& target, const std::shared_ptr<grpc::ChannelCredentials>& creds,
    bool own_connection) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 15'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 10'000);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES,
                   0);  // callers retry: they know which calls may be repeated
  // gRPC 1.51 would ask the proxy for a socket with an abstract name; a tunnel asks it itself.
  if (target.starts_with("unix")) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (own_connection) arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return KeepDriven(grpc::CreateCustomChannel(target, creds, arguments));
}

std::shared_ptr<grpc::Channel> MakeChannel(absl::Span<const HostPort> targets,
                                           const std::shared_ptr<grpc::ChannelCredentials>& creds,
                                           bool own_connection) {
  // One target of gRPC has no addresses of different kinds.
  std::vector<HostPort> direct;
  std::ranges::copy_if(targets, std::back_inserter(direct),
                       [](const HostPort& target) { return !IsTunnel(target); });
  return MakeResolvedChannel(direct.empty() && !targets.empty()
                                 ? TunnelTarget(targets.front(), TunnelTo::kRelay)
                                 : ChannelTarget(direct),
                             creds, own_connection);
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& target,
                                           const std::shared_ptr<grpc::ChannelCredentials>& creds,
                                           bool own_connection) {
  return MakeChannel(ParseTargets({target}), creds, own_connection);
}

std::shared_ptr<grpc::Channel> MakeJoinChannel(
    const std::string& target, const std::shared_ptr<grpc::ChannelCredentials>& creds) {
  const std::vector<HostPort> targets = ParseTargets({target});
  return IsTunnel(targets.front())
             ? MakeResolvedChannel(TunnelTarget(targets.front(), TunnelTo::kJoin), creds)
             : MakeChannel(targets, creds);
}

}  // namespace muster
