#include "services/common/rpc/testing/stream_fixture.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "services/common/identity/authority.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/process.h"

namespace muster::testing {
namespace {

constexpr char kFleet[] = "fleet-0badcafe.muster";
constexpr char kRelayHeartbeats[] = "/muster.v1.HeartbeatService/RelayHeartbeats";
constexpr char kUpload[] = "/muster.v1.ResultService/Upload";

PrivateKey NewKey() { return PrivateKey::Generate().value(); }
std::string Pem(const PrivateKey& key) { return std::string(key.ToPkcs8Pem().value().view()); }

std::string TemporaryFolder() {
  const char* base = std::getenv("TEST_TMPDIR");
  std::string folder = absl::StrCat(base != nullptr ? base : "/tmp", "/streams-XXXXXX");
  return mkdtemp(folder.data());
}

void Write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace

struct StreamServer::Fleet {
  Credential Issue(const FleetName& name) const {
    const PrivateKey key = NewKey();
    const absl::Time now = absl::Now();
    const Certificate leaf =
        authority.Issue(name, key.public_key(), {}, now, now + absl::Hours(1)).value();
    return {leaf.ToPem() + authority.certificate().ToPem(), Pem(key)};
  }

  static Intermediate MakeAuthority(const FleetRoot& root) {
    const PrivateKey key = NewKey();
    const Certificate certificate = root.SignIntermediate(key.public_key(), absl::Now()).value();
    return Intermediate::Load(kFleet, key, certificate, root.certificate()).value();
  }

  const FleetRoot root = FleetRoot::Create(kFleet, NewKey(), absl::Now()).value();
  const Intermediate authority = MakeAuthority(root);
  const std::string folder = TemporaryFolder();
};

struct StreamServer::Services {
  struct Heartbeats : v1::HeartbeatService::CallbackService {
    explicit Heartbeats(StreamServer& given) : server(given) {}
    grpc::ServerBidiReactor<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse>*
    RelayHeartbeats(grpc::CallbackServerContext* context) override {
      return server.relay_heartbeats(context);
    }
    StreamServer& server;
  };
  struct Changes : v1::ChangeService::CallbackService {
    explicit Changes(StreamServer& given) : server(given) {}
    grpc::ServerWriteReactor<v1::FollowChangesResponse>* FollowChanges(
        grpc::CallbackServerContext* context, const v1::FollowChangesRequest* request) override {
      return server.follow_changes(context, request);
    }
    StreamServer& server;
  };
  struct Shares : v1::ShareService::CallbackService {
    explicit Shares(StreamServer& given) : server(given) {}
    grpc::ServerReadReactor<v1::UploadShareRequest>* UploadShare(
        grpc::CallbackServerContext* context, v1::Share* response) override {
      return server.upload_share(context, response);
    }
    grpc::ServerUnaryReactor* OpenShare(grpc::CallbackServerContext* context,
                                        const v1::OpenShareRequest* request,
                                        v1::OpenShareResponse* response) override {
      return server.open_share(context, request, response);
    }
    grpc::ServerUnaryReactor* GetShare(grpc::CallbackServerContext* context,
                                       const v1::GetShareRequest* request,
                                       v1::Share* response) override {
      return server.get_share(context, request, response);
    }
    StreamServer& server;
  };

  struct Results : v1::ResultService::CallbackService {
    explicit Results(StreamServer& given) : server(given) {}
    grpc::ServerBidiReactor<v1::UploadRequest, v1::UploadResponse>* Upload(
        grpc::CallbackServerContext* context) override {
      return server.upload(context);
    }
    StreamServer& server;
  };

  explicit Services(StreamServer& server)
      : heartbeats(server), changes(server), shares(server), open_shares(server), results(server) {}

