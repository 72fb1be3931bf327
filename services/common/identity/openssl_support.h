// Ownership and errors of OpenSSL objects, only for the .cc files of this folder.
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

// Returns INTERNAL (CRYPTO_ERROR) with "what: <OpenSSL's errors>". Empties the error queue of this
// thread.
absl::Status OpenSslError(std::string_view what);

// Returns the queued OpenSSL errors of this thread as text, and empties the queue.
std::string DrainOpenSslErrors();

// Returns a read-only view of `text` for PEM readers; null if memory is exhausted.
BioPtr ReadBio(std::string_view text);

// Returns the content of a memory BIO, and wipes the BIO's own copy.
std::string TakeBio(BIO* bio);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_OPENSSL_SUPPORT_H_
