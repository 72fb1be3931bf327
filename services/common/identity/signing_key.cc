#include "services/common/identity/signing_key.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"
#include "services/common/identity/openssl_support.h"

namespace muster {
namespace {

constexpr size_t kMaxPem = 16 * 1024;
constexpr size_t kSignatureSize = 64;

using DigestPtr = OpenSslPtr<EVP_MD_CTX, EVP_MD_CTX_free>;

// Prevents OpenSSL from asking for a password at the terminal.
int NoPassword(char*, int, int, void*) { return -1; }

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

absl::StatusOr<std::shared_ptr<EVP_PKEY>> Own(EVP_PKEY* key) {
  DrainOpenSslErrors();
  if (key == nullptr) return errors::InvalidSigningKey("no unencrypted key in PEM can be read");
  std::shared_ptr<EVP_PKEY> owned(key, EVP_PKEY_free);
  if (EVP_PKEY_is_a(key, "ED25519") != 1)
    return errors::InvalidSigningKey("it is not an Ed25519 key");
  return owned;
}

}  // namespace

absl::StatusOr<SigningPublicKey> SigningPublicKey::FromPem(std::string_view pem) {
  if (pem.size() > kMaxPem) return errors::InvalidSigningKey("it is longer than 16 KiB");
  const BioPtr bio = ReadBio(pem);
  ASSIGN_OR_RETURN(
      auto key,
      Own(bio == nullptr ? nullptr : PEM_read_bio_PUBKEY(bio.get(), nullptr, NoPassword, nullptr)));
  return SigningPublicKey(std::move(key));
}

absl::StatusOr<SigningPublicKey> SigningPublicKey::Of(const Certificate& certificate) {
  ASSIGN_OR_RETURN(auto key, Own(X509_get_pubkey(certificate.get())));
  return SigningPublicKey(std::move(key));
}

absl::StatusOr<std::string> SigningPublicKey::ToPem() const {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || PEM_write_bio_PUBKEY(bio.get(), get()) != 1) {
    return OpenSslError("write a public key");
  }
  return TakeBio(bio.get());
}

bool SigningPublicKey::Verify(std::string_view message, std::string_view signature) const {
  const DigestPtr context(EVP_MD_CTX_new());
  const bool ok = signature.size() == kSignatureSize && context != nullptr &&
                  EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, get()) == 1 &&
                  EVP_DigestVerify(context.get(), Bytes(signature), signature.size(),
                                   Bytes(message), message.size()) == 1;
  DrainOpenSslErrors();
  return ok;
}

absl::StatusOr<SigningKey> SigningKey::Generate() {
  EVP_PKEY* key = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
  if (key == nullptr) return OpenSslError("make an Ed25519 key");
  return SigningKey(std::shared_ptr<EVP_PKEY>(key, EVP_PKEY_free));
}

absl::StatusOr<SigningKey> SigningKey::FromPem(std::string_view pem) {
  if (pem.size() > kMaxPem) return errors::InvalidSigningKey("it is longer than 16 KiB");
  const BioPtr bio = ReadBio(pem);
  ASSIGN_OR_RETURN(auto key, Own(bio == nullptr ? nullptr
                                                : PEM_read_bio_PrivateKey(bio.get(), nullptr,
                                                                          NoPassword, nullptr)));
  return SigningKey(std::move(key));
}

absl::StatusOr<Secret> SigningKey::ToPem() const {
  const BioPtr bio(BIO_new(BIO_s_secmem()));
  if (bio == nullptr || PEM_write_bio_PKCS8PrivateKey(bio.get(), key_.get(), nullptr, nullptr, 0,
                                                      nullptr, nullptr) != 1) {
    return OpenSslError("write a key as PKCS#8");
  }
  return Secret(TakeBio(bio.get()));
}

absl::StatusOr<std::string> SigningKey::Sign(std::string_view message) const {
  const DigestPtr context(EVP_MD_CTX_new());
  std::string signature(kSignatureSize, '\0');
  size_t size = signature.size();
  if (context == nullptr ||
      EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) != 1 ||
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                     Bytes(message), message.size()) != 1) {
    return OpenSslError("sign with a key");
  }
  signature.resize(size);
  return signature;
}

}  // namespace muster
