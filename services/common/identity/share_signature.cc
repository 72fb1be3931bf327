#include "services/common/identity/share_signature.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/names.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/identity/identity.h"

namespace muster {
namespace {

constexpr size_t kMaxId = 253;
constexpr size_t kMaxChainPem = 16 * 1024;
constexpr size_t kMaxSignature = 1024;
constexpr int64_t kMaxSize = int64_t{1} << 50;
// Year 10000: no clock of ours gets near, and absl::FromUnixSeconds stays far from its ends.
constexpr int64_t kMaxSeconds = 253'402'300'800;

absl::Status Invalid(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_SHARE",
                   absl::StrCat("the shared file: ", ToAbsl(why)),
                   "Source and target are names of nodes; an id begins with a letter or digit and "
                   "has at most 253 of A-Z a-z 0-9 . _ -");
}

absl::Status Refused(std::string_view why) {
  return MakeError(
      absl::StatusCode::kUnauthenticated, "INVALID_SIGNATURE",
      absl::StrCat("the signature over the shared file is not accepted: ", ToAbsl(why)),
      "Sign with the key of the source, over the text that the API states; check the "
      "clocks of node and relay.");
}

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
  return fits ? absl::OkStatus() : Invalid("its id is none");
}

absl::Status ValidateShareKey(const v1::ShareKey& key) {
  if (!ValidateName("source", key.source()).ok()) return Invalid("its source is no node's name");
  if (!ValidateName("target", key.target()).ok()) return Invalid("its target is no node's name");
  return ValidateShareId(key.id());
}

absl::Status ValidateSharedFile(const v1::SharedFile& file) {
  RETURN_IF_ERROR(ValidateShareKey(file.key()));
  if (file.size() < 0 || file.size() > kMaxSize) return Invalid("its size is out of range");
  if (file.sha256().size() != kSha256Size) return Invalid("its SHA-256 has not 32 bytes");
  if (!IsTime(file.sign_time())) return Invalid("sign_time is no time in whole seconds");
  if (file.has_expire_time() && !IsTime(file.expire_time())) {
    return Invalid("expire_time is no time in whole seconds");
  }
  if (file.signature().size() > kMaxSignature ||
      file.certificate_chain_pem().size() > kMaxChainPem) {
    return Invalid("its signature or its certificates are too long");
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
  if (signed_at > now + kShareClockSlack) return Refused("it was made in the future");
  const auto chain = ParseChain(file.certificate_chain_pem());
  if (!chain.ok()) return Refused(ToStd(chain.status().message()));
  const Certificate& leaf = chain->front();
  const auto uri = leaf.Uri();
  if (!uri.ok()) return Refused(ToStd(uri.status().message()));
  const auto signer = ParseIdentity(*uri, fleet);
  if (!signer.ok()) return Refused(ToStd(signer.status().message()));
  if (*signer != Identity{std::string(fleet), NodeIdentity{file.key().source()}}) {
    return Refused("another than the source made it");
  }
  const auto key = leaf.Key();
  if (!key.ok() || !key->Verify(ShareSignatureText(file), file.signature())) {
    return Refused("it does not match");
  }
  const absl::Status trusted = VerifyChain(leaf, std::span(*chain).subspan(1), roots,
                                           Usage::kClient, std::min(signed_at, now));
  return trusted.ok() ? trusted : Refused(ToStd(trusted.message()));
}

absl::Time ExpiryOf(const v1::SharedFile& file) {
  return file.has_expire_time() ? absl::FromUnixSeconds(file.expire_time().seconds())
                                : absl::InfiniteFuture();
}

}  // namespace muster
