// Ownership and errors of OpenSSL objects; for this folder's .cc files only.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_OPENSSL_SUPPORT_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_OPENSSL_SUPPORT_H_

#include <openssl/bio.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace muster {

// Deletes with an OpenSSL ..._free function.
template <auto Free>
struct OpenSslDeleter {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};

template <class T, auto Free>
using OpenSslPtr = std::unique_ptr<T, OpenSslDeleter<Free>>;

using BioPtr = OpenSslPtr<BIO, BIO_free_all>;

// INTERNAL, reason CRYPTO_ERROR: "what: <OpenSSL's reasons>". Empties this thread's error queue.
absl::Status OpenSslError(std::string_view what);

// This thread's queued OpenSSL reasons as text; empties the queue.
std::string DrainOpenSslErrors();

// A read-only view of `text` for PEM readers. Null if memory ran out.
BioPtr ReadBio(std::string_view text);

// What was written to a memory BIO. Wipes the BIO's own copy.
std::string TakeBio(BIO* bio);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_OPENSSL_SUPPORT_H_
