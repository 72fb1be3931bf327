// Viewers and status listeners of runs, and the grace periods of a run: the API over mutual TLS.
#include <grpcpp/client_context.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/v1/listeners.grpc.pb.h"
#include "muster/v1/runs.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/identity/authority.h"
#include "services/common/identity/signing_request.h"
#include "testing/fixtures/test_call.h"
#include "testing/fixtures/test_fleet.h"

namespace muster {
namespace {

using testing::TestFleet;
using testing::TestIdentity;

constexpr char kSidecar[] =
    "sonobuoy-config: {driver: DaemonSet, plugin-name: old, result-format: raw}\n"
    "spec: {name: plugin, image: example/plugin:v1}\n";

class ViewerTest : public ::testing::Test {
 protected:
  template <typename Service, typename Request, typename Response>
  absl::StatusOr<Response> Call(const TestIdentity& as,
                                grpc::Status (Service::Stub::*method)(grpc::ClientContext*,
                                                                      const Request&, Response*),
                                const Request& request) {
    return testing::CallUnary<Service>(fleet_.Connect(as), method, request);
  }

  absl::StatusOr<v1::Run> Create(const v1::CreateRunRequest& request) {
    return Call<v1::RunService>(fleet_.admin(), &v1::RunService::Stub::CreateRun, request);
  }

  absl::StatusOr<v1::ViewerCredential> Viewer(const std::string& run, const std::string& csr = "") {
    v1::IssueViewerCredentialRequest request;
    request.set_run(run);
    request.set_csr_pem(csr.empty() ? *CreateSigningRequest(key_) : csr);
    return Call<v1::RunService>(fleet_.admin(), &v1::RunService::Stub::IssueViewerCredential,
                                request);
  }

  // Returns a request with all optional certificates.
  v1::SetStatusListenerRequest FullRequest(const std::string& run,
                                           const std::vector<std::string>& hosts = {"localhost"}) {
    v1::SetStatusListenerRequest request;
    request.set_run(run);
    request.set_client_ca_pem(ca_.certificate().ToPem());
    const auto intermediate_key = *PrivateKey::Generate();
    const auto intermediate = *Intermediate::Load(
        "elsewhere", intermediate_key,
        *ca_.SignIntermediate(intermediate_key.public_key(), absl::Now()), ca_.certificate());
    const auto leaf =
        *intermediate.Issue(ServiceIdentity{ServiceRole::kGateway, "x"}, server_key_.public_key(),
                            hosts, absl::Now(), absl::Now() + absl::Hours(1));
    request.set_certificate_pem(leaf.ToPem() + intermediate.certificate().ToPem());
    request.set_key_pem(std::string(server_key_.ToPkcs8Pem()->view()));
    return request;
  }

  absl::StatusOr<v1::Run> Set(const v1::SetStatusListenerRequest& request) {
    return Call<v1::RunService>(fleet_.admin(), &v1::RunService::Stub::SetStatusListener, request);
  }

  absl::StatusOr<v1::GetStatusListenerResponse> Get(const TestIdentity& as,
                                                    const std::string& run) {
    v1::GetStatusListenerRequest request;
    request.set_run(run);
    return Call<v1::ListenerService>(as, &v1::ListenerService::Stub::GetStatusListener, request);
  }

  absl::StatusOr<v1::Run> Report(const std::string& run, int port, bool open) {
    v1::ReportStatusListenerRequest request;
    request.set_run(run);
    request.set_port(port);
    request.set_open(open);
    return Call<v1::ListenerService>(gateway_, &v1::ListenerService::Stub::ReportStatusListener,
                                     request);
  }

  absl::StatusOr<v1::Run> Cancel(const std::string& run) {
    v1::CancelRunRequest request;
    request.set_run(run);
    return Call<v1::RunService>(fleet_.admin(), &v1::RunService::Stub::CancelRun, request);
  }

