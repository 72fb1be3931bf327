#include "services/common/identity/custom_certificate.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/certificate_builder.h"
#include "services/common/identity/key.h"
#include "services/common/identity/openssl_support.h"

namespace muster {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

using EvpKey = OpenSslPtr<EVP_PKEY, EVP_PKEY_free>;
using X509Ptr = OpenSslPtr<X509, X509_free>;

std::string PemOf(const PrivateKey& key) { return std::string(key.ToPkcs8Pem()->view()); }

std::string PemOf(EVP_PKEY* key, const EVP_CIPHER* cipher = nullptr) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PKCS8PrivateKey(bio.get(), key, cipher, "secret", cipher != nullptr ? 6 : 0,
                                nullptr, nullptr);
  return TakeBio(bio.get());
}

// Creates a self-signed certificate as "openssl req -x509" does, with any kind of key.
std::string SelfSigned(EVP_PKEY* key) {
  const X509Ptr certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  ASN1_TIME_set(X509_getm_notBefore(certificate.get()), absl::ToTimeT(kNow - absl::Hours(1)));
  ASN1_TIME_set(X509_getm_notAfter(certificate.get()), absl::ToTimeT(kNow + absl::Hours(1)));
  X509_set_pubkey(certificate.get(), key);
  X509_sign(certificate.get(), key, EVP_PKEY_is_a(key, "ED25519") ? nullptr : EVP_sha256());
  return Certificate::Adopt(X509_dup(certificate.get())).ToPem();
}

class CustomCertificateTest : public ::testing::Test {
 protected:
  static CertificateSpec Spec(const std::string& name, std::optional<Usage> usage) {
    CertificateSpec spec;
    spec.common_name = name;
    spec.uri = "spiffe://elsewhere";
    spec.not_before = kNow - absl::Hours(1);
    spec.not_after = kNow + absl::Hours(1);
    spec.usage = usage;
    if (usage == Usage::kServer) spec.hosts = {"status.example"};
    return spec;
  }

  std::string Leaf(Usage usage = Usage::kServer) {
    return BuildCertificate(Spec("leaf", usage), key_.public_key(), &ca_, ca_key_)->ToPem();
  }

  static std::string Why(const absl::Status& status) {
    EXPECT_EQ(ReasonOf(status), "INVALID_STATUS_CERTIFICATE") << status;
    EXPECT_FALSE(NextStepOf(status).empty());
    return std::string(status.message());
  }
  std::string WhyNot(const std::string& certificate, const std::string& key,
                     absl::Time now = kNow) {
    return Why(ReadCustomServerCertificate(certificate, key, now).status());
  }

  const PrivateKey ca_key_ = *PrivateKey::Generate();
  const Certificate ca_ =
      *BuildCertificate(Spec("ca", std::nullopt), ca_key_.public_key(), nullptr, ca_key_);
  const PrivateKey key_ = *PrivateKey::Generate();
};

TEST_F(CustomCertificateTest, ServerWithItsIssuersIsAccepted) {
  const std::string chain = absl::StrCat("some words before\n", Leaf(), ca_.ToPem());
  for (const std::string& key : {PemOf(key_), std::string(key_.ToSec1Pem()->view())}) {
    const auto server = ReadCustomServerCertificate(chain, key, kNow);
    ASSERT_TRUE(server.ok()) << server.status();
    EXPECT_EQ(server->key_pem.view(), PemOf(key_));
    EXPECT_TRUE(server->chain_pem.starts_with("-----BEGIN CERTIFICATE"));
    EXPECT_EQ(ParseChain(server->chain_pem)->size(), 2u);
  }
}

TEST_F(CustomCertificateTest, ServesHostMatchesTheNamesOfTheCertificate) {
  CertificateSpec spec = Spec("leaf", Usage::kServer);
  spec.hosts = {"status.example", "192.0.2.1"};
  const std::string leaf = BuildCertificate(spec, key_.public_key(), &ca_, ca_key_)->ToPem();
  const auto server = ReadCustomServerCertificate(leaf, PemOf(key_), kNow);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_TRUE(ServesHost(*server, "status.example"));
  EXPECT_TRUE(ServesHost(*server, "192.0.2.1"));
  EXPECT_FALSE(ServesHost(*server, "example"));
  EXPECT_FALSE(ServesHost(*server, "192.0.2.2"));
}

