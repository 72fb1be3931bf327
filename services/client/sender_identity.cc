#include "services/client/sender_identity.h"

#include <utility>

#include "services/common/base/strings.h"
#include "services/common/errors/client.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/result_signature.h"

namespace muster::client {
SenderIdentity::SenderIdentity(PrivateKey key, std::string chain_pem, Identity identity,
                               absl::Time not_after)
    : key_(std::move(key)),
      chain_pem_(std::move(chain_pem)),
      identity_(std::move(identity)),
      not_after_(not_after) {}

absl::StatusOr<SenderIdentity> SenderIdentity::Load(std::string_view chain_pem,
                                                    std::string_view key_pem, absl::Time now) {
  if (chain_pem.empty()) return errors::ConfigInvalid("client_cert", "", "it is missing");
  if (key_pem.empty()) return errors::ConfigInvalid("client_key", "", "it is missing");
  auto chain = ParseChain(chain_pem);
  if (!chain.ok()) return errors::ConfigInvalid("client_cert", "", ToStd(chain.status().message()));
  auto key = PrivateKey::FromPem(key_pem);
  if (!key.ok()) return errors::ConfigInvalid("client_key", "", ToStd(key.status().message()));
  const Certificate& leaf = chain->front();
  if (!leaf.Matches(*key)) {
    return errors::ConfigInvalid("client_key", "",
                                 "it does not belong to the first certificate of client_cert");
  }
  if (leaf.NotAfter() <= now) return errors::CertificateEnded(leaf.NotAfter());
  auto uri = leaf.Uri();
  if (!uri.ok()) return errors::ConfigInvalid("client_cert", "", ToStd(uri.status().message()));
  auto identity = ParseOwnIdentity(*uri);
  if (!identity.ok())
    return errors::ConfigInvalid("client_cert", "", ToStd(identity.status().message()));
  return SenderIdentity(*std::move(key), std::string(chain_pem), *std::move(identity),
                        leaf.NotAfter());
}

absl::StatusOr<std::string> SenderIdentity::Sign(const ResultInfo& info, int64_t size,
                                                 std::string_view sha256) const {
  return SignResult(key_, {.run = info.run,
                           .plugin = info.plugin,
                           .node = info.node,
                           .attempt = info.attempt,
                           .size = size,
                           .sha256 = std::string(sha256),
                           .is_error = info.is_error,
                           .media_type = info.media_type,
                           .file_name = info.file_name});
}

}  // namespace muster::client
