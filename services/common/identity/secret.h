// Text that must not stay in memory: a private key's PEM, a key-encryption key.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_SECRET_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_SECRET_H_

#include <openssl/crypto.h>

#include <string>
#include <string_view>
#include <utility>

namespace muster {

// Owns bytes and wipes them when it goes. Moves, never copies, has no output operator, so that a
// secret does not end up in a log by accident. Not thread-safe.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string bytes) : bytes_(std::move(bytes)) {}
  Secret(Secret&& other) noexcept : bytes_(other.bytes_) { other.Wipe(); }
  Secret& operator=(Secret&& other) noexcept {
    if (this != &other) {
      Wipe();
      bytes_ = other.bytes_;
      other.Wipe();
    }
    return *this;
  }
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret() { Wipe(); }

  // Valid as long as this object. Whoever copies it takes over the duty to wipe.
  std::string_view view() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }

 private:
  void Wipe() {
    OPENSSL_cleanse(bytes_.data(), bytes_.size());
    bytes_.clear();
  }

  std::string bytes_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_SECRET_H_
