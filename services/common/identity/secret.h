// Text that must not stay in memory: a private key's PEM, a key-encryption key.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_SECRET_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_SECRET_H_

#include <openssl/crypto.h>

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Owns bytes and wipes them when it goes. Moves, never copies, has no output operator, so that a
// secret does not end up in a log by accident. Not thread-safe.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string bytes) : bytes_(bytes.begin(), bytes.end()) {
    OPENSSL_cleanse(bytes.data(), bytes.size());
  }
  Secret(Secret&& other) noexcept = default;
  Secret& operator=(Secret&& other) noexcept {
    bytes_.swap(other.bytes_);  // and `other` wipes what was here
    return *this;
  }
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

  // Valid as long as this object. Whoever copies it takes over the duty to wipe.
  std::string_view view() const { return {bytes_.data(), bytes_.size()}; }
  bool empty() const { return bytes_.empty(); }

 private:
  std::vector<char> bytes_;  // no string: a short one would leave a copy where it is moved from
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_SECRET_H_