  TestFleet fleet_;
  const TestIdentity gateway_ = fleet_.Issue(ServiceIdentity{ServiceRole::kGateway, "main"});
  const PrivateKey key_ = *PrivateKey::Generate();
  const PrivateKey server_key_ = *PrivateKey::Generate();
  const FleetRoot ca_ = *FleetRoot::Create("elsewhere", *PrivateKey::Generate(), absl::Now());
};

TEST_F(ViewerTest, StartGraceFollowsFromThePlugins) {
  v1::CreateRunRequest request;
  request.add_nodes("n1");
  request.add_plugins("hostfacts");
  const auto agents = Create(request);
  ASSERT_TRUE(agents.ok()) << agents.status();
  EXPECT_EQ(agents->start_grace().seconds(), 300);
  EXPECT_EQ(agents->lost_after().seconds(), 180);
  EXPECT_FALSE(agents->fail_fast());
  EXPECT_FALSE(agents->has_status_listener());
  request.add_plugins(kSidecar);  // sends no heartbeats
  EXPECT_EQ(Create(request)->start_grace().seconds(), 0);

  request.mutable_start_grace()->set_seconds(7);
  request.mutable_lost_after()->set_seconds(11);
  request.set_fail_fast(true);
  const std::string run = Create(request)->id();
  fleet_.Stop();
  fleet_.Start();
  v1::GetRunRequest get;
  get.set_run(run);
  const auto kept = Call<v1::RunService>(fleet_.admin(), &v1::RunService::Stub::GetRun, get);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->start_grace().seconds(), 7);
  EXPECT_EQ(kept->lost_after().seconds(), 11);
  EXPECT_TRUE(kept->fail_fast());
}

TEST_F(ViewerTest, GracePeriodsAreLimited) {
  const auto reason = [&](int64_t start_grace, int64_t lost_after) {
    v1::CreateRunRequest request;
    request.add_nodes("n1");
    request.add_plugins("hostfacts");
    request.mutable_start_grace()->set_seconds(start_grace);
    request.mutable_lost_after()->set_seconds(lost_after);
    return ReasonOf(Create(request).status());
  };
  EXPECT_EQ(reason(0, 10), "");
  EXPECT_EQ(reason(86'400, 86'400), "");
  EXPECT_EQ(reason(-1, 10), "INVALID_TIMEOUT");
  EXPECT_EQ(reason(86'401, 10), "INVALID_TIMEOUT");
  EXPECT_EQ(reason(0, 9), "INVALID_TIMEOUT");
  EXPECT_EQ(reason(0, 86'401), "INVALID_TIMEOUT");
}

TEST_F(ViewerTest, ViewerReadsOnlyTheStatusOfItsRun) {
  const v1::Run run = fleet_.CreateRun({"hostfacts"}, {"n1"}, 600);
  const auto viewer = Viewer(run.id());
  ASSERT_TRUE(viewer.ok()) << viewer.status();
  EXPECT_EQ(viewer->uri(), absl::StrCat("spiffe://", run.id(), ".", fleet_.name(), "/viewer"));
  EXPECT_EQ(viewer->server_ca_pem(), fleet_.fleet_ca_pem());
  EXPECT_EQ(viewer->host_address(), "https://127.0.0.1:8002/");
  const Certificate leaf = *Certificate::FromPem(viewer->certificate_pem());
  EXPECT_TRUE(leaf.Matches(key_));
  EXPECT_TRUE(VerifyChain(leaf, *ParseChain(viewer->chain_pem()),
                          std::vector{*Certificate::FromPem(fleet_.fleet_ca_pem())}, Usage::kClient,
                          absl::Now() + absl::Hours(24))
                  .ok());
  EXPECT_EQ(viewer->expire_time().seconds(), run.deadline().seconds() + 86'400);

  const TestIdentity as_viewer = {viewer->certificate_pem() + viewer->chain_pem(),
                                  std::string(key_.ToPkcs8Pem()->view())};
  v1::GetRunRequest get;
  get.set_run(run.id());
  EXPECT_EQ(Call<v1::RunService>(as_viewer, &v1::RunService::Stub::GetRun, get).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(ViewerTest, ViewerForAnEndedRunOrInvalidRequestFails) {
  const std::string run = fleet_.CreateRun({"hostfacts"}, {"n1"}).id();
  EXPECT_EQ(ReasonOf(Viewer("ffffffffffffffff").status()), "RUN_NOT_FOUND");
  EXPECT_EQ(ReasonOf(Viewer(run, "no request").status()), "INVALID_CSR");
  ASSERT_TRUE(Cancel(run).ok());
  EXPECT_EQ(ReasonOf(Viewer(run).status()), "RUN_ENDED");
}

TEST_F(ViewerTest, AddressIsConfiguredAndEndsInOneSlash) {
  fleet_.Stop();
  fleet_.config.status_urls = {"https://muster.example:9000//"};
  fleet_.Start();
  EXPECT_EQ(Viewer(fleet_.CreateRun({"hostfacts"}, {"n1"}).id())->host_address(),
            "https://muster.example:9000/");
  fleet_.Stop();
  fleet_.config.status_urls = {"https://muster.example/fleet"};
  fleet_.Start();
  EXPECT_EQ(Viewer(fleet_.CreateRun({"hostfacts"}, {"n1"}).id())->host_address(),
            "https://muster.example/fleet/");
}

TEST_F(ViewerTest, RunServesItsStatusWithTheProvidedCertificate) {
  const std::string run = fleet_.CreateRun({"hostfacts"}, {"n1"}).id();
  const v1::SetStatusListenerRequest brought = FullRequest(run);
  const auto set = Set(brought);
  ASSERT_TRUE(set.ok()) << set.status();
  ASSERT_TRUE(set->has_status_listener());
  EXPECT_FALSE(set->status_listener().open());
  EXPECT_EQ(set->status_listener().urls_size(), 0);
  EXPECT_EQ(ReasonOf(Set(brought).status()), "STATUS_LISTENER_EXISTS");

  const auto served = Get(gateway_, run);
  ASSERT_TRUE(served.ok()) << served.status();
  EXPECT_EQ(served->client_ca_pem(), brought.client_ca_pem());
  EXPECT_EQ(served->certificate_pem(), brought.certificate_pem());
  EXPECT_EQ(served->key_pem(), brought.key_pem());
  EXPECT_EQ(served->port(), 0);

  // The credential contains the address of the listener: the call waits until the address is known.
  auto viewer = std::async(std::launch::async, [&] { return Viewer(run); });
  const auto open = Report(run, 8010, true);
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_TRUE(open->status_listener().open());
  const auto credential = viewer.get();
  ASSERT_TRUE(credential.ok()) << credential.status();
  // The certificate names the second of the advertised hosts, 127.0.0.1 and localhost.
  EXPECT_EQ(credential->host_address(), "https://localhost:8010/");
  EXPECT_EQ(credential->server_ca_pem(), brought.certificate_pem());
  EXPECT_EQ(open->status_listener().urls(1), "https://127.0.0.1:8010");

  fleet_.Stop();
  fleet_.Start();
  EXPECT_EQ(Get(gateway_, run)->port(), 8010);
  EXPECT_EQ(ReasonOf(Report(run, 8011, true).status()), "PORT_IS_FIXED");
}

TEST_F(ViewerTest, RunIsCreatedWithItsStatusListenerOrNotAtAll) {
  v1::CreateRunRequest request;
  request.set_request_id("once");
  request.add_nodes("n1");
  request.add_plugins("hostfacts");
  *request.mutable_status_listener() = FullRequest("");
  request.mutable_status_listener()->set_key_pem(std::string(key_.ToPkcs8Pem()->view()));
  EXPECT_EQ(ReasonOf(Create(request).status()), "INVALID_STATUS_CERTIFICATE");
  const auto runs =
      Call<v1::RunService>(fleet_.admin(), &v1::RunService::Stub::ListRuns, v1::ListRunsRequest());
  ASSERT_TRUE(runs.ok()) << runs.status();
  EXPECT_EQ(runs->runs_size(), 0);

  *request.mutable_status_listener() = FullRequest("");
  const auto run = Create(request);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_TRUE(run->has_status_listener());
  EXPECT_EQ(Get(gateway_, run->id())->certificate_pem(),
            request.status_listener().certificate_pem());
  EXPECT_EQ(Create(request)->id(), run->id()) << "repeated";
}

// The first call may be lost between the run and its listener.
TEST_F(ViewerTest, RepeatedCreationReturnsTheRunThatHasEnded) {
  v1::CreateRunRequest request;
  request.set_request_id("once");
  request.add_nodes("n1");
  request.add_plugins("hostfacts");
  const auto run = Create(request);
  ASSERT_TRUE(run.ok()) << run.status();
  v1::CancelRunRequest cancel;
  cancel.set_run(run->id());
  ASSERT_TRUE(Call<v1::RunService>(fleet_.admin(), &v1::RunService::Stub::CancelRun, cancel).ok());
  *request.mutable_status_listener() = FullRequest("");
  const auto repeated = Create(request);
  ASSERT_TRUE(repeated.ok()) << repeated.status();
  EXPECT_EQ(repeated->id(), run->id());
  EXPECT_EQ(repeated->state(), v1::RUN_STATE_CANCELLED);
}

TEST_F(ViewerTest, KeyIsSentOnlyToTheGatewayAndStoredEncrypted) {
  const std::string run = fleet_.CreateRun({"hostfacts"}, {"n1"}).id();
  const v1::SetStatusListenerRequest brought = FullRequest(run);
  const auto set = Set(brought);
  ASSERT_TRUE(set.ok()) << set.status();
  const std::string secret = brought.key_pem().substr(30, 40);
  EXPECT_EQ(set->SerializeAsString().find(secret), std::string::npos);
  const TestIdentity status = fleet_.Issue(ServiceIdentity{ServiceRole::kStatus, "main"});
  for (const TestIdentity& other : {fleet_.admin(), status}) {
    EXPECT_EQ(Get(other, run).status().code(), absl::StatusCode::kPermissionDenied);
  }
  fleet_.Stop();
  int databases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(fleet_.config.state_folder)) {
    if (!entry.path().filename().string().starts_with("state.db")) continue;
    const auto bytes = ReadFileBounded(entry.path(), size_t{64} << 20);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    databases += bytes->find(ca_.certificate().ToPem().substr(30, 40)) != std::string::npos ? 1 : 0;
    EXPECT_EQ(bytes->find(secret), std::string::npos) << entry.path();
  }
  EXPECT_GE(databases, 1);  // values that are not secret are found in plain text
  fleet_.Start();
}

TEST_F(ViewerTest, CertificateAndClientCaAreOptional) {
  const std::string one = fleet_.CreateRun({"hostfacts"}, {"n1"}).id();
  v1::SetStatusListenerRequest clients = FullRequest(one);
  clients.clear_certificate_pem();
  clients.clear_key_pem();
  ASSERT_TRUE(Set(clients).ok());
  EXPECT_EQ(Get(gateway_, one)->key_pem(), "");
  ASSERT_TRUE(Report(one, 8010, true).ok());
  EXPECT_EQ(Viewer(one)->server_ca_pem(), fleet_.fleet_ca_pem());
  EXPECT_EQ(Viewer(one)->host_address(), "https://127.0.0.1:8010/");

  const std::string two = fleet_.CreateRun({"hostfacts"}, {"n1"}).id();
  v1::SetStatusListenerRequest server = FullRequest(two);
  server.clear_client_ca_pem();
  ASSERT_TRUE(Set(server).ok());
  EXPECT_EQ(Get(gateway_, two)->client_ca_pem(), "");
}

TEST_F(ViewerTest, ProvidedCertificatesAreChecked) {
  const std::string run = fleet_.CreateRun({"hostfacts"}, {"n1"}).id();
  const auto reason = [&](auto change) {
    v1::SetStatusListenerRequest request = FullRequest(run);
    change(request);
    return ReasonOf(Set(request).status());
  };
  using Request = v1::SetStatusListenerRequest;
  constexpr char kInvalid[] = "INVALID_STATUS_CERTIFICATE";
  EXPECT_EQ(reason([](Request& r) { r.set_client_ca_pem(r.certificate_pem()); }), kInvalid);
  EXPECT_EQ(reason([](Request& r) { r.set_certificate_pem("no PEM"); }), kInvalid);
  EXPECT_EQ(reason([](Request& r) { r.clear_certificate_pem(); }), kInvalid);
  EXPECT_EQ(reason([](Request& r) { r.clear_key_pem(); }), kInvalid);
  EXPECT_EQ(reason([&](Request& r) { r.set_key_pem(std::string(key_.ToPkcs8Pem()->view())); }),
            kInvalid);
  EXPECT_EQ(reason([&](Request& r) {
              r.Clear();
              r.set_run(run);
            }),
            kInvalid);
  EXPECT_EQ(reason([](Request& r) { r.set_run("ffffffffffffffff"); }), "RUN_NOT_FOUND");
  EXPECT_EQ(ReasonOf(Get(gateway_, run).status()), "NO_STATUS_LISTENER");
  EXPECT_EQ(ReasonOf(Get(gateway_, "ffffffffffffffff").status()), "RUN_NOT_FOUND");
  EXPECT_EQ(ReasonOf(Report(run, 8010, true).status()), "NO_STATUS_LISTENER");
  EXPECT_EQ(ReasonOf(Report(run, 70'000, true).status()), "INVALID_PORT");
  ASSERT_TRUE(Cancel(run).ok());
  EXPECT_EQ(reason([](Request&) {}), "RUN_ENDED");
}

}  // namespace
}  // namespace muster
