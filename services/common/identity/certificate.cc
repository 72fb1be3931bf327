#include "services/common/identity/certificate.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/identity.h"
#include "services/common/identity/openssl_support.h"

namespace muster {
namespace {

constexpr size_t kMaxChainPem = 256 * 1024;
constexpr size_t kMaxChainLength = 16;

using GeneralNamesPtr = OpenSslPtr<GENERAL_NAMES, GENERAL_NAMES_free>;
using StorePtr = OpenSslPtr<X509_STORE, X509_STORE_free>;
using StoreContextPtr = OpenSslPtr<X509_STORE_CTX, X509_STORE_CTX_free>;

struct StackFree {
  void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }
};
using StackPtr = std::unique_ptr<STACK_OF(X509), StackFree>;

absl::Time ToTime(const ASN1_TIME* time) {
  std::tm tm{};
  if (ASN1_TIME_to_tm(time, &tm) != 1) return absl::InfinitePast();
  return absl::FromTM(tm, absl::UTCTimeZone());
}

std::string Hex(const ASN1_OCTET_STRING* bytes) {
  if (bytes == nullptr) return {};
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(ASN1_STRING_get0_data(bytes)),
                        static_cast<size_t>(ASN1_STRING_length(bytes))));
}

int PurposeOf(Usage usage) {
  return usage == Usage::kServer ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT;
}

absl::Status VerifyError(const Certificate& leaf, int code) {
  const std::string what = absl::StrCat("the certificate ", leaf.Uri().value_or("without a URI"),
                                        " (serial ", leaf.Serial(), ")");
  switch (code) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return errors::CertificateExpired(what, leaf.NotAfter());
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return errors::CertificateNotYetValid(what, leaf.NotBefore());
    case X509_V_ERR_INVALID_PURPOSE:
      return errors::CertificateWrongUsage(what);
    default:
      return errors::CertificateUntrusted(what, X509_verify_cert_error_string(code));
  }
}

absl::Status VerifyPurpose(const Certificate& leaf, STACK_OF(X509) * intermediates,
                           X509_STORE* store, int purpose, absl::Time now) {
  const StoreContextPtr context(X509_STORE_CTX_new());
  if (context == nullptr ||
      X509_STORE_CTX_init(context.get(), store, leaf.get(), intermediates) != 1) {
    return OpenSslError("prepare the check of a certificate");
  }
  X509_VERIFY_PARAM* param = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(param, absl::ToTimeT(now));
  X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT);
  X509_STORE_CTX_set_purpose(context.get(), purpose);
  const bool ok = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  return ok ? absl::OkStatus() : VerifyError(leaf, X509_STORE_CTX_get_error(context.get()));
}

}  // namespace

Certificate Certificate::Adopt(X509* certificate) {
  return Certificate(std::shared_ptr<X509>(certificate, X509_free));
}

absl::StatusOr<Certificate> Certificate::FromPem(std::string_view pem) {
  ASSIGN_OR_RETURN(auto chain, ParseChain(pem));
  return chain.front();
}

std::string Certificate::ToPem() const {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || PEM_write_bio_X509(bio.get(), get()) != 1) return {};
  return TakeBio(bio.get());
}

absl::StatusOr<std::string> Certificate::Uri() const {
  const GeneralNamesPtr names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(get(), NID_subject_alt_name, nullptr, nullptr)));
  const ASN1_IA5STRING* uri = nullptr;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    if (uri != nullptr) return errors::CertificateWithoutIdentity("names more than one URI");
    uri = name->d.uniformResourceIdentifier;
  }
  if (uri == nullptr) return errors::CertificateWithoutIdentity("names no URI");
  std::string text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                   static_cast<size_t>(ASN1_STRING_length(uri)));
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; })) {
    return errors::CertificateWithoutIdentity(
        "names a URI with characters outside printable ASCII");
  }
  return text;
}

std::vector<std::string> Certificate::Hosts() const {
  const GeneralNamesPtr names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(get(), NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> hosts;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) {
      hosts.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                         static_cast<size_t>(ASN1_STRING_length(name->d.dNSName)));
    } else if (name->type == GEN_IPADD) {
      char text[INET6_ADDRSTRLEN] = "";
      const int family = ASN1_STRING_length(name->d.iPAddress) == 4 ? AF_INET : AF_INET6;
      if (inet_ntop(family, ASN1_STRING_get0_data(name->d.iPAddress), text, sizeof(text))) {
        hosts.emplace_back(text);
      }
    }
  }
  return hosts;
}

std::string Certificate::IssuerKeyId() const { return Hex(X509_get0_authority_key_id(get())); }

std::string Certificate::Serial() const { return Hex(X509_get0_serialNumber(get())); }

absl::Time Certificate::NotBefore() const { return ToTime(X509_get0_notBefore(get())); }

absl::Time Certificate::NotAfter() const { return ToTime(X509_get0_notAfter(get())); }

absl::StatusOr<PublicKey> Certificate::Key() const {
  EVP_PKEY* key = X509_get_pubkey(get());
  if (key == nullptr) return OpenSslError("read a certificate's key");
  return PublicKey::Adopt(key);
}

bool Certificate::Matches(const PrivateKey& key) const {
  EVP_PKEY* own = X509_get0_pubkey(get());
  return own != nullptr && EVP_PKEY_eq(own, key.get()) == 1;
}

bool Certificate::operator==(const Certificate& other) const {
  return X509_cmp(get(), other.get()) == 0;
}

absl::StatusOr<std::vector<Certificate>> ParseChain(std::string_view pem) {
  if (pem.size() > kMaxChainPem) return errors::CertificateMalformed("longer than 256 KiB");
  const BioPtr bio = ReadBio(pem);
  if (bio == nullptr) return OpenSslError("read a certificate");
  std::vector<Certificate> chain;
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    chain.push_back(Certificate::Adopt(certificate));
    if (chain.size() > kMaxChainLength)
      return errors::CertificateMalformed("more than 16 certificates");
  }
  const bool end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string reasons = DrainOpenSslErrors();
  if (!end) return errors::CertificateMalformed(reasons);
  if (chain.empty()) return errors::CertificateMalformed("no BEGIN CERTIFICATE found");
  return chain;
}

std::string ChainToPem(std::span<const Certificate> chain) {
  std::string pem;
  for (const Certificate& certificate : chain) pem += certificate.ToPem();
  return pem;
}

absl::Status VerifyChain(const Certificate& leaf, std::span<const Certificate> intermediates,
                         std::span<const Certificate> roots, Usage usage, absl::Time now) {
  const StorePtr store(X509_STORE_new());
  const StackPtr stack(sk_X509_new_null());
  if (store == nullptr || stack == nullptr) return OpenSslError("check a certificate");
  for (const Certificate& root : roots) X509_STORE_add_cert(store.get(), root.get());
  for (const Certificate& c : intermediates) sk_X509_push(stack.get(), c.get());
  absl::Status status = VerifyPurpose(leaf, stack.get(), store.get(), PurposeOf(usage), now);
  if (status.ok() && usage == Usage::kClientAndServer) {
    status = VerifyPurpose(leaf, stack.get(), store.get(), X509_PURPOSE_SSL_SERVER, now);
  }
  return status;
}

}  // namespace muster
