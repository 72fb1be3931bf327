#include "services/relay/testing/proxy_fixture.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "services/common/base/secret_file.h"
#include "services/common/errors/relay.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/identity/certificate.h"
#include "services/common/rpc/channel.h"

namespace muster::testing {
namespace {

std::string NewFolder(const std::string& name) {
  const char* base = std::getenv("TEST_TMPDIR");
  std::string folder = absl::StrCat(base != nullptr ? base : "/tmp", "/", name, "-XXXXXX");
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  return folder;
}

void Write(const std::string& path, const std::string& text) {
  EXPECT_TRUE(WriteFileAtomically(path, text).ok());
}

}  // namespace

void FakeUpstream::Connect(std::shared_ptr<grpc::Channel> results,
                           std::shared_ptr<grpc::Channel> status) {
  {
    MutexLock lock(mutex_);
    results_ = std::move(results);
    status_ = std::move(status);
    connected_ = true;
  }
  Changed();
}

void FakeUpstream::ConnectJobs(std::shared_ptr<grpc::Channel> jobs) {
  MutexLock lock(mutex_);
  jobs_ = std::move(jobs);
}

std::shared_ptr<grpc::Channel> FakeUpstream::Jobs() {
  MutexLock lock(mutex_);
  return jobs_;
}

absl::Status FakeUpstream::JobsUnreachable() const { return errors::JobsUnreachable(); }

void FakeUpstream::Cut() {
  {
    MutexLock lock(mutex_);
    results_ = status_ = jobs_ = nullptr;
    connected_ = false;
  }
  Changed();
}

void FakeUpstream::Changed() {
  MutexLock lock(mutex_);
  for (const auto& [id, watcher] : watchers_) watcher();
}

void FakeUpstream::Attach(const std::string& name, const TestIdentity& identity) {
  const Certificate relay = *Certificate::FromPem(relay_.chain_pem);
  const auto statement =
      SignAttachStatement(*PrivateKey::FromPem(identity.key_pem), identity.chain_pem,
                          *Certificate::FromPem(identity.chain_pem)->Uri(), *relay.Uri(),
                          *relay.Key()->Sha256(), absl::Now() + absl::Minutes(30));
  ASSERT_TRUE(statement.ok()) << statement.status();
  MutexLock lock(mutex_);
  statements_[name] = statement->SerializeAsString();
}

void FakeUpstream::Detach(const std::string& node) {
  MutexLock lock(mutex_);
  statements_.erase(node);
}

std::shared_ptr<grpc::Channel> FakeUpstream::Results() {
  MutexLock lock(mutex_);
  return results_;
}

std::shared_ptr<grpc::Channel> FakeUpstream::Status() {
  MutexLock lock(mutex_);
  return status_;
}

bool FakeUpstream::connected() const {
  MutexLock lock(mutex_);
  return connected_;
}

std::shared_ptr<void> FakeUpstream::OnChange(std::function<void()> changed) {
  MutexLock lock(mutex_);
  const int id = ++next_watcher_;
  watchers_[id] = std::move(changed);
  return {nullptr, [this, id](void*) {
            MutexLock held(mutex_);
            watchers_.erase(id);
          }};
}

absl::StatusOr<std::string> FakeUpstream::StatementFor(const Caller& caller) {
  const auto* node = std::get_if<NodeIdentity>(&caller.identity.name);
  return FindStatement(node == nullptr ? "" : node->name);
}

absl::StatusOr<std::string> FakeUpstream::StatementOfChildRelay(const Caller& caller) {
  const auto* relay = std::get_if<ServiceIdentity>(&caller.identity.name);
  return FindStatement(relay == nullptr ? "" : relay->name);
}

absl::StatusOr<std::string> FakeUpstream::FindStatement(const std::string& name) const {
  MutexLock lock(mutex_);
  const auto it = statements_.find(name);
  if (it == statements_.end()) return errors::NotAttached(name);
  return it->second;
}

ProxyFixture::ProxyFixture(TestFleet& fleet, const std::string& name)
    : fleet_(fleet),
      name_(name),
      folder_(NewFolder(name)),
      identity_(fleet.Issue(ServiceIdentity{ServiceRole::kRelay, name})),
      upstream_(identity_) {
  std::filesystem::create_directory(folder_ + "/tls");
  Write(folder_ + "/tls/key.pem", identity_.key_pem);
  Write(folder_ + "/tls/cert.pem", identity_.chain_pem);
  Write(folder_ + "/tls/ca.pem", fleet.fleet_ca_pem());
}

ProxyFixture::~ProxyFixture() {
  Stop();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void ProxyFixture::Start() {
  metrics_ = std::make_unique<Metrics>();
  executor_ = std::make_unique<Executor>(Executor::Options{"request", 2, 1024});
  rpc_metrics_ = std::make_unique<RpcMetrics>(*metrics_);
  const std::vector<Certificate> roots = {*Certificate::FromPem(fleet_.fleet_ca_pem())};
  chains_ = std::make_unique<VerifiedChains>([roots] { return roots; }, SystemClock());
  callers_ = std::make_unique<CallerResolver>(fleet_.name(), SystemClock(), chains_.get());
  canceller_ = std::make_unique<CallCanceller>();
  streams_ = std::make_unique<OpenStreams>(*metrics_);
  const RpcRuntime runtime = {callers_.get(),     executor_.get(), canceller_.get(),
                              rpc_metrics_.get(), &stream_clock_,  streams_.get()};
  auto forwarding =
      Forwarding::Start(config, {upstream_, runtime, SystemClock(), *metrics_, name_, fleet_.name(),
                                 fleet_.fleet_ca_pem(), spool_folder(), *timers_, background_});
  ASSERT_TRUE(forwarding.ok()) << forwarding.status();
  forwarding_ = *std::move(forwarding);
  RpcServerOptions options;
  options.listen = "127.0.0.1:0";
  options.health_listen = "127.0.0.1:0";
  options.certificate_folder = folder_ + "/tls";
  options.open_listen = "127.0.0.1:0";
  options.open_service = forwarding_->join_service();
  auto server = RpcServer::Start(std::move(options), *callers_, *canceller_, *rpc_metrics_,
                                 forwarding_->services());
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
}

void ProxyFixture::Stop(absl::Duration drain) {
  if (forwarding_ != nullptr) forwarding_->EndStreams();
  if (server_ != nullptr) server_->Stop(absl::Now() + drain);
  server_.reset();
  forwarding_.reset();
  executor_.reset();
}

void ProxyFixture::ConnectUp(std::shared_ptr<grpc::Channel> status) {
  upstream_.Connect(fleet_.Connect(identity_), std::move(status));
}

std::string ProxyFixture::target() const { return absl::StrCat("127.0.0.1:", server_->port()); }

std::shared_ptr<grpc::Channel> ProxyFixture::Connect(const TestIdentity& identity) const {
  const ChannelIdentity channel = {fleet_.name(), fleet_.fleet_ca_pem(), identity.chain_pem,
                                   identity.key_pem};
  return MakeChannel(target(), MakeChannelCredentials(channel, {ServiceRole::kRelay}), true);
}

std::shared_ptr<grpc::Channel> ProxyFixture::ConnectToJoin() const {
  return MakeChannel(
      absl::StrCat("127.0.0.1:", server_->open_port()),
      MakeOpenChannelCredentials(fleet_.name(), fleet_.fleet_ca_pem(), {ServiceRole::kRelay}),
      true);
}

}  // namespace muster::testing
