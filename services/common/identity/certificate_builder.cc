#include "services/common/identity/certificate_builder.h"

#include <arpa/inet.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"
#include "services/common/identity/openssl_support.h"

namespace muster {
namespace {

constexpr size_t kMaxCommonName = 64;  // X.520, ub-common-name

using BignumPtr = OpenSslPtr<BIGNUM, BN_free>;
using TimePtr = OpenSslPtr<ASN1_TIME, ASN1_TIME_free>;
using GeneralNamePtr = OpenSslPtr<GENERAL_NAME, GENERAL_NAME_free>;
using GeneralNamesPtr = OpenSslPtr<GENERAL_NAMES, GENERAL_NAMES_free>;
using SubtreePtr = OpenSslPtr<GENERAL_SUBTREE, GENERAL_SUBTREE_free>;
using ConstraintsPtr = OpenSslPtr<NAME_CONSTRAINTS, NAME_CONSTRAINTS_free>;
using BasicPtr = OpenSslPtr<BASIC_CONSTRAINTS, BASIC_CONSTRAINTS_free>;
using KeyIdPtr = OpenSslPtr<AUTHORITY_KEYID, AUTHORITY_KEYID_free>;
using OctetsPtr = OpenSslPtr<ASN1_OCTET_STRING, ASN1_OCTET_STRING_free>;
using BitsPtr = OpenSslPtr<ASN1_BIT_STRING, ASN1_BIT_STRING_free>;

struct ObjectStackFree {
  void operator()(STACK_OF(ASN1_OBJECT) * stack) const { sk_ASN1_OBJECT_free(stack); }
};
using ObjectStackPtr = std::unique_ptr<STACK_OF(ASN1_OBJECT), ObjectStackFree>;

constexpr bool kCritical = true;

bool Add(X509* certificate, int nid, void* value, bool critical) {
  return value != nullptr &&
         X509_add1_ext_i2d(certificate, nid, value, critical ? 1 : 0, X509V3_ADD_DEFAULT) == 1;
}

bool SetSerial(X509* certificate) {
  const BignumPtr number(BN_new());
  return number != nullptr &&
         BN_rand(number.get(), 128, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool SetValidity(X509* certificate, const CertificateSpec& spec) {
  const TimePtr begin(ASN1_TIME_set(nullptr, absl::ToTimeT(spec.not_before)));
  const TimePtr end(ASN1_TIME_set(nullptr, absl::ToTimeT(spec.not_after)));
  return begin != nullptr && end != nullptr && X509_set1_notBefore(certificate, begin.get()) == 1 &&
         X509_set1_notAfter(certificate, end.get()) == 1;
}

bool SetSubject(X509* certificate, std::string_view common_name) {
  const std::string cut(common_name.substr(0, kMaxCommonName));
  X509_NAME* name = X509_get_subject_name(certificate);
  const auto add = [&](const char* field, const std::string& value) {
    return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                      reinterpret_cast<const unsigned char*>(value.data()),
                                      static_cast<int>(value.size()), -1, 0) == 1;
  };
  return add("O", "Muster") && add("CN", cut);
}

GeneralNamePtr TextName(int type, const std::string& text) {
  GeneralNamePtr name(GENERAL_NAME_new());
  ASN1_IA5STRING* value = ASN1_IA5STRING_new();
  if (name == nullptr || value == nullptr ||
      ASN1_STRING_set(value, text.data(), static_cast<int>(text.size())) != 1) {
    ASN1_IA5STRING_free(value);
    return nullptr;
  }
  GENERAL_NAME_set0_value(name.get(), type, value);
  return name;
}

GeneralNamePtr HostName(const std::string& host) {
  OctetsPtr address(a2i_IPADDRESS(host.c_str()));
  if (address == nullptr) {
    DrainOpenSslErrors();
    return TextName(GEN_DNS, host);
  }
  GeneralNamePtr name(GENERAL_NAME_new());
  if (name != nullptr) GENERAL_NAME_set0_value(name.get(), GEN_IPADD, address.release());
  return name;
}

bool AddAlternativeNames(X509* certificate, const CertificateSpec& spec) {
  const GeneralNamesPtr names(sk_GENERAL_NAME_new_null());
  const auto push = [&](GeneralNamePtr name) {
    if (name == nullptr || sk_GENERAL_NAME_push(names.get(), name.get()) == 0) return false;
    static_cast<void>(name.release());  // the stack owns it now
    return true;
  };
  if (names == nullptr || !push(TextName(GEN_URI, spec.uri))) return false;
  for (const std::string& host : spec.hosts) {
    if (!push(HostName(host))) return false;
  }
  return Add(certificate, NID_subject_alt_name, names.get(), !kCritical);
}

bool AddKeyIds(X509* certificate, const Certificate* issuer) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const OctetsPtr id(ASN1_OCTET_STRING_new());
  // RFC 5280, 4.2.1.2, method 1: SHA-1 serves only as a label of the key.
  if (id == nullptr || X509_pubkey_digest(certificate, EVP_sha1(), digest, &size) != 1 ||
      ASN1_OCTET_STRING_set(id.get(), digest, static_cast<int>(size)) != 1 ||
      !Add(certificate, NID_subject_key_identifier, id.get(), !kCritical)) {
    return false;
  }
  if (issuer == nullptr) return true;
  const KeyIdPtr authority(AUTHORITY_KEYID_new());
  if (authority == nullptr) return false;
  authority->keyid = ASN1_OCTET_STRING_dup(X509_get0_subject_key_id(issuer->get()));
  return authority->keyid != nullptr &&
         Add(certificate, NID_authority_key_identifier, authority.get(), !kCritical);
}

bool AddKeyUsage(X509* certificate, std::initializer_list<int> bits) {
  const BitsPtr usage(ASN1_BIT_STRING_new());
  if (usage == nullptr) return false;
  for (const int bit : bits) {
    if (ASN1_BIT_STRING_set_bit(usage.get(), bit, 1) != 1) return false;
  }
  return Add(certificate, NID_key_usage, usage.get(), kCritical);
}

bool AddUriConstraint(X509* certificate, const std::string& host) {
  const ConstraintsPtr constraints(NAME_CONSTRAINTS_new());
  SubtreePtr subtree(GENERAL_SUBTREE_new());
  GeneralNamePtr base = TextName(GEN_URI, host);
  if (constraints == nullptr || subtree == nullptr || base == nullptr) return false;
  GENERAL_NAME_free(subtree->base);
  subtree->base = base.release();
  constraints->permittedSubtrees = sk_GENERAL_SUBTREE_new_null();
  if (sk_GENERAL_SUBTREE_push(constraints->permittedSubtrees, subtree.get()) == 0) return false;
  static_cast<void>(subtree.release());  // the stack owns it now
  return Add(certificate, NID_name_constraints, constraints.get(), kCritical);
}

bool AddAuthorityExtensions(X509* certificate, const CertificateSpec& spec) {
  const BasicPtr basic(BASIC_CONSTRAINTS_new());
  if (basic == nullptr) return false;
  basic->ca = 0xff;  // DER encodes true as this byte only, and Go rejects others
  basic->pathlen = ASN1_INTEGER_new();
  return basic->pathlen != nullptr && ASN1_INTEGER_set(basic->pathlen, spec.path_length) == 1 &&
         Add(certificate, NID_basic_constraints, basic.get(), kCritical) &&
         AddKeyUsage(certificate, {5, 6}) &&  // keyCertSign, cRLSign
         (spec.permitted_uri_host.empty() ||
          AddUriConstraint(certificate, spec.permitted_uri_host));
}

bool AddLeafExtensions(X509* certificate, Usage usage) {
  const BasicPtr basic(BASIC_CONSTRAINTS_new());
  const ObjectStackPtr purposes(sk_ASN1_OBJECT_new_null());
  if (basic == nullptr || purposes == nullptr) return false;
  // OBJ_nid2obj returns static objects, which the stack does not own.
  if (usage != Usage::kServer) {
    sk_ASN1_OBJECT_push(purposes.get(), OBJ_nid2obj(NID_client_auth));
  }
  if (usage != Usage::kClient) {
    sk_ASN1_OBJECT_push(purposes.get(), OBJ_nid2obj(NID_server_auth));
  }
  return Add(certificate, NID_basic_constraints, basic.get(), kCritical) &&
         AddKeyUsage(certificate, {0}) &&  // digitalSignature
         Add(certificate, NID_ext_key_usage, purposes.get(), !kCritical);
}

bool IsDnsName(std::string_view host) {
  if (host.empty() || host.size() > 253) return false;
  std::string_view label;
  for (size_t start = 0; start <= host.size(); start += label.size() + 1) {
    label = host.substr(start, host.find('.', start) - start);
    if (label.empty() || label.size() > 63 || label.front() == '-' || label.back() == '-' ||
        !std::all_of(label.begin(), label.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_'; })) {
      return false;
    }
  }
  // Rejects a mistyped address: its last label has only digits.
  return !std::all_of(label.begin(), label.end(), absl::ascii_isdigit);
}

}  // namespace

absl::Status CheckHost(std::string_view host) {
  const OctetsPtr address(a2i_IPADDRESS(std::string(host).c_str()));
  DrainOpenSslErrors();
  if ((address != nullptr && host.find('\0') == std::string_view::npos) || IsDnsName(host)) {
    return absl::OkStatus();
  }
  return errors::InvalidHost(host.substr(0, 100));
}

std::string CanonicalHost(const std::string& host) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  std::array<unsigned char, sizeof(in6_addr)> address{};
  for (const int family : {AF_INET, AF_INET6}) {
    if (inet_pton(family, host.c_str(), address.data()) == 1 &&
        inet_ntop(family, address.data(), text.data(), text.size()) != nullptr) {
      return text.data();
    }
  }
  return host;
}

absl::StatusOr<Certificate> BuildCertificate(const CertificateSpec& spec, EVP_PKEY* subject,
                                             const Certificate* issuer,
                                             const PrivateKey& issuer_key) {
  for (const std::string& host : spec.hosts) {
    RETURN_IF_ERROR(CheckHost(host));
  }
  X509* raw = X509_new();
  if (raw == nullptr) return OpenSslError("make a certificate");
  Certificate certificate = Certificate::Adopt(raw);
  const bool built =
      X509_set_version(raw, X509_VERSION_3) == 1 && SetSerial(raw) && SetValidity(raw, spec) &&
      SetSubject(raw, spec.common_name) && X509_set_pubkey(raw, subject) == 1 &&
      X509_set_issuer_name(raw, X509_get_subject_name(issuer ? issuer->get() : raw)) == 1 &&
      (spec.usage ? AddLeafExtensions(raw, *spec.usage) : AddAuthorityExtensions(raw, spec)) &&
      AddKeyIds(raw, issuer) && AddAlternativeNames(raw, spec) &&
      X509_sign(raw, issuer_key.get(), EVP_sha256()) != 0;
  if (!built) return OpenSslError(absl::StrCat("make the certificate for ", spec.uri));
  return certificate;
}

}  // namespace muster
