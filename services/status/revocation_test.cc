// Revocation over real mutual TLS, with a real aggregator and a real status service.
#include "services/common/identity/revocation.h"

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "muster/v1/heartbeats.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/identity/certificate.h"
#include "services/common/rpc/forwarding.h"
#include "services/common/rpc/status.h"
#include "services/common/store/sqlite/sqlite_store.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/test_heartbeat_stream.h"
#include "testing/fixtures/test_status.h"

namespace muster {
namespace {

using testing::PairOf;
using testing::TestFleet;
using testing::TestHeartbeatStream;
using testing::TestIdentity;
using testing::TestStatus;

// One whose aggregator is stopped and started in a moment, at the port where the status service
// knows it.
class QuickFleet : public TestFleet {
 public:
  QuickFleet() {
    config.listen.port = static_cast<uint16_t>(port());
    config.drain = absl::Milliseconds(100);
    Stop();
    Start();
  }
};

class RevocationTest : public ::testing::Test {
 protected:
  RevocationTest() : run_(fleet_.CreateRun({"hostfacts"}, {"n1", "n2"}).id()) {
    status_.Await(run_, [](const v1::RunStatus& s) { return s.counts().planned() == 2; });
  }

  // The API revokes operators only. A sender of heartbeats is revoked in the store of a stopped
  // aggregator.
  void Revoke(const std::string& subject) {
    fleet_.Stop();
    {
      SqliteStoreOptions options;
      options.path = absl::StrCat(fleet_.config.state_folder, "/state.db");
      const auto store = OpenSqliteStore(std::move(options));
      ASSERT_TRUE(store.ok()) << store.status();
      const auto revoked = (*store)->ApplyAndWait(muster::Revoke{{.subject = subject}});
      ASSERT_TRUE(revoked.ok()) << revoked.status();
    }
    fleet_.Start();
  }

  std::string Uri(const std::string& node) {
    return absl::StrCat("spiffe://", run_, ".", fleet_.name(), "/plugin/hostfacts/node/", node);
  }

  QuickFleet fleet_;
  TestStatus status_{fleet_};
  const std::string run_;
};

// Its stream ends, what it tries then is refused, and its pair says why; others notice nothing.
TEST_F(RevocationTest, HeartbeatOfARevokedAgentIsRejected) {
  const TestIdentity n1 = fleet_.Credential(run_, "hostfacts", "n1");
  const TestIdentity n2 = fleet_.Credential(run_, "hostfacts", "n2");
  TestHeartbeatStream revoked(status_.Connect(n1));
  TestHeartbeatStream other(status_.Connect(n2));
  revoked.Send(revoked.First());
  other.Send(other.First());
  Revoke(Uri("n1"));
  const absl::Status ended = revoked.End();
  EXPECT_EQ(ReasonOf(ended), "REVOKED") << ended;
  TestHeartbeatStream again(status_.Connect(n1));
  const absl::Status refused = again.SendAndEnd(again.First());
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied) << refused;
  EXPECT_NE(refused.message().find("REVOKED"), std::string::npos) << refused;

  const v1::PairStatus pair = PairOf(
      status_.Await(
          run_,
          [](const v1::RunStatus& s) { return PairOf(s, "n1").reason() == v1::REASON_BLOCKED; }),
      "n1");
  EXPECT_EQ(pair.reason(), v1::REASON_BLOCKED) << pair.ShortDebugString();
  EXPECT_NE(pair.detail().find("revoked"), std::string::npos) << pair.detail();
  EXPECT_NE(pair.next().find("timed out"), std::string::npos) << pair.next();
  other.Send(other.Next());
  EXPECT_EQ(PairOf(*status_.Get(run_), "n2").presence(), v1::PRESENCE_ONLINE);
}

// A relay that was removed from the fleet is revoked, and no run waits for it.
TEST_F(RevocationTest, RevokedRelayCausesNoDoubt) {
  const TestIdentity r1 = fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "r1"});
  {
    grpc::ClientContext context;
    const auto stub = v1::HeartbeatService::NewStub(status_.Connect(r1));
    const auto stream = stub->RelayHeartbeats(&context);
    v1::RelayHeartbeatsRequest hello;
    hello.set_relay("r1");
    v1::RelayHeartbeatsResponse response;
    ASSERT_TRUE(stream->Write(hello) && stream->Read(&response));
    context.TryCancel();
    stream->Finish();
  }
  status_.Await(run_, [](const v1::RunStatus& s) {
    return absl::StrContains(s.doubt(), "relay r1 is not connected");
  });
  const Certificate certificate = *Certificate::FromPem(r1.chain_pem);
  Revoke(CertificateSubject(certificate.IssuerKeyId(), certificate.Serial()));
  status_.Await(run_, [](const v1::RunStatus& s) { return s.doubt().empty(); });
}

// Its parent still forwards its heartbeats.
TEST_F(RevocationTest, ForwardedStreamOfARevokedRelayIsRefused) {
  const TestIdentity r1 = fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "r1"});
  const TestIdentity r2 = fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "r2"});
  const Certificate parent = *Certificate::FromPem(r1.chain_pem);
  const Certificate child = *Certificate::FromPem(r2.chain_pem);
  const v1::AttachStatement statement =
      *SignAttachStatement(*PrivateKey::FromPem(r2.key_pem), r2.chain_pem, *child.Uri(),
                           *parent.Uri(), *parent.Key()->Sha256(), absl::Now() + absl::Minutes(30));
  Revoke(CertificateSubject(child.IssuerKeyId(), child.Serial()));
  const auto stub = v1::HeartbeatService::NewStub(status_.Connect(r1));
  // Until the service knows that r2 is revoked.
  EXPECT_TRUE(testing::Await([&] {
    grpc::ClientContext context;
    context.AddMetadata(kRelayStatement, statement.SerializeAsString());
    const auto stream = stub->RelayHeartbeats(&context);
    v1::RelayHeartbeatsRequest hello;
    hello.set_relay("r2");
    v1::RelayHeartbeatsResponse response;
    if (stream->Write(hello) && stream->Read(&response)) context.TryCancel();
    return ReasonOf(FromGrpc(stream->Finish())) == "REVOKED";
  }));
  status_.Await(run_, [](const v1::RunStatus& s) { return s.doubt().empty(); });
}

}  // namespace
}  // namespace muster
