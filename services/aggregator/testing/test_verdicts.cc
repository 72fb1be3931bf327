#include "services/aggregator/testing/test_verdicts.h"

#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_context.h>

#include <chrono>
#include <stdexcept>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/v1/verdicts.grpc.pb.h"
#include "services/common/base/mutex.h"

namespace muster::testing {

class TestVerdicts::Service : public v1::VerdictService::Service {
 public:
  grpc::Status FollowVerdicts(grpc::ServerContext* context, const v1::FollowVerdictsRequest*,
                              grpc::ServerWriter<v1::Verdict>* writer) override {
    MutexLock lock(mutex_);
    ++calls_;
    const auto uris = context->auth_context()->FindPropertyValues("peer_uri");
    caller_ = uris.empty() ? "" : std::string(uris[0].data(), uris[0].size());
    for (size_t told = 0; !stopped_ && !context->IsCancelled();) {
      if (told == verdicts_.size()) {
        // Only to check for cancellation, which does not wake this thread.
        changed_.WaitFor(mutex_, absl::Milliseconds(50));
        continue;
      }
      const v1::Verdict verdict = verdicts_[told++];
      lock.Unlock();
      writer->Write(verdict);
      lock.Lock();
    }
    return grpc::Status::OK;
  }

  void Send(const v1::Verdict& verdict) {
    MutexLock lock(mutex_);
    verdicts_.push_back(verdict);
    changed_.NotifyAll();
  }

  void Stop() {
    MutexLock lock(mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }

  int calls() {
    MutexLock lock(mutex_);
    return calls_;
  }

  std::string caller() {
    MutexLock lock(mutex_);
    return caller_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<v1::Verdict> verdicts_ ABSL_GUARDED_BY(mutex_);
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string caller_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

struct TestVerdicts::Running {
  Service service;
  std::unique_ptr<grpc::Server> server;
};

TestVerdicts::TestVerdicts(const TestFleet& fleet, const TestIdentity& identity, int port)
    : running_(std::make_unique<Running>()) {
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = fleet.fleet_ca_pem();
  options.pem_key_cert_pairs.push_back({identity.key_pem, identity.chain_pem});
  grpc::ServerBuilder builder;
  builder.AddListeningPort(absl::StrCat("127.0.0.1:", port), grpc::SslServerCredentials(options),
                           &port_);
  builder.RegisterService(&running_->service);
  running_->server = builder.BuildAndStart();
  if (running_->server == nullptr || port_ == 0) throw std::runtime_error("no status server");
}

TestVerdicts::~TestVerdicts() {
  running_->service.Stop();
  running_->server->Shutdown(std::chrono::system_clock::now());
}

std::string TestVerdicts::target() const { return absl::StrCat("127.0.0.1:", port_); }

void TestVerdicts::Send(const v1::Verdict& verdict) { running_->service.Send(verdict); }

int TestVerdicts::calls() const { return running_->service.calls(); }

std::string TestVerdicts::caller() const { return running_->service.caller(); }

v1::Verdict Lost(std::string_view run, std::string_view plugin, std::string_view node,
                 std::string_view why) {
  v1::Verdict verdict;
  v1::Verdict::Lost* lost = verdict.mutable_lost();
  lost->mutable_key()->set_run(std::string(run));
  lost->mutable_key()->set_plugin(std::string(plugin));
  lost->mutable_key()->set_node(std::string(node));
  lost->set_reason(std::string(why));
  lost->mutable_since()->set_seconds(1'800'000'000);
  return verdict;
}

v1::Verdict StartGraceExpired(std::string_view run, std::string_view why) {
  v1::Verdict verdict;
  verdict.mutable_start_grace_expired()->set_run(std::string(run));
  verdict.mutable_start_grace_expired()->set_reason(std::string(why));
  return verdict;
}

}  // namespace muster::testing
