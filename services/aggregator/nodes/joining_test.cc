// Join requests that are late, or ask for names of others.
#include "services/aggregator/nodes/joining.h"

#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <vector>

#include "services/aggregator/testing/test_state.h"
#include "services/common/base/error.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/join_token.h"
#include "services/common/identity/key_wrap.h"
#include "services/common/identity/signing_request.h"

namespace muster {
namespace {

using testing::kFleet;
using testing::TestState;

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";

class JoiningTest : public ::testing::Test {
 protected:
  void SetUp() override {
    JoinTokenRecord token;
    token.id = kToken;
    token.public_key_pem = *token_key_.public_key().ToPem();
    token.node = "n1";
    token.created_by = "ann";
    token.created_at = absl::ToUnixMicros(clock_.Now());
    token.expires_at = absl::ToUnixMicros(clock_.Now() + absl::Minutes(15));
    ASSERT_EQ(state_.Apply(CreateJoinToken{token}).verdict, CreateJoinToken::Verdict::kCreated);
  }

  Intermediate NewIntermediate() {
    const PrivateKey key = *PrivateKey::Generate();
    return *Intermediate::Load(kFleet, key,
                               *state_.root().SignIntermediate(key.public_key(), clock_.Now()),
                               state_.root().certificate());
  }

  absl::StatusOr<JoinedMember> Join(const std::string& request) {
    JoinParameters parameters;
    parameters.token_id = kToken;
    parameters.csr_pem = request;
    parameters.proof = *token_key_.Sign(JoinProofText(kToken, "", request));
    return joining_.Join(parameters);
  }

  TestState state_;
  FakeClock clock_{absl::Now()};  // certificates are issued at the present time
  Authorities authorities_{NewIntermediate(), *KeyWrap::OpenOrCreate(state_ / "store.key"),
                           state_.store(), clock_};
  Joining joining_{state_.store(), authorities_, clock_};
  const PrivateKey token_key_ = *PrivateKey::Generate();
};

template <typename T, void (*Free)(T*)>
struct Deleter {
  void operator()(T* object) const { Free(object); }
};
using RequestPtr = std::unique_ptr<X509_REQ, Deleter<X509_REQ, X509_REQ_free>>;
using CertificatePtr = std::unique_ptr<X509, Deleter<X509, X509_free>>;
using BioPtr = std::unique_ptr<BIO, Deleter<BIO, BIO_free_all>>;

// Returns a request with these subject and alternative names, for a CA.
std::string RequestFor(const PrivateKey& key, const std::string& subject,
                       const std::string& alternative_names) {
  const RequestPtr request(X509_REQ_new());
  X509_NAME* const name = X509_REQ_get_subject_name(request.get());
  const auto* const text = reinterpret_cast<const unsigned char*>(subject.c_str());
  EXPECT_EQ(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, text, -1, -1, 0), 1);
  STACK_OF(X509_EXTENSION)* const extensions = sk_X509_EXTENSION_new_null();
  for (const auto& [id, value] : {std::pair(NID_subject_alt_name, alternative_names.c_str()),
                                  std::pair(NID_basic_constraints, "CA:TRUE")}) {
    sk_X509_EXTENSION_push(extensions, X509V3_EXT_conf_nid(nullptr, nullptr, id, value));
  }
  EXPECT_EQ(X509_REQ_add_extensions(request.get(), extensions), 1);
  sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
  EXPECT_EQ(X509_REQ_set_pubkey(request.get(), key.get()), 1);
  EXPECT_GT(X509_REQ_sign(request.get(), key.get(), EVP_sha256()), 0);
  const BioPtr bio(BIO_new(BIO_s_mem()));
  EXPECT_EQ(PEM_write_bio_X509_REQ(bio.get(), request.get()), 1);
  char* pem = nullptr;
  const auto size = static_cast<size_t>(BIO_get_mem_data(bio.get(), &pem));
  return {pem, size};
}

TEST_F(JoiningTest, ExpiredTokenIsRefusedAlsoForAJoinedKey) {
  const std::string request = *CreateSigningRequest(*PrivateKey::Generate());
  clock_.Advance(absl::Minutes(14));
  ASSERT_TRUE(Join(request).ok());
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(ReasonOf(Join(request).status()), "TOKEN_EXPIRED");
  EXPECT_EQ(ReasonOf(Join(*CreateSigningRequest(*PrivateKey::Generate())).status()),
            "TOKEN_EXPIRED");
}

// The certificate's name comes from the token; the names in the request are ignored.
TEST_F(JoiningTest, CertificateHasOnlyTheNameOfTheToken) {
  const PrivateKey key = *PrivateKey::Generate();
  const auto joined =
      Join(RequestFor(key, "n2",
                      "URI:spiffe://f.muster/node/n2,URI:spiffe://f.muster/user/ann,"
                      "DNS:aggregator.example,IP:127.0.0.1"));
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->name, "n1");
  const auto leaf = Certificate::FromPem(joined->certificate_chain_pem);
  EXPECT_EQ(*leaf->Uri(), "spiffe://f.muster/node/n1");
  EXPECT_EQ(leaf->Hosts(), std::vector<std::string>());
  EXPECT_TRUE(*leaf->Key() == key.public_key());
  const BioPtr pem(BIO_new_mem_buf(joined->certificate_chain_pem.data(), -1));
  const CertificatePtr parsed(PEM_read_bio_X509(pem.get(), nullptr, nullptr, nullptr));
  EXPECT_EQ(X509_check_ca(parsed.get()), 0);
  EXPECT_FALSE((*state_.store().GetNode("n2")).has_value());
}

}  // namespace
}  // namespace muster
