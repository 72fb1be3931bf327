// Reads any text as PEM: certificates, keys and requests. An accepted chain is written and read as
// the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "services/common/base/utf8.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/key.h"
#include "services/common/identity/signing_request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view pem(reinterpret_cast<const char*>(data), size);
  if (const auto chain = muster::ParseChain(pem); chain.ok()) {
    if (chain->empty() || chain->size() > 16) std::abort();
    const auto again = muster::ParseChain(muster::ChainToPem(*chain));
    if (!again.ok() || *again != *chain) std::abort();
    for (const muster::Certificate& certificate : *chain) {
      if (const auto uri = certificate.Uri(); uri.ok()) {
        if (!muster::IsUtf8(*uri)) std::abort();
        if (const auto identity = muster::ParseOwnIdentity(*uri); identity.ok()) {
          const auto written = muster::ToUri(*identity);
          if (!written.ok() || *written != *uri) std::abort();
        }
      }
      (void)certificate.Hosts();
      (void)certificate.IssuerKeyId();
      (void)certificate.Serial();
      (void)certificate.Key();
      const absl::Time now = certificate.NotBefore();
      (void)muster::VerifyChain(certificate, *chain, *chain, muster::Usage::kClient, now);
    }
  }
  (void)muster::PrivateKey::FromPem(pem);
  (void)muster::PublicKey::FromPem(pem);
  (void)muster::VerifySigningRequest(pem);
  return 0;
}
