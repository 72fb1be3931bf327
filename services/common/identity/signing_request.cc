#include "services/common/identity/signing_request.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"
#include "services/common/identity/openssl_support.h"

namespace muster {
namespace {

constexpr size_t kMaxPem = 16 * 1024;

using RequestPtr = OpenSslPtr<X509_REQ, X509_REQ_free>;

}  // namespace

absl::StatusOr<std::string> CreateSigningRequest(const PrivateKey& key) {
  const RequestPtr request(X509_REQ_new());
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (request == nullptr || bio == nullptr ||
      X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) != 1 ||
      X509_REQ_set_pubkey(request.get(), key.get()) != 1 ||
      X509_REQ_sign(request.get(), key.get(), EVP_sha256()) == 0 ||
      PEM_write_bio_X509_REQ(bio.get(), request.get()) != 1) {
    return OpenSslError("make a signing request");
  }
  return TakeBio(bio.get());
}

absl::StatusOr<PublicKey> VerifySigningRequest(std::string_view pem) {
  RequestPtr request;
  if (pem.size() <= kMaxPem) {
    const BioPtr bio = ReadBio(pem);
    if (bio != nullptr) {
      request.reset(PEM_read_bio_X509_REQ(bio.get(), nullptr, nullptr, nullptr));
    }
  }
  EVP_PKEY* key = request != nullptr ? X509_REQ_get_pubkey(request.get()) : nullptr;
  ERR_clear_error();
  if (key == nullptr) {
    return errors::InvalidCsr("the text is not a certificate signing request");
  }
  auto adopted = PublicKey::Adopt(key);
  if (!adopted.ok()) return errors::InvalidCsr(ToStd(adopted.status().message()));
  const bool proven = X509_REQ_verify(request.get(), key) == 1;
  ERR_clear_error();
  if (!proven) {
    return errors::InvalidCsr("the request is not signed with its own key");
  }
  return adopted;
}

}  // namespace muster
