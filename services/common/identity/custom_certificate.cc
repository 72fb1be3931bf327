#include "services/common/identity/custom_certificate.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/openssl_support.h"

namespace muster {
namespace {

constexpr int kMinRsaBits = 2048;

using KeyPtr = OpenSslPtr<EVP_PKEY, EVP_PKEY_free>;

// Prevents OpenSSL from asking for a password at the terminal.
int NoPassword(char*, int, int, void*) { return -1; }

bool IsSupported(EVP_PKEY* key) {
  if (EVP_PKEY_is_a(key, "RSA") == 1) return EVP_PKEY_get_bits(key) >= kMinRsaBits;
  if (EVP_PKEY_is_a(key, "ED25519") == 1) return true;
  char curve[64] = "";
  size_t size = 0;
  if (EVP_PKEY_is_a(key, "EC") != 1 ||
      EVP_PKEY_get_group_name(key, curve, sizeof(curve), &size) != 1) {
    return false;
  }
  const std::string_view name(curve, size);
  return name == "prime256v1" || name == "secp384r1" || name == "secp521r1";
}

absl::StatusOr<KeyPtr> ReadKey(std::string_view pem) {
  if (pem.size() > kMaxCustomPem)
    return errors::InvalidStatusCertificate("the key is longer than 64 KiB");
  const BioPtr bio = ReadBio(pem);
  KeyPtr key(bio == nullptr ? nullptr
                            : PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  DrainOpenSslErrors();
  if (key == nullptr)
    return errors::InvalidStatusCertificate("the key is not an unencrypted PEM private key");
  if (!IsSupported(key.get())) {
    return errors::InvalidStatusCertificate(
        "the key is neither RSA of 2048 bits or more, P-256, P-384, P-521 nor Ed25519");
  }
  return key;
}

absl::StatusOr<Secret> ToPkcs8(EVP_PKEY* key) {
  const BioPtr bio(BIO_new(BIO_s_secmem()));
  if (bio == nullptr ||
      PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return OpenSslError("write a key as PKCS#8");
  }
  return Secret(TakeBio(bio.get()));
}

absl::StatusOr<std::vector<Certificate>> ReadChain(std::string_view what, std::string_view pem,
                                                   absl::Time now) {
  if (pem.size() > kMaxCustomPem) {
    return errors::InvalidStatusCertificate(
        absl::StrCat("the ", ToAbsl(what), " is longer than 64 KiB"));
  }
  auto chain = ParseChain(pem);
  if (!chain.ok()) {
    return errors::InvalidStatusCertificate(
        absl::StrCat("the ", ToAbsl(what), " cannot be read: ", chain.status().message()));
  }
  for (const Certificate& certificate : *chain) {
    if (certificate.NotAfter() <= now) {
      return errors::InvalidStatusCertificate(
          absl::StrCat("the ", ToAbsl(what), " expired at ",
                       absl::FormatTime(certificate.NotAfter(), absl::UTCTimeZone())));
    }
    if (certificate.NotBefore() > now) {
      return errors::InvalidStatusCertificate(
          absl::StrCat("the ", ToAbsl(what), " is not valid before ",
                       absl::FormatTime(certificate.NotBefore(), absl::UTCTimeZone())));
    }
  }
  return chain;
}

}  // namespace

absl::StatusOr<CustomServerCertificate> ReadCustomServerCertificate(
    std::string_view certificate_pem, std::string_view key_pem, absl::Time now) {
  ASSIGN_OR_RETURN(const auto chain, ReadChain("certificate", certificate_pem, now));
  ASSIGN_OR_RETURN(const auto key, ReadKey(key_pem));
  X509* leaf = chain.front().get();
  EVP_PKEY* certified = X509_get0_pubkey(leaf);
  if (certified == nullptr || EVP_PKEY_eq(certified, key.get()) != 1) {
    DrainOpenSslErrors();
    return errors::InvalidStatusCertificate("the certificate and the key do not belong together");
  }
  if (X509_check_purpose(leaf, X509_PURPOSE_SSL_SERVER, 0) != 1) {
    return errors::InvalidStatusCertificate("the certificate is not for a server");
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    if (X509_check_issued(chain[i].get(), chain[i - 1].get()) != X509_V_OK) {
      return errors::InvalidStatusCertificate(
          absl::StrCat("certificate ", i + 1, " did not issue the one before it"));
    }
  }
  ASSIGN_OR_RETURN(auto pkcs8, ToPkcs8(key.get()));
  return CustomServerCertificate{ChainToPem(chain), std::move(pkcs8)};
}

bool ServesHost(const CustomServerCertificate& server, const std::string& host) {
  const auto leaf = Certificate::FromPem(server.chain_pem);
  return leaf.ok() && (X509_check_ip_asc(leaf->get(), host.c_str(), 0) == 1 ||
                       X509_check_host(leaf->get(), host.data(), host.size(), 0, nullptr) == 1);
}

absl::StatusOr<std::string> ReadCustomClientCas(std::string_view pem, absl::Time now) {
  ASSIGN_OR_RETURN(const auto chain, ReadChain("client authority", pem, now));
  for (const Certificate& certificate : chain) {
    if (X509_check_ca(certificate.get()) != 1) {
      return errors::InvalidStatusCertificate("the client CA is not a CA certificate");
    }
  }
  return ChainToPem(chain);
}

}  // namespace muster