  Heartbeats heartbeats;
  Changes changes;
  Shares shares;
  Shares open_shares;
  Results results;
};

StreamServer::StreamServer(size_t executor_queue, RpcServerOptions options)
    : StreamServer({.name = "test", .threads = 1, .max_queue = executor_queue},
                   std::move(options)) {}

StreamServer::StreamServer(Executor::Options executor_options, RpcServerOptions options)
    : executor(std::move(executor_options)),
      fleet_(std::make_unique<Fleet>()),
      callers_(kFleet, SystemClock()),
      services_(std::make_unique<Services>(*this)) {
  RequireTls13();
  const Credential own = fleet_->Issue(ServiceIdentity{ServiceRole::kStatus, "s1"});
  Write(fleet_->folder + "/cert.pem", own.chain);
  Write(fleet_->folder + "/key.pem", own.key);
  Write(fleet_->folder + "/ca.pem", fleet_->root.certificate().ToPem());
  options.listen = options.health_listen = "127.0.0.1:0";
  options.certificate_folder = fleet_->folder;
  options.open_service = &services_->open_shares;
  options.open_service_name = v1::ShareService::service_full_name();
  server_ = RpcServer::Start(std::move(options), callers_, canceller, rpc_metrics_,
                             {&services_->heartbeats, &services_->changes, &services_->shares,
                              &services_->results})
                .value();
}

StreamServer::~StreamServer() {
  Stop();
  std::error_code ignored;
  std::filesystem::remove_all(fleet_->folder, ignored);
}

void StreamServer::Stop() {
  if (server_ != nullptr) server_->Stop(absl::Now());
  server_.reset();
}

RpcRuntime StreamServer::runtime() {
  return {&callers_, &executor, &canceller,      &rpc_metrics_,
          &clock,    &streams,  &request_memory, &answer_memory};
}

void StreamServer::Serve(RelayScript& script, ServerStreamOptions options) {
  relay_heartbeats = [this, &script, options](grpc::CallbackServerContext* context) {
    using Handler = ScriptedHandler<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse>;
    return StartServerStream<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse>(
        runtime(), context, kRelayHeartbeats, options, std::make_shared<Handler>(script));
  };
}

void StreamServer::Serve(UploadScript& script, ServerStreamOptions options) {
  upload = [this, &script, options](grpc::CallbackServerContext* context) {
    using Handler = ScriptedHandler<v1::UploadRequest, v1::UploadResponse>;
    return StartServerStream<v1::UploadRequest, v1::UploadResponse>(
        runtime(), context, kUpload, options, std::make_shared<Handler>(script));
  };
}

std::shared_ptr<grpc::Channel> StreamServer::ConnectRelay(const std::string& name) const {
  return Connect(ServiceIdentity{ServiceRole::kRelay, name});
}
std::shared_ptr<grpc::Channel> StreamServer::ConnectNode(const std::string& name) const {
  return Connect(NodeIdentity{name});
}
std::shared_ptr<grpc::Channel> StreamServer::ConnectStatus() const {
  return Connect(ServiceIdentity{ServiceRole::kStatus, "s2"});
}

std::shared_ptr<grpc::Channel> StreamServer::ConnectOpen() const {
  return MakeChannel(absl::StrCat("127.0.0.1:", server_->open_port()),
                     MakeOpenChannelCredentials(kFleet, fleet_->root.certificate().ToPem(),
                                                {ServiceRole::kStatus}),
                     /*own_connection=*/true);
}

StreamServer::Credential StreamServer::IssueNode(const std::string& name) const {
  return fleet_->Issue(NodeIdentity{name});
}

std::shared_ptr<grpc::Channel> StreamServer::Connect(const FleetName& name) const {
  const Credential credential = fleet_->Issue(name);
  const ChannelIdentity identity{kFleet, fleet_->root.certificate().ToPem(), credential.chain,
                                 credential.key};
  return MakeChannel(absl::StrCat("127.0.0.1:", server_->port()),
                     MakeChannelCredentials(identity, {ServiceRole::kStatus}),
                     /*own_connection=*/true);
}

v1::RelayHeartbeatsResponse Answer(int number, size_t bytes) {
  v1::RelayHeartbeatsResponse answer;
  answer.add_probes(number);
  answer.add_refused()->set_message(std::string(bytes, 'x'));
  return answer;
}

}  // namespace muster::testing
