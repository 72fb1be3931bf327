// A real aggregator, and a separate clock for the keeper, so that half an hour passes immediately.
#include "services/common/joining/identity_keeper.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/v1/enrollment.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/mutex.h"
#include "services/common/base/secret_file.h"
#include "services/common/joining/join_fleet.h"
#include "services/common/joining/member_file.h"
#include "services/common/joining/testing/fake_join_relay.h"
#include "testing/fixtures/test_fleet.h"

namespace muster {
namespace {

class IdentityKeeperTest : public ::testing::Test {
 protected:
  IdentityKeeperTest()
      : folder_(absl::StrCat(::testing::TempDir(), "/keeper-", ::getpid(), "-",
                             ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    Join();
  }
  ~IdentityKeeperTest() override { std::filesystem::remove_all(folder_); }

  void Join() {
    const PrivateKey key = *PrivateKey::Generate();
    v1::CreateJoinTokenRequest request;
    request.set_id(std::string(32, 'a'));
    request.set_public_key_pem(*key.public_key().ToPem());
    request.set_node("n1");
    v1::CreateJoinTokenResponse response;
    grpc::ClientContext context;
    const auto stub = v1::EnrollmentService::NewStub(fleet_.Connect(fleet_.admin()));
    ASSERT_TRUE(stub->CreateJoinToken(&context, request, &response).ok());
    JoinToken token;
    token.fleet = fleet_.name();
    token.id = request.id();
    token.node = "n1";
    token.expires = absl::Now() + absl::Minutes(15);
    token.join_targets = {Target()};
    token.fleet_ca_pem = response.fleet_ca_pem();
    token.private_key_pem = *key.ToPkcs8Pem();
    const auto joined = JoinFleet(token, "n1", folder_);
    ASSERT_TRUE(joined.ok()) << joined.status();
  }

  void Revoke() {
    v1::RevokeNodeRequest request;
    request.set_node("n1");
    v1::EnrolledNode node;
    grpc::ClientContext context;
    const auto stub = v1::EnrollmentService::NewStub(fleet_.Connect(fleet_.admin()));
    ASSERT_TRUE(stub->RevokeNode(&context, request, &node).ok());
  }

  std::string Target() { return absl::StrCat("127.0.0.1:", fleet_.join_port()); }

  absl::StatusOr<std::unique_ptr<IdentityKeeper>> Open(std::vector<std::string> targets) {
    IdentityKeeper::Options options;
    options.folder = folder_;
    options.join_targets = std::move(targets);
    options.attempted = [this](const absl::Status& status) {
      if (status.ok()) {
        clock_.JumpWall(absl::Now());
        ++renewals_;
      }
      const MutexLock lock(mutex_);
      outcome_ = status;
    };
    options.clock = &clock_;
    options.timers = &clock_;
    options.executor = &executor_;
    return IdentityKeeper::Open(std::move(options));
  }

  // Returns the outcome of the last attempt to renew.
  absl::Status Outcome() {
    const MutexLock lock(mutex_);
    return outcome_;
  }

  // Lets time pass and waits for the checks that are due.
  void Advance(absl::Duration by) {
    clock_.Advance(by);
    executor_.AwaitIdle();
  }

  std::string Published(const IdentityKeeper& keeper, const std::string& file) {
    return ReadFileBounded(keeper.published_folder() + "/" + file, 1 << 20).value_or("");
  }

  testing::TestFleet fleet_;
  const std::string folder_;
  FakeClock clock_{absl::Now()};
  Executor executor_{{"test", 1}};
  std::atomic<int> renewals_ = 0;
  Mutex mutex_;
  absl::Status outcome_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(IdentityKeeperTest, FreshCertificateIsPublishedAndNotRenewed) {
  const auto keeper = Open({Target()});
  ASSERT_TRUE(keeper.ok()) << keeper.status();
  EXPECT_EQ((*keeper)->identity(), (Identity{fleet_.name(), NodeIdentity{"n1"}}));
  EXPECT_FALSE((*keeper)->roots().empty());
  EXPECT_EQ((*keeper)->member().name, "n1");
  const std::string certificate = Published(**keeper, "cert.pem");
  EXPECT_FALSE(certificate.empty());
  Advance(absl::ZeroDuration());
  Advance(absl::Minutes(1));
  (*keeper)->Stop();
  EXPECT_EQ(renewals_, 0);
  EXPECT_EQ(Published(**keeper, "cert.pem"), certificate);
}

TEST_F(IdentityKeeperTest, CertificateIsRenewedAtHalfOfItsValidityAtTheNextTarget) {
  clock_.JumpWall(absl::Now() + absl::Minutes(40));
  const auto keeper = Open({"127.0.0.1:1", Target()});
  ASSERT_TRUE(keeper.ok()) << keeper.status();
  const auto before = ReadFileBounded(folder_ + "/tls/cert.pem", 1 << 20);
  Advance(absl::ZeroDuration());
  EXPECT_EQ(renewals_, 1) << Outcome();
  EXPECT_TRUE(Outcome().ok());
  const auto leaf = Certificate::FromPem(Published(**keeper, "cert.pem"));
  ASSERT_TRUE(leaf.ok());
  EXPECT_TRUE(leaf->Matches(*PrivateKey::FromPem(Published(**keeper, "key.pem"))));
  EXPECT_EQ(ReadFileBounded(folder_ + "/tls/cert.pem", 1 << 20).value_or(""),
            Published(**keeper, "cert.pem"));
  // The response contained new targets.
  EXPECT_FALSE((*keeper)->member().relay_targets.empty());
  EXPECT_EQ(ReadMemberFile(folder_)->relay_targets, (*keeper)->member().relay_targets);
}

TEST_F(IdentityKeeperTest, CertificateIsRenewedAtTheNextTargetIfARelayIsRevoked) {
  const testing::FakeJoinRelay relay(fleet_, testing::RefusalOfTheRelay());
  clock_.JumpWall(absl::Now() + absl::Minutes(40));
  const auto keeper = Open({relay.target(), Target()});
  ASSERT_TRUE(keeper.ok()) << keeper.status();
  Advance(absl::ZeroDuration());
  EXPECT_EQ(renewals_, 1) << Outcome();
}

TEST_F(IdentityKeeperTest, CertificateIsRenewedAtTheNextTargetIfTheFirstAnswersWithAnotherKey) {
  const testing::FakeJoinRelay relay(fleet_, testing::CertificateForAnotherKey(fleet_, "n1"));
  clock_.JumpWall(absl::Now() + absl::Minutes(40));
  const auto keeper = Open({relay.target(), Target()});
  ASSERT_TRUE(keeper.ok()) << keeper.status();
  Advance(absl::ZeroDuration());
  EXPECT_EQ(renewals_, 1) << Outcome();
  const auto leaf = Certificate::FromPem(Published(**keeper, "cert.pem"));
  EXPECT_TRUE(leaf->Matches(*PrivateKey::FromPem(Published(**keeper, "key.pem"))));
}

// A hostile relay can answer with addresses that lead nowhere but to itself.
TEST_F(IdentityKeeperTest, TargetsOfTheTokenAreAskedLast) {
  MemberFile member = *ReadMemberFile(folder_);
  EXPECT_EQ(member.token_targets, std::vector<std::string>{Target()});
  member.join_targets = {"127.0.0.1:1"};
  ASSERT_TRUE(WriteMemberFile(folder_, member).ok());
  clock_.JumpWall(absl::Now() + absl::Minutes(40));
  const auto keeper = Open({});
  ASSERT_TRUE(keeper.ok()) << keeper.status();
  Advance(absl::ZeroDuration());
  EXPECT_EQ(renewals_, 1) << Outcome();
  EXPECT_EQ(ReadMemberFile(folder_)->token_targets, member.token_targets);
}

TEST_F(IdentityKeeperTest, ExpiredCertificateIsRenewedAtTheStart) {
  // The keeper's clock is past the end of what it has; what it gets has ended by it as well, which
  // is refused: that it asked at all is what counts here.
  clock_.JumpWall(absl::Now() + absl::Hours(2));
  const auto keeper = Open({Target()});
  ASSERT_TRUE(keeper.ok()) << keeper.status();
  Advance(absl::ZeroDuration());
  EXPECT_EQ(ReasonOf(Outcome()), "CERTIFICATE_EXPIRED") << Outcome();
}

TEST_F(IdentityKeeperTest, RevokedNodeGetsNodeRevoked) {
  Revoke();
  clock_.JumpWall(absl::Now() + absl::Minutes(40));
  const auto keeper = Open({Target(), "127.0.0.1:1"});
  ASSERT_TRUE(keeper.ok()) << keeper.status();
  Advance(absl::ZeroDuration());
  EXPECT_EQ(ReasonOf(Outcome()), "NODE_REVOKED") << Outcome();
  EXPECT_EQ(renewals_, 0);
}

TEST_F(IdentityKeeperTest, RefusedRenewalIsRepeatedAfterFiveToTenMinutes) {
  clock_.JumpWall(absl::Now() + absl::Hours(2));
  const auto keeper = Open({Target()});
  ASSERT_TRUE(keeper.ok()) << keeper.status();
  Advance(absl::ZeroDuration());
  EXPECT_EQ(ReasonOf(Outcome()), "CERTIFICATE_EXPIRED");
  Revoke();  // so that a second attempt has another result
  for (int i = 0; i < 19; ++i) Advance(absl::Seconds(15));
  EXPECT_EQ(ReasonOf(Outcome()), "CERTIFICATE_EXPIRED") << "5 minutes at least";
  for (int i = 0; i < 22; ++i) Advance(absl::Seconds(15));
  EXPECT_EQ(ReasonOf(Outcome()), "NODE_REVOKED") << "10 minutes at most";
}

TEST_F(IdentityKeeperTest, StopCancelsARunningRequest) {
  clock_.JumpWall(absl::Now() + absl::Minutes(40));
  // A listener that accepts the connection and sends nothing.
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const auto keeper = Open({absl::StrCat("127.0.0.1:", ntohs(address.sin_port))});
  ASSERT_TRUE(keeper.ok()) << keeper.status();
  clock_.Advance(absl::ZeroDuration());
  const int connection = ::accept(listener, nullptr, nullptr);
  ASSERT_GE(connection, 0);
  const absl::Time begin = absl::Now();
  (*keeper)->Stop();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(15)) << "the request's own limit is 20 s";
  ::close(connection);
  ::close(listener);
}

TEST_F(IdentityKeeperTest, FolderWithoutMemberFileIsRefused) {
  std::filesystem::remove(folder_ + "/node.json");
  EXPECT_EQ(ReasonOf(Open({}).status()), "NOT_JOINED");
}

}  // namespace
}  // namespace muster
