#include "services/status/testing/test_status.h"

#include <filesystem>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/v1/status.grpc.pb.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/status.h"

namespace muster::testing {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);

}  // namespace

TestStatus::TestStatus(TestFleet& fleet) : fleet_(fleet) {
  const std::filesystem::path home = std::filesystem::path(fleet.config.state_folder).parent_path();
  config.state_folder = home / "status";
  config.listen = {"127.0.0.1", 0};
  config.aggregator_targets = {absl::StrCat("127.0.0.1:", fleet.port())};
  config.log.level = "error";
  config.drain = absl::Milliseconds(500);
  config.heartbeats.interval = absl::Seconds(1);
  config.heartbeats.grace = absl::Seconds(2);
  Start();
}

TestStatus::~TestStatus() { Stop(); }

void TestStatus::Start() {
  auto server = StatusServer::Start(config);
  if (!server.ok()) throw std::runtime_error(server.status().ToString());
  server_ = *std::move(server);
  const absl::Time patience = absl::Now() + kPatience;
  // Until then every run is "not ready", and after it one of no fleet is not found.
  while (absl::IsUnavailable(Get("ffffffffffffffff").status())) {
    if (absl::Now() > patience) throw std::runtime_error("the status service is not ready");
    absl::SleepFor(absl::Milliseconds(10));
  }
}

void TestStatus::Stop() {
  if (server_ != nullptr) server_->Stop();
  server_.reset();
}

std::shared_ptr<grpc::Channel> TestStatus::Connect(const TestIdentity& identity) const {
  const ChannelIdentity channel = {fleet_.name(), fleet_.fleet_ca_pem(), identity.chain_pem,
                                   identity.key_pem};
  return MakeChannel(absl::StrCat("127.0.0.1:", port()),
                     MakeChannelCredentials(channel, {ServiceRole::kStatus}), true);
}

absl::StatusOr<v1::RunStatus> TestStatus::Get(const TestIdentity& identity,
                                              const v1::GetStatusRequest& request,
                                              const std::string& forwarded) const {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  if (!forwarded.empty()) context.AddMetadata("muster-forwarded-identity", forwarded);
  v1::RunStatus status;
  const grpc::Status answer =
      v1::StatusService::NewStub(Connect(identity))->GetStatus(&context, request, &status);
  if (!answer.ok()) return FromGrpc(answer);
  return status;
}

absl::StatusOr<v1::RunStatus> TestStatus::Get(const std::string& run) const {
  v1::GetStatusRequest request;
  request.set_run(run);
  request.set_page_size(10'000);
  return Get(fleet_.admin(), request);
}

v1::RunStatus TestStatus::Await(const std::string& run,
                                const std::function<bool(const v1::RunStatus&)>& fits) const {
  const absl::Time patience = absl::Now() + kPatience;
  for (;;) {
    auto status = Get(run);
    if (status.ok() && (fits(*status) || absl::Now() > patience)) return *std::move(status);
    if (absl::Now() > patience) throw std::runtime_error(status.status().ToString());
    absl::SleepFor(absl::Milliseconds(50));
  }
}

v1::PairStatus PairOf(const v1::RunStatus& status, const std::string& node) {
  for (const v1::PairStatus& pair : status.pairs()) {
    if (pair.node() == node) return pair;
  }
  return {};
}

}  // namespace muster::testing
