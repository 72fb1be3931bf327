#include "services/common/base/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/escaping.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

// OpenSSL fails here only without memory or without a working provider: nothing could be verified
// then.
void MustWork(int result) {
  if (result != 1) std::abort();
}

// Looked up once: each lookup takes locks in OpenSSL 3.
const EVP_MD* Method() {
  static const EVP_MD* const method = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return method;
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  MustWork(EVP_DigestInit_ex2(context_.get(), Method(), nullptr));
}

Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::Update(std::string_view data) {
  MustWork(EVP_DigestUpdate(context_.get(), data.data(), data.size()));
}

Sha256Digest Sha256::Finish() {
  Sha256Digest digest;
  MustWork(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr));
  MustWork(EVP_DigestInit_ex2(context_.get(), Method(), nullptr));
  return digest;
}

Sha256Digest Sha256::Of(std::string_view data) {
  Sha256 hash;
  hash.Update(data);
  return hash.Finish();
}

std::string DigestBytes(const Sha256Digest& digest) {
  return std::string(digest.begin(), digest.end());
}

std::string ToHex(std::string_view bytes) { return absl::BytesToHexString(ToAbsl(bytes)); }

std::string ToHex(const Sha256Digest& digest) { return ToHex(DigestBytes(digest)); }

std::optional<std::string> FromHex(std::string_view hex) {
  const bool valid = hex.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  if (!valid || hex.size() % 2 != 0) return std::nullopt;
  return absl::HexStringToBytes(ToAbsl(hex));
}

}  // namespace muster
