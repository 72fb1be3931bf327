#include "services/client/content_digest.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdlib>

#include "services/common/base/crc32c.h"

namespace muster::client {

void ContentDigest::Free::operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }

ContentDigest::ContentDigest() : sha256_(EVP_MD_CTX_new()) {
  // Only a lack of memory, or a cryptographic library without SHA-256, gets here.
  if (!sha256_ || EVP_DigestInit_ex(sha256_.get(), EVP_sha256(), nullptr) != 1) std::abort();
}

ContentDigest::~ContentDigest() = default;

void ContentDigest::Add(int64_t offset, std::string_view data) {
  const int64_t known = position_ - offset;
  if (known >= static_cast<int64_t>(data.size())) return;
  data.remove_prefix(static_cast<size_t>(std::max<int64_t>(known, 0)));
  if (EVP_DigestUpdate(sha256_.get(), data.data(), data.size()) != 1) std::abort();
  crc32c_ = ExtendCrc32c(crc32c_, data);
  position_ += static_cast<int64_t>(data.size());
}

std::string ContentDigest::Sha256() const {
  const std::unique_ptr<EVP_MD_CTX, Free> copy(EVP_MD_CTX_new());
  std::string digest(32, '\0');
  if (!copy || EVP_MD_CTX_copy_ex(copy.get(), sha256_.get()) != 1 ||
      EVP_DigestFinal_ex(copy.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr) !=
          1) {
    std::abort();
  }
  return digest;
}

}  // namespace muster::client
