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

// The digest of bytes that arrive in pieces. Not thread-safe; one piece may be hashed on another
// thread than the last.
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

// The digest as protos carry it: 32 bytes.
std::string DigestBytes(const Sha256Digest& digest);

// Lower-case hexadecimal.
std::string ToHex(std::string_view bytes);
std::string ToHex(const Sha256Digest& digest);

// The bytes of a hexadecimal text in either case; empty if it is none or has an odd length.
std::optional<std::string> FromHex(std::string_view hex);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_SHA256_H_
