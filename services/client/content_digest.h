// SHA-256 and CRC32C of a content that is read in order, perhaps with pieces read again.
#ifndef MUSTER_SERVICES_CLIENT_CONTENT_DIGEST_H_
#define MUSTER_SERVICES_CLIENT_CONTENT_DIGEST_H_

#include <openssl/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace muster::client {

// Not thread-safe.
class ContentDigest {
 public:
  ContentDigest();
  ~ContentDigest();

  // Adds the part of `data` after position(). `data` begins at `offset` <= position().
  void Add(int64_t offset, std::string_view data);

  // How many bytes were added.
  int64_t position() const { return position_; }

  // CRC32C of the bytes so far.
  uint32_t crc32c() const { return crc32c_; }

  // SHA-256 of the bytes so far: 32 bytes. More may be added after.
  std::string Sha256() const;

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const;
  };

  std::unique_ptr<EVP_MD_CTX, Free> sha256_;
  uint32_t crc32c_ = 0;
  int64_t position_ = 0;
};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_CONTENT_DIGEST_H_
