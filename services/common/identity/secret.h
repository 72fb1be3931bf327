// Text that must not remain in memory, such as a private key.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_SECRET_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_SECRET_H_

#include <openssl/crypto.h>

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Owns bytes and wipes them in its destructor. It can be moved and not copied, and has no output
// operator, so that no secret gets into a log by accident. Not thread-safe.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string bytes) : bytes_(bytes.begin(), bytes.end()) {
    OPENSSL_cleanse(bytes.data(), bytes.size());
  }
  Secret(Secret&& other) noexcept = default;
  Secret& operator=(Secret&& other) noexcept {
    bytes_.swap(other.bytes_);  // `other` wipes the earlier bytes
    return *this;
  }
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

  // Valid during the lifetime of this object. Code that copies the bytes must wipe its copy.
  std::string_view view() const { return {bytes_.data(), bytes_.size()}; }
  bool empty() const { return bytes_.empty(); }

 private:
  std::vector<char> bytes_;  // not a string: moving a short string would leave a copy behind
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_SECRET_H_