TEST_F(CustomCertificateTest, CommonKindsOfKeysAreAccepted) {
  for (const EvpKey& key :
       {EvpKey(EVP_RSA_gen(2048)), EvpKey(EVP_EC_gen("P-521")), EvpKey(EVP_EC_gen("P-384")),
        EvpKey(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"))}) {
    const auto server = ReadCustomServerCertificate(SelfSigned(key.get()), PemOf(key.get()), kNow);
    EXPECT_TRUE(server.ok()) << server.status();
  }
  const EvpKey weak(EVP_RSA_gen(1024));
  EXPECT_NE(WhyNot(SelfSigned(weak.get()), PemOf(weak.get())).find("2048"), std::string::npos);
  const EvpKey odd(EVP_EC_gen("secp256k1"));
  EXPECT_NE(WhyNot(SelfSigned(odd.get()), PemOf(odd.get())).find("neither"), std::string::npos);
}

TEST_F(CustomCertificateTest, UnusableCertificateIsRefusedWithTheCause) {
  const std::string key = PemOf(key_);
  EXPECT_NE(WhyNot("", key).find("BEGIN CERTIFICATE"), std::string::npos);
  EXPECT_NE(WhyNot("rubbish", key).find("BEGIN CERTIFICATE"), std::string::npos);
  EXPECT_NE(WhyNot(Leaf(), "").find("not an unencrypted PEM private key"), std::string::npos);
  EXPECT_NE(WhyNot(Leaf(), Leaf()).find("not an unencrypted PEM private key"), std::string::npos);
  EXPECT_NE(WhyNot(Leaf(), PemOf(key_.get(), EVP_aes_128_cbc())).find("unencrypted"),
            std::string::npos);
  EXPECT_NE(WhyNot(Leaf(), PemOf(ca_key_)).find("do not belong together"), std::string::npos);
  EXPECT_NE(WhyNot(Leaf(), key, kNow + absl::Hours(2)).find("expired"), std::string::npos);
  EXPECT_NE(WhyNot(Leaf(), key, kNow - absl::Hours(2)).find("not valid before"), std::string::npos);
  EXPECT_NE(WhyNot(Leaf(Usage::kClient), key).find("not for a server"), std::string::npos);
  EXPECT_NE(WhyNot(Leaf() + Leaf(), key).find("did not issue"), std::string::npos);
  EXPECT_NE(WhyNot(std::string(kMaxCustomPem + 1, 'x'), key).find("64 KiB"), std::string::npos);
  EXPECT_NE(WhyNot(Leaf(), std::string(kMaxCustomPem + 1, 'x')).find("64 KiB"), std::string::npos);
}

TEST_F(CustomCertificateTest, ErrorContainsNoBytesOfTheKey) {
  const std::string key = PemOf(key_);
  const std::string secret = key.substr(30, 40);
  EXPECT_EQ(WhyNot(PemOf(key_), key).find(secret), std::string::npos);
  EXPECT_EQ(WhyNot(Leaf(), key.substr(0, key.size() / 2)).find(secret), std::string::npos);
}

TEST_F(CustomCertificateTest, ClientCaMustBeACaCertificate) {
  const auto taken = ReadCustomClientCas(ca_.ToPem() + PemOf(ca_key_), kNow);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(*taken, ca_.ToPem());  // without the other content of the text
  const auto why = [](const std::string& pem, absl::Time now) {
    return Why(ReadCustomClientCas(pem, now).status());
  };
  EXPECT_NE(why("", kNow).find("BEGIN CERTIFICATE"), std::string::npos);
  EXPECT_NE(why(Leaf(), kNow).find("not a CA certificate"), std::string::npos);
  EXPECT_NE(why(ca_.ToPem() + Leaf(), kNow).find("not a CA certificate"), std::string::npos);
  EXPECT_NE(why(ca_.ToPem(), kNow + absl::Hours(2)).find("expired"), std::string::npos);
}

}  // namespace
}  // namespace muster
