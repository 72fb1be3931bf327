// SHA-256, and digests as text.
#ifndef MUSTER_SERVICES_COMMON_BASE_SHA256_H_
#define MUSTER_SERVICES_COMMON_BASE_SHA256_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace muster {

inline constexpr size_t kSha256Size = 32;
using Sha256Digest = std::array<uint8_t, kSha256Size>;

// Computes the digest of bytes that arrive in pieces. Not thread-safe, but not bound to a thread.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();

  void Update(std::string_view data);

  // Returns the digest of all data so far, and starts again.
  Sha256Digest Finish();

  static Sha256Digest Of(std::string_view data);

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

// Returns the 32 bytes of a digest, as in messages.
std::string DigestBytes(const Sha256Digest& digest);

// Return lower-case hexadecimal.
std::string ToHex(std::string_view bytes);
std::string ToHex(const Sha256Digest& digest);

// Returns the bytes of a hexadecimal text in either case; nothing if it is not one.
std::optional<std::string> FromHex(std::string_view hex);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_SHA256_H_
