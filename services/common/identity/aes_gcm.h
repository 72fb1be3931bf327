// AES-GCM.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_AES_GCM_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_AES_GCM_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "services/common/identity/secret.h"

namespace muster {

inline constexpr size_t kGcmNonceSize = 12;
inline constexpr size_t kGcmTagSize = 16;

// Returns the ciphertext and its tag. The key has 16 or 32 bytes, the nonce kGcmNonceSize; a nonce
// must not be used twice with one key. Nothing if OpenSSL fails.
std::optional<std::string> GcmSeal(std::string_view key, std::string_view nonce,
                                   std::string_view associated, std::string_view plain);

// Returns the plaintext of what GcmSeal returned for the same key, nonce and associated data.
// Nothing for anything else.
std::optional<Secret> GcmOpen(std::string_view key, std::string_view nonce,
                              std::string_view associated, std::string_view sealed);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_AES_GCM_H_
