#include "services/common/identity/key.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509.h>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/identity.h"
#include "services/common/identity/openssl_support.h"

namespace muster {
namespace {

constexpr size_t kMaxPem = 16 * 1024;

using DigestPtr = OpenSslPtr<EVP_MD_CTX, EVP_MD_CTX_free>;

absl::Status CheckCurve(EVP_PKEY* key) {
  char curve[64] = "";
  size_t size = 0;
  if (EVP_PKEY_is_a(key, "EC") == 1 &&
      EVP_PKEY_get_group_name(key, curve, sizeof(curve), &size) == 1) {
    const std::string_view name(curve, size);
    if (name == "prime256v1" || name == "secp384r1") return absl::OkStatus();
  }
  const char* type = EVP_PKEY_get0_type_name(key);
  return errors::KeyUnsupported(type != nullptr ? type : "unknown", std::string_view(curve));
}

// Prevents OpenSSL from asking for a password at the terminal.
int NoPassword(char*, int, int, void*) { return -1; }

}  // namespace

absl::StatusOr<PublicKey> PublicKey::Adopt(EVP_PKEY* key) {
  std::shared_ptr<EVP_PKEY> owned(key, EVP_PKEY_free);
  RETURN_IF_ERROR(CheckCurve(key));
  return PublicKey(std::move(owned));
}

absl::StatusOr<PublicKey> PublicKey::FromPem(std::string_view pem) {
  EVP_PKEY* key = nullptr;
  if (pem.size() <= kMaxPem) {
    const BioPtr bio = ReadBio(pem);
    if (bio != nullptr) key = PEM_read_bio_PUBKEY(bio.get(), nullptr, NoPassword, nullptr);
  }
  DrainOpenSslErrors();
  if (key == nullptr) {
    return errors::PublicKeyMalformed();
  }
  return Adopt(key);
}

absl::StatusOr<std::string> PublicKey::ToPem() const {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || PEM_write_bio_PUBKEY(bio.get(), get()) != 1) {
    return OpenSslError("write a public key");
  }
  return TakeBio(bio.get());
}

absl::StatusOr<std::string> PublicKey::Sha256() const {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(get(), &der);
  if (size <= 0) return OpenSslError("write a public key");
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(der, static_cast<size_t>(size), reinterpret_cast<unsigned char*>(digest.data()));
  OPENSSL_free(der);
  return digest;
}

bool PublicKey::operator==(const PublicKey& other) const {
  return EVP_PKEY_eq(get(), other.get()) == 1;
}

bool PublicKey::Verify(std::string_view message, std::string_view signature) const {
  const DigestPtr context(EVP_MD_CTX_new());
  const bool ok =
      context != nullptr &&
      EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, get()) == 1 &&
      EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()),
                       signature.size(), reinterpret_cast<const unsigned char*>(message.data()),
                       message.size()) == 1;
  DrainOpenSslErrors();
  return ok;
}

absl::StatusOr<PrivateKey> PrivateKey::Generate() {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  if (key == nullptr) return OpenSslError("make a P-256 key");
  return PrivateKey(std::shared_ptr<EVP_PKEY>(key, EVP_PKEY_free));
}

absl::StatusOr<PrivateKey> PrivateKey::FromPem(std::string_view pem) {
  EVP_PKEY* key = nullptr;
  if (pem.size() <= kMaxPem) {
    const BioPtr bio = ReadBio(pem);
    if (bio != nullptr) key = PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr);
  }
  const std::string reasons = DrainOpenSslErrors();
  if (key == nullptr) {
    return errors::PrivateKeyMalformed(reasons);
  }
  std::shared_ptr<EVP_PKEY> owned(key, EVP_PKEY_free);
  RETURN_IF_ERROR(CheckCurve(key));
  return PrivateKey(std::move(owned));
}

absl::StatusOr<std::string> PrivateKey::Sign(std::string_view message) const {
  const DigestPtr context(EVP_MD_CTX_new());
  size_t size = static_cast<size_t>(EVP_PKEY_get_size(get()));
  std::string signature(size, '\0');
  if (context == nullptr ||
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, get()) != 1 ||
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                     reinterpret_cast<const unsigned char*>(message.data()), message.size()) != 1) {
    return OpenSslError("sign with a key");
  }
  signature.resize(size);
  return signature;
}

absl::StatusOr<Secret> PrivateKey::ToPkcs8Pem() const {
  const BioPtr bio(BIO_new(BIO_s_secmem()));
  if (bio == nullptr ||
      PEM_write_bio_PKCS8PrivateKey(bio.get(), get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return OpenSslError("write a key as PKCS#8");
  }
  return Secret(TakeBio(bio.get()));
}

absl::StatusOr<Secret> PrivateKey::ToSec1Pem() const {
  const BioPtr bio(BIO_new(BIO_s_secmem()));
  if (bio == nullptr || PEM_write_bio_PrivateKey_traditional(bio.get(), get(), nullptr, nullptr, 0,
                                                             nullptr, nullptr) != 1) {
    return OpenSslError("write a key as SEC1");
  }
  return Secret(TakeBio(bio.get()));
}

}  // namespace muster
