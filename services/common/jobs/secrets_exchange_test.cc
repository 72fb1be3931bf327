#include "services/common/jobs/secrets_exchange.h"

#include <functional>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/identity/authority.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-00112233.muster";
constexpr char kJob[] = "0123456789abcdef0123456789abcdef";

class SecretsExchangeTest : public ::testing::Test {
 protected:
  SecretsExchangeTest() {
    auto& value = *values_.add_values();
    value.set_name("db");
    value.set_secret("prod/db");
    value.set_version(3);
    value.set_value("hunter22");
  }

  SigningFiles FilesOf(const FleetName& name) const {
    const PrivateKey key = *PrivateKey::Generate();
    const Certificate leaf =
        *intermediate_.Issue(name, key.public_key(), {}, now_, now_ + absl::Hours(1));
    return {key, ChainToPem(std::vector<Certificate>{leaf, intermediate_.certificate()})};
  }
  std::string Refusal(const v1::FetchSecretsRequest& request) {
    return ReasonOf(VerifySecretsRequest(request, kFleet, chains_).status());
  }
  v1::FetchSecretsResponse Answer(const v1::FetchSecretsRequest& request) const {
    return *SealSecrets(service_, kFleet, request, values_);
  }
  absl::StatusOr<v1::SecretValues> Open(const SecretsRequest& request,
                                        const v1::FetchSecretsResponse& response) const {
    return OpenSecrets(request, kFleet, std::vector<Certificate>{root_.certificate()}, now_,
                       response);
  }

  const absl::Time now_ = absl::Now();
  const FleetRoot root_ = *FleetRoot::Create(kFleet, *PrivateKey::Generate(), now_);
  const PrivateKey intermediate_key_ = *PrivateKey::Generate();
  const Intermediate intermediate_ = *Intermediate::Load(
      kFleet, intermediate_key_, *root_.SignIntermediate(intermediate_key_.public_key(), now_),
      root_.certificate());
  VerifiedChains chains_{[this] { return std::vector<Certificate>{root_.certificate()}; },
                         SystemClock()};
  const SigningFiles node_ = FilesOf(NodeIdentity{"n1"});
  const SigningFiles service_ = FilesOf(ServiceIdentity{ServiceRole::kJobs, "main"});
  const SecretsRequest request_ = *MakeSecretsRequest(node_, kFleet, kJob, "n1");
  v1::SecretValues values_;
};

TEST_F(SecretsExchangeTest, NodeGetsTheValues) {
  const auto signer = VerifySecretsRequest(request_.message, kFleet, chains_);
  ASSERT_TRUE(signer.ok()) << signer.status();
  EXPECT_NE((*signer)->serial, "");
  const auto values = Open(request_, Answer(request_.message));
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->SerializeAsString(), values_.SerializeAsString());
}

TEST_F(SecretsExchangeTest, AnswerDoesNotContainTheValues) {
  EXPECT_EQ(Answer(request_.message).SerializeAsString().find("hunter22"), std::string::npos);
}

TEST_F(SecretsExchangeTest, ChangedOrForeignRequestIsRefused) {
  using Change = std::function<void(v1::FetchSecretsRequest&)>;
  for (const Change& change : std::vector<Change>{
           [](v1::FetchSecretsRequest& r) { r.set_job("1123456789abcdef0123456789abcdef"); },
           [](v1::FetchSecretsRequest& r) { r.set_node("n2"); },
           [](v1::FetchSecretsRequest& r) { r.set_key(HpkeKey::Generate()->public_key()); },
           [](v1::FetchSecretsRequest& r) { r.clear_signature(); },
           [](v1::FetchSecretsRequest& r) { r.clear_certificate_chain_pem(); },
           [](v1::FetchSecretsRequest& r) {
             r.mutable_certificate_chain_pem()->append(16 << 10, '\n');
           }}) {
    v1::FetchSecretsRequest request = request_.message;
    change(request);
    EXPECT_EQ(Refusal(request), "SECRETS_REFUSED") << request.ShortDebugString();
  }
  for (const FleetName& name :
       std::vector<FleetName>{NodeIdentity{"n2"}, ServiceIdentity{ServiceRole::kRelay, "r1"}}) {
    EXPECT_EQ(Refusal(MakeSecretsRequest(FilesOf(name), kFleet, kJob, "n1")->message),
              "SECRETS_REFUSED");
  }
}

TEST_F(SecretsExchangeTest, AnswerOfARelayIsRefused) {
  // A relay knows the key of the request, and can seal to it.
  const SigningFiles relay = FilesOf(ServiceIdentity{ServiceRole::kRelay, "r1"});
  const auto forged = *SealSecrets(relay, kFleet, request_.message, values_);
  const auto opened = Open(request_, forged);
  EXPECT_EQ(ReasonOf(opened.status()), "SECRET_UNAVAILABLE");
  EXPECT_NE(opened.status().message().find("no jobs service"), absl::string_view::npos);
  // With the certificate of the jobs service it lacks its key.
  auto stolen = forged;
  stolen.set_certificate_chain_pem(service_.chain_pem);
  EXPECT_EQ(ReasonOf(Open(request_, stolen).status()), "SECRET_UNAVAILABLE");
}

TEST_F(SecretsExchangeTest, ChangedAnswerOrThatOfAnotherRequestIsRefused) {
  const auto answer = Answer(request_.message);
  using Change = std::function<void(v1::FetchSecretsResponse&)>;
  for (const Change& change : std::vector<Change>{
           [](v1::FetchSecretsResponse& r) { r.mutable_sealed()->back() ^= 1; },
           [](v1::FetchSecretsResponse& r) { r.mutable_encapsulated_key()->back() ^= 1; },
           [](v1::FetchSecretsResponse& r) { r.clear_signature(); },
           [](v1::FetchSecretsResponse& r) { r.clear_certificate_chain_pem(); },
           [](v1::FetchSecretsResponse& r) { r.Clear(); }}) {
    auto changed = answer;
    change(changed);
    EXPECT_EQ(ReasonOf(Open(request_, changed).status()), "SECRET_UNAVAILABLE");
  }
  const SecretsRequest later = *MakeSecretsRequest(node_, kFleet, kJob, "n1");
  EXPECT_EQ(ReasonOf(Open(later, answer).status()), "SECRET_UNAVAILABLE");
  const SecretsRequest other =
      *MakeSecretsRequest(node_, kFleet, "1123456789abcdef0123456789abcdef", "n1");
  EXPECT_EQ(ReasonOf(Open(other, answer).status()), "SECRET_UNAVAILABLE");
}

TEST_F(SecretsExchangeTest, KeyOfLowOrderIsRefused) {
  v1::FetchSecretsRequest request = request_.message;
  request.set_key(std::string(32, '\0'));
  EXPECT_EQ(ReasonOf(SealSecrets(service_, kFleet, request, values_).status()), "SECRETS_REFUSED");
}

}  // namespace
}  // namespace muster
