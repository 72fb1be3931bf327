#include "services/common/identity/openssl_support.h"

#include <openssl/crypto.h>
#include <openssl/err.h>

#include "absl/strings/str_cat.h"
#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"

namespace muster {

std::string DrainOpenSslErrors() {
  std::string text;
  while (const unsigned long code = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(code);
    absl::StrAppend(&text, text.empty() ? "" : ", ", reason != nullptr ? reason : "unknown error");
  }
  return text;
}

absl::Status OpenSslError(std::string_view what) {
  const std::string reasons = DrainOpenSslErrors();
  return errors::CryptoError(what, reasons.empty() ? "OpenSSL failed" : reasons);
}

BioPtr ReadBio(std::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string TakeBio(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  if (size <= 0) return {};
  std::string text(data, static_cast<size_t>(size));
  OPENSSL_cleanse(data, static_cast<size_t>(size));
  return text;
}

}  // namespace muster
