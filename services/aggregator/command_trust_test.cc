// Signing certificates and their revocation, over TLS.
#include <grpcpp/client_context.h>
#include <sys/stat.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/v1/identities.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/identity/command_revocations.h"
#include "services/common/identity/key.h"
#include "services/common/identity/signed_command.h"
#include "services/common/identity/signing_key.h"
#include "services/common/identity/signing_request.h"
#include "services/common/rpc/caller.h"
#include "services/common/store/sqlite/sqlite_store.h"
#include "testing/fixtures/test_call.h"
#include "testing/fixtures/test_fleet.h"

namespace muster {
namespace {

using testing::TestFleet;
using testing::TestIdentity;

class CommandTrustTest : public ::testing::Test {
 protected:
  using Stub = v1::IdentityService::Stub;

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(const TestIdentity& as,
                                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request, const std::string& forwarded = "") {
    std::vector<std::pair<std::string, std::string>> metadata;
    if (!forwarded.empty()) metadata.emplace_back(kForwardedIdentity, forwarded);
    return testing::CallUnary<v1::IdentityService>(fleet_.Connect(as), method, request, metadata);
  }

  absl::StatusOr<v1::CommandCertificate> Issue(const TestIdentity& as, const SigningKey& key,
                                               const std::string& forwarded = "") {
    v1::IssueCommandCertificateRequest request;
    request.set_public_key_pem(*key.public_key().ToPem());
    return Call(as, &Stub::IssueCommandCertificate, request, forwarded);
  }

  absl::StatusOr<v1::CommandRevocations> Revocations(const TestIdentity& as) {
    return Call(as, &Stub::GetCommandRevocations, v1::GetCommandRevocationsRequest());
  }

  // Changes the store of the aggregator while it does not run.
  void ChangeStore(const std::function<void(StateStore&)>& change) {
    fleet_.Stop();
    {
      const auto store = OpenSqliteStore({.path = fleet_.config.state_folder + "/state.db"});
      ASSERT_TRUE(store.ok()) << store.status();
      change(**store);
    }
    fleet_.Start();
  }

  TestIdentity Relay() { return fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "root"}); }

  TestIdentity AddOperator(const std::string& name) {
    v1::AddOperatorRequest add;
    add.set_name(name);
    const PrivateKey key = *PrivateKey::Generate();
    add.set_csr_pem(*CreateSigningRequest(key));
    const auto added = Call(fleet_.admin(), &Stub::AddOperator, add);
    EXPECT_TRUE(added.ok()) << added.status();
    return {added->certificate_chain_pem(), std::string(key.ToPkcs8Pem()->view())};
  }

  // The gate before the handlers refuses with the reason in the message.
  static bool IsRefused(const absl::StatusOr<v1::CommandCertificate>& answer) {
    return answer.status().message().find("ROLE_NOT_ALLOWED") != absl::string_view::npos;
  }

  v1::Command Command() {
    v1::Command command;
    command.set_fleet(fleet_.name());
    command.set_job(std::string(32, 'a'));
    command.mutable_targets()->set_all(true);
    command.set_action("exec");
    command.add_argv("/bin/true");
    command.mutable_not_before()->set_seconds(absl::ToUnixSeconds(absl::Now()));
    command.mutable_not_after()->set_seconds(absl::ToUnixSeconds(absl::Now()) + 60);
    command.mutable_time_limit()->set_seconds(60);
    command.set_nonce(std::string(16, 'n'));
    return command;
  }

  std::string UriOf(const std::string& path) {
    return absl::StrCat("spiffe://", fleet_.name(), "/", path);
  }

  TestFleet fleet_;
  const SigningKey key_ = *SigningKey::Generate();
};

TEST_F(CommandTrustTest, OperatorSignsWithItsCertificate) {
  const auto issued = Issue(fleet_.admin(), key_);
  ASSERT_TRUE(issued.ok()) << issued.status();
  EXPECT_EQ(issued->uri(), UriOf("user/tester"));
  const auto command = SignCommand(Command(), key_, issued->certificate_chain_pem());
  ASSERT_TRUE(command.ok()) << command.status();
  const auto verified = VerifyCommand(*command, *Certificate::FromPem(issued->command_ca_pem()),
                                      fleet_.name(), absl::Now());
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_EQ(*ToUri(verified->signer), UriOf("user/tester"));
}

