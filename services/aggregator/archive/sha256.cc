#include "services/aggregator/archive/sha256.h"

#include <openssl/evp.h>

#include <cstdlib>

#include "absl/strings/escaping.h"

namespace muster {
namespace {

// Of the calls below none fails but for want of memory, which ends the process anyway.
void Require(int ok) {
  if (ok != 1) std::abort();
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  Require(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
}

Sha256::~Sha256() = default;

void Sha256::Update(std::string_view data) {
  Require(EVP_DigestUpdate(context_.get(), data.data(), data.size()));
}

std::string Sha256::Finish() {
  std::string digest(32, '\0');
  Require(
      EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr));
  Require(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
  return digest;
}

std::string Sha256::FinishHex() { return absl::BytesToHexString(Finish()); }

}  // namespace muster
