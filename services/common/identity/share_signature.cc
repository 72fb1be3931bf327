#include "services/common/identity/share_signature.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/names.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"
#include "services/common/identity/identity.h"

namespace muster {
namespace {

constexpr size_t kMaxId = 253;
constexpr size_t kMaxChainPem = 16 * 1024;
constexpr size_t kMaxSignature = 1024;
constexpr int64_t kMaxSize = int64_t{1} << 50;
// The year 10000, within the range of absl::FromUnixSeconds.
constexpr int64_t kMaxSeconds = 253'402'300'800;

bool IsTime(const google::protobuf::Timestamp& time) {
  return time.seconds() > 0 && time.seconds() < kMaxSeconds && time.nanos() == 0;
}

}  // namespace

absl::Status ValidateShareId(std::string_view id) {
  const bool fits = !id.empty() && id.size() <= kMaxId &&
                    absl::ascii_isalnum(static_cast<unsigned char>(id.front())) &&
                    std::ranges::all_of(id, [](unsigned char c) {
                      return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-';
                    });
  return fits ? absl::OkStatus() : errors::InvalidShare("its id is invalid");
}

absl::Status ValidateShareKey(const v1::ShareKey& key) {
  if (!ValidateName("source", key.source()).ok())
    return errors::InvalidShare("its source is not the name of a node");
  if (!ValidateName("target", key.target()).ok())
    return errors::InvalidShare("its target is not the name of a node");
  return ValidateShareId(key.id());
}

absl::Status ValidateSharedFile(const v1::SharedFile& file) {
  RETURN_IF_ERROR(ValidateShareKey(file.key()));
  if (file.size() < 0 || file.size() > kMaxSize)
    return errors::InvalidShare("its size is out of range");
  if (file.sha256().size() != kSha256Size)
    return errors::InvalidShare("its SHA-256 is not 32 bytes");
  if (!IsTime(file.sign_time()))
    return errors::InvalidShare("sign_time is not a time in whole seconds");
  if (file.has_expire_time() && !IsTime(file.expire_time())) {
    return errors::InvalidShare("expire_time is not a time in whole seconds");
  }
  if (file.signature().size() > kMaxSignature ||
      file.certificate_chain_pem().size() > kMaxChainPem) {
    return errors::InvalidShare("its signature or its certificates are too long");
  }
  return absl::OkStatus();
}

std::string ShareSignatureText(const v1::SharedFile& file) {
  const v1::ShareKey& key = file.key();
  return absl::StrCat("muster-share-v1\n", key.source(), "\n", key.target(), "\n", key.id(), "\n",
                      ToHex(file.sha256()), "\n", file.size(), "\n",
                      file.has_expire_time() ? file.expire_time().seconds() : 0, "\n",
                      file.sign_time().seconds(), "\n");
}

absl::Status SignSharedFile(const PrivateKey& key, std::string_view chain_pem,
                            v1::SharedFile* file) {
  ASSIGN_OR_RETURN(auto signature, key.Sign(ShareSignatureText(*file)));
  file->set_signature(std::move(signature));
  file->set_certificate_chain_pem(std::string(chain_pem));
  return absl::OkStatus();
}

absl::Status VerifySharedFile(const v1::SharedFile& file, std::string_view fleet,
                              std::span<const Certificate> roots, absl::Time now) {
  RETURN_IF_ERROR(ValidateSharedFile(file));
  const absl::Time signed_at = absl::FromUnixSeconds(file.sign_time().seconds());
  if (signed_at > now + kShareClockSlack)
    return errors::InvalidShareSignature("its sign_time is in the future");
  const auto chain = ParseChain(file.certificate_chain_pem());
  if (!chain.ok()) return errors::InvalidShareSignature(ToStd(chain.status().message()));
  const Certificate& leaf = chain->front();
  const auto uri = leaf.Uri();
  if (!uri.ok()) return errors::InvalidShareSignature(ToStd(uri.status().message()));
  const auto signer = ParseIdentity(*uri, fleet);
  if (!signer.ok()) return errors::InvalidShareSignature(ToStd(signer.status().message()));
  if (*signer != Identity{std::string(fleet), NodeIdentity{file.key().source()}}) {
    return errors::InvalidShareSignature("the source did not sign it");
  }
  const auto key = leaf.Key();
  if (!key.ok() || !key->Verify(ShareSignatureText(file), file.signature())) {
    return errors::InvalidShareSignature("it does not match");
  }
  const absl::Status trusted = VerifyChain(leaf, std::span(*chain).subspan(1), roots,
                                           Usage::kClient, std::min(signed_at, now));
  return trusted.ok() ? trusted : errors::InvalidShareSignature(ToStd(trusted.message()));
}

absl::Time ExpiryOf(const v1::SharedFile& file) {
  return file.has_expire_time() ? absl::FromUnixSeconds(file.expire_time().seconds())
                                : absl::InfiniteFuture();
}

}  // namespace muster