TEST_F(CommandTrustTest, AuthorityIsPermanentAndItsKeyPrivate) {
  const auto before = Issue(fleet_.admin(), key_);
  fleet_.Stop();
  struct stat info{};
  ASSERT_EQ(stat((fleet_.config.state_folder + "/command-ca.key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  fleet_.Start();
  const auto after = Issue(fleet_.admin(), key_);
  ASSERT_TRUE(before.ok() && after.ok()) << before.status() << after.status();
  EXPECT_EQ(before->command_ca_pem(), after->command_ca_pem());
}

TEST_F(CommandTrustTest, GatewayGetsACertificateOnlyForItself) {
  const TestIdentity gateway = fleet_.Issue(ServiceIdentity{ServiceRole::kGateway, "main"});
  const auto own = Issue(gateway, key_);
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->uri(), UriOf("service/gateway/main"));
  EXPECT_TRUE(IsRefused(Issue(gateway, key_, UriOf("user/tester"))));
  EXPECT_TRUE(IsRefused(Issue(Relay(), key_)));
  EXPECT_TRUE(IsRefused(Issue(fleet_.Issue(NodeIdentity{"n1"}), key_)));
}

TEST_F(CommandTrustTest, KeyOfAnotherKindIsRefused) {
  v1::IssueCommandCertificateRequest request;
  request.set_public_key_pem(*PrivateKey::Generate()->public_key().ToPem());
  EXPECT_EQ(ReasonOf(Call(fleet_.admin(), &Stub::IssueCommandCertificate, request).status()),
            "INVALID_KEY");
}

TEST_F(CommandTrustTest, OperatorCannotRevokeItself) {
  const TestIdentity eve = AddOperator("eve");
  v1::RevokeOperatorRequest revoke;
  revoke.set_name("eve");
  const absl::Status status = Call(eve, &Stub::RevokeOperator, revoke).status();
  EXPECT_EQ(ReasonOf(status), "OWN_OPERATOR") << status;
  EXPECT_TRUE(Issue(eve, key_).ok());
}

// Records of certificates are removed a week after their expiry.
TEST_F(CommandTrustTest, RevokedNameIsNotUsedAgainWithoutARecordOfItsCertificate) {
  ChangeStore([&](StateStore& store) {
    EXPECT_TRUE(store.ApplyAndWait(Revoke{{.subject = UriOf("user/bob")}}).ok());
  });
  v1::AddOperatorRequest add;
  add.set_name("bob");
  add.set_csr_pem(*CreateSigningRequest(*PrivateKey::Generate()));
  EXPECT_EQ(ReasonOf(Call(fleet_.admin(), &Stub::AddOperator, add).status()), "OPERATOR_REVOKED");
}

TEST_F(CommandTrustTest, OperatorWithManyNewerCertificatesOfOthersIsRevoked) {
  const TestIdentity bob = AddOperator("bob");
  ChangeStore([&](StateStore& store) {
    const int64_t now = absl::ToUnixMicros(absl::Now());
    for (int i = 0; i < 10'000; ++i) {
      const RecordIssued other{{UriOf("user/ann"), "issuer", absl::StrCat(i), "ann", now, now + 1}};
      if (i % 1000 == 0) {
        ASSERT_TRUE(store.ApplyAndWait(other).ok());  // the queue of the store is limited
      } else {
        store.Apply(other, [](const absl::StatusOr<RecordIssued::Result>& recorded) {
          EXPECT_TRUE(recorded.ok()) << recorded.status();
        });
      }
    }
  });
  v1::RevokeOperatorRequest revoke;
  revoke.set_name("bob");
  const absl::StatusOr<v1::Operator> revoked = Call(fleet_.admin(), &Stub::RevokeOperator, revoke);
  ASSERT_TRUE(revoked.ok()) << revoked.status();
  EXPECT_EQ(revoked->uri(), UriOf("user/bob"));
  EXPECT_TRUE(revoked->revoked());
  EXPECT_FALSE(Issue(bob, key_).ok());
}

TEST_F(CommandTrustTest, VersionIncreasesWithEachRevokedOperator) {
  const auto issued = Issue(fleet_.admin(), key_);
  ASSERT_TRUE(issued.ok());
  const Certificate authority = *Certificate::FromPem(issued->command_ca_pem());
  const auto before = Revocations(Relay());
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_TRUE(VerifyCommandRevocations(*before, fleet_.name(), authority).ok());
  EXPECT_EQ(before->revoked_size(), 0);

  const TestIdentity eve = AddOperator("eve");
  EXPECT_TRUE(Issue(eve, key_).ok());
  v1::RevokeOperatorRequest revoke;
  revoke.set_name("eve");
  ASSERT_TRUE(Call(fleet_.admin(), &Stub::RevokeOperator, revoke).ok());

  const auto after = Revocations(Relay());
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_GT(after->version(), before->version());
  EXPECT_TRUE(VerifyCommandRevocations(*after, fleet_.name(), authority).ok());
  EXPECT_TRUE(IsRevoked(*after, {fleet_.name(), UserIdentity{"eve"}}));
  EXPECT_FALSE(Issue(eve, key_).ok()) << "one that is revoked gets no new certificate";
}

}  // namespace
}  // namespace muster
