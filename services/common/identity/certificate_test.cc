#include "services/common/identity/certificate.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/identity/certificate_builder.h"
#include "services/common/identity/openssl_support.h"
#include "services/common/identity/signing_request.h"

namespace muster {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

PrivateKey NewKey() { return *PrivateKey::Generate(); }

Certificate SelfSigned(const PrivateKey& key, const std::string& uri) {
  CertificateSpec spec;
  spec.common_name = "x";
  spec.uri = uri;
  spec.not_before = kNow - absl::Hours(1);
  spec.not_after = kNow + absl::Hours(1);
  return *BuildCertificate(spec, key.public_key(), nullptr, key);
}

TEST(KeyTest, BothPemFormsCanBeReadAgain) {
  const PrivateKey key = NewKey();
  const auto pkcs8 = key.ToPkcs8Pem();
  const auto sec1 = key.ToSec1Pem();
  ASSERT_TRUE(pkcs8.ok() && sec1.ok());
  EXPECT_TRUE(pkcs8->view().starts_with("-----BEGIN PRIVATE KEY-----\n"));
  EXPECT_TRUE(sec1->view().starts_with("-----BEGIN EC PRIVATE KEY-----\n"));
  EXPECT_EQ(sec1->view().find("PARAMETERS"), std::string_view::npos);
  EXPECT_EQ(PrivateKey::FromPem(pkcs8->view())->public_key(), key.public_key());
  EXPECT_EQ(PrivateKey::FromPem(sec1->view())->public_key(), key.public_key());
  EXPECT_FALSE(NewKey().public_key() == key.public_key());
}

TEST(KeyTest, MalformedKeyIsRefused) {
  for (const std::string& bad :
       {std::string(), std::string("-----BEGIN PRIVATE KEY-----\n"),
        SelfSigned(NewKey(), "spiffe://x").ToPem(), std::string(20'000, 'x')}) {
    EXPECT_EQ(ReasonOf(PrivateKey::FromPem(bad).status()), "KEY_MALFORMED");
  }
}

std::string PemOf(EVP_PKEY* key, const EVP_CIPHER* cipher) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PKCS8PrivateKey(bio.get(), key, cipher, "secret", cipher != nullptr ? 6 : 0,
                                nullptr, nullptr);
  return TakeBio(bio.get());
}

TEST(KeyTest, OtherKindsAndEncryptedKeysAreRefusedWithoutPrompt) {
  using KeyPtr = OpenSslPtr<EVP_PKEY, EVP_PKEY_free>;
  const KeyPtr p521(EVP_EC_gen("P-521"));
  const KeyPtr ed25519(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  EXPECT_EQ(ReasonOf(PrivateKey::FromPem(PemOf(p521.get(), nullptr)).status()), "KEY_UNSUPPORTED");
  EXPECT_EQ(ReasonOf(PrivateKey::FromPem(PemOf(ed25519.get(), nullptr)).status()),
            "KEY_UNSUPPORTED");
  EXPECT_EQ(ReasonOf(PrivateKey::FromPem(PemOf(NewKey().get(), EVP_aes_256_cbc())).status()),
            "KEY_MALFORMED");
}

TEST(KeyTest, P384IsAccepted) {
  const OpenSslPtr<EVP_PKEY, EVP_PKEY_free> key(EVP_EC_gen("P-384"));
  EXPECT_TRUE(PrivateKey::FromPem(PemOf(key.get(), nullptr)).ok());
}

TEST(KeyTest, SignatureIsVerifiedByThePublicKey) {
  const PrivateKey key = NewKey();
  const auto signature = key.Sign("muster-result-v1\n");
  ASSERT_TRUE(signature.ok()) << signature.status();
  EXPECT_TRUE(key.public_key().Verify("muster-result-v1\n", *signature));
  EXPECT_FALSE(key.public_key().Verify("muster-result-v2\n", *signature));
  EXPECT_FALSE(NewKey().public_key().Verify("muster-result-v1\n", *signature));
  EXPECT_FALSE(key.public_key().Verify("muster-result-v1\n", ""));
}

TEST(SecretTest, MoveLeavesNoCopy) {
  Secret secret(std::string("short"));
  const Secret moved = std::move(secret);
  EXPECT_EQ(moved.view(), "short");
  EXPECT_TRUE(secret.empty());  // NOLINT(bugprone-use-after-move): that is what is tested
}

TEST(CertificateTest, AccessorsReturnTheBuiltValues) {
  const PrivateKey key = NewKey();
  const Certificate certificate = SelfSigned(key, "spiffe://fleet.muster");
  EXPECT_EQ(*certificate.Uri(), "spiffe://fleet.muster");
  EXPECT_EQ(certificate.NotBefore(), kNow - absl::Hours(1));
  EXPECT_EQ(certificate.NotAfter(), kNow + absl::Hours(1));
  EXPECT_EQ(certificate.IssuerKeyId(), "");
  EXPECT_TRUE(certificate.Matches(key));
  EXPECT_FALSE(certificate.Matches(NewKey()));
  EXPECT_EQ(*certificate.Key(), key.public_key());
  EXPECT_EQ(*Certificate::FromPem(certificate.ToPem()), certificate);
  // The serial number distinguishes two certificates of one key.
  const Certificate again = SelfSigned(key, "spiffe://fleet.muster");
  EXPECT_NE(again.Serial(), certificate.Serial());
  EXPECT_GE(again.Serial().size(), 24u);
  EXPECT_FALSE(again == certificate);
}

// Returns a certificate whose alternative names are exactly `text` in OpenSSL's configuration
// syntax.
Certificate WithNames(const char* text) {
  const PrivateKey key = NewKey();
  const Certificate certificate = SelfSigned(key, "spiffe://x");
  X509* raw = certificate.get();
  X509_EXTENSION_free(X509_delete_ext(raw, X509_get_ext_by_NID(raw, NID_subject_alt_name, -1)));
  if (text != nullptr) {
    X509_EXTENSION* names = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, text);
    X509_add_ext(raw, names, -1);
    X509_EXTENSION_free(names);
  }
  X509_sign(raw, key.get(), EVP_sha256());
  return *Certificate::FromPem(certificate.ToPem());
}

TEST(CertificateTest, CertificateWithoutExactlyOneUriIsRefused) {
  EXPECT_EQ(*WithNames("DNS:a,URI:spiffe://f/user/a,IP:10.0.0.1").Uri(), "spiffe://f/user/a");
  for (const char* names : {"URI:spiffe://f/user/a,URI:spiffe://f/user/b",
                            "URI:spiffe://f/user/a,URI:spiffe://f/user/a", "DNS:spiffe",
                            "URI:spiffe://f/user/a b", static_cast<const char*>(nullptr)}) {
    EXPECT_EQ(ReasonOf(WithNames(names).Uri().status()), "CERTIFICATE_WITHOUT_IDENTITY");
  }
}

TEST(CertificateTest, ParseChainKeepsTheOrderAndLimits) {
  const std::string a = SelfSigned(NewKey(), "spiffe://a").ToPem();
  const std::string b = SelfSigned(NewKey(), "spiffe://b").ToPem();
  const auto chain = ParseChain("leaf:\n" + a + "\nissuer:\n" + b);
  ASSERT_TRUE(chain.ok()) << chain.status();
  ASSERT_EQ(chain->size(), 2u);
  EXPECT_EQ(ChainToPem(*chain), a + b);
  EXPECT_EQ(*(*chain)[1].Uri(), "spiffe://b");

  std::string many;
  for (int i = 0; i < 17; ++i) many += a;
  for (const std::string& bad :
       {std::string(), std::string("hello"), a.substr(0, a.size() / 2), a + b.substr(0, 200), many,
        std::string("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        std::string(300'000, ' ')}) {
    EXPECT_EQ(ReasonOf(ParseChain(bad).status()), "CERTIFICATE_MALFORMED") << bad.substr(0, 40);
  }
}

TEST(SigningRequestTest, RequestProvesPossessionOfItsKey) {
  const PrivateKey key = NewKey();
  const auto request = CreateSigningRequest(key);
  ASSERT_TRUE(request.ok()) << request.status();
  const auto asked = VerifySigningRequest(*request);
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ(*asked, key.public_key());
}

TEST(SigningRequestTest, RequestForAnotherKeyIsRefused) {
  const OpenSslPtr<X509_REQ, X509_REQ_free> request(X509_REQ_new());
  X509_REQ_set_pubkey(request.get(), NewKey().get());
  X509_REQ_sign(request.get(), NewKey().get(), EVP_sha256());
  const BioPtr bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509_REQ(bio.get(), request.get());
  EXPECT_EQ(ReasonOf(VerifySigningRequest(TakeBio(bio.get())).status()), "INVALID_CSR");
}

TEST(SigningRequestTest, MalformedRequestIsRefused) {
  for (const std::string& bad :
       {std::string(), std::string(20'000, 'x'), SelfSigned(NewKey(), "spiffe://x").ToPem()}) {
    EXPECT_EQ(ReasonOf(VerifySigningRequest(bad).status()), "INVALID_CSR");
  }
}

TEST(HostTest, NamesAndAddresses) {
  for (const char* good : {"localhost", "a.example.com", "127.0.0.1", "::1", "fe80::1", "host_1"}) {
    EXPECT_TRUE(CheckHost(good).ok()) << good;
  }
  for (const char* bad : {"", "a b", "*.example.com", "[::1]", "host:80", "1.2.3", "10.0.0.256",
                          "-a", "a..b", "a/b", "\xc3\xa4"}) {
    EXPECT_EQ(ReasonOf(CheckHost(bad)), "INVALID_HOST") << bad;
  }
}

}  // namespace
}  // namespace muster
