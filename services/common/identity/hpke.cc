#include "services/common/identity/hpke.h"

#include <openssl/evp.h>
#include <openssl/kdf.h>

#include <array>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"
#include "services/common/identity/aes_gcm.h"
#include "services/common/identity/openssl_support.h"

namespace muster {
namespace {

using KeyContextPtr = OpenSslPtr<EVP_PKEY_CTX, EVP_PKEY_CTX_free>;

constexpr size_t kHashSize = 32;  // Nh of HKDF-SHA256
constexpr size_t kAeadKeySize = 16;

// The suite ids: "KEM" and "HPKE" with the numbers of the algorithms, big-endian.
constexpr std::string_view kKemSuite("KEM\x00\x20", 5);
constexpr std::string_view kHpkeSuite("HPKE\x00\x20\x00\x01\x00\x01", 10);
constexpr std::string_view kVersion = "HPKE-v1";
constexpr char kModeBase = 0;

const unsigned char* Bytes(std::string_view s) {
  return reinterpret_cast<const unsigned char*>(s.data());
}

absl::StatusOr<Secret> Hkdf(int mode, std::string_view key, std::string_view salt,
                            std::string_view info, size_t size) {
  const KeyContextPtr context(EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr));
  std::string out(size, '\0');
  const bool extract = mode == EVP_PKEY_HKDEF_MODE_EXTRACT_ONLY;
  const bool ok =
      context != nullptr && EVP_PKEY_derive_init(context.get()) == 1 &&
      EVP_PKEY_CTX_set_hkdf_mode(context.get(), mode) == 1 &&
      EVP_PKEY_CTX_set_hkdf_md(context.get(), EVP_sha256()) == 1 &&
      EVP_PKEY_CTX_set1_hkdf_key(context.get(), Bytes(key), static_cast<int>(key.size())) == 1 &&
      (extract
           ? EVP_PKEY_CTX_set1_hkdf_salt(context.get(), Bytes(salt), static_cast<int>(salt.size()))
           : EVP_PKEY_CTX_add1_hkdf_info(context.get(), Bytes(info),
                                         static_cast<int>(info.size()))) == 1 &&
      EVP_PKEY_derive(context.get(), reinterpret_cast<unsigned char*>(out.data()), &size) == 1 &&
      size == out.size();
  Secret derived(std::move(out));
  if (!ok) return OpenSslError("derive a key");
  return derived;
}

absl::StatusOr<Secret> LabeledExtract(std::string_view suite, std::string_view salt,
                                      std::string_view label, std::string_view key) {
  const Secret labeled(absl::StrCat(ToAbsl(kVersion), ToAbsl(suite), ToAbsl(label), ToAbsl(key)));
  return Hkdf(EVP_PKEY_HKDEF_MODE_EXTRACT_ONLY, labeled.view(), salt, "", kHashSize);
}

absl::StatusOr<Secret> LabeledExpand(std::string_view suite, std::string_view key,
                                     std::string_view label, std::string_view info, size_t size) {
  const std::string labeled =
      absl::StrCat(std::string{'\0', static_cast<char>(size)}, ToAbsl(kVersion), ToAbsl(suite),
                   ToAbsl(label), ToAbsl(info));
  return Hkdf(EVP_PKEY_HKDEF_MODE_EXPAND_ONLY, key, "", labeled, size);
}

std::shared_ptr<EVP_PKEY> Own(EVP_PKEY* key) { return {key, EVP_PKEY_free}; }

// X25519. Nothing if the result is zero: the public key is of low order.
std::optional<Secret> Agree(EVP_PKEY* own, std::string_view peer) {
  if (peer.size() != kHpkeKeySize) return std::nullopt;
  const auto other =
      Own(EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, Bytes(peer), peer.size()));
  const KeyContextPtr context(EVP_PKEY_CTX_new(own, nullptr));
  std::string out(kHpkeKeySize, '\0');
  size_t size = out.size();
  const bool ok =
      other != nullptr && context != nullptr && EVP_PKEY_derive_init(context.get()) == 1 &&
      EVP_PKEY_derive_set_peer(context.get(), other.get()) == 1 &&
      EVP_PKEY_derive(context.get(), reinterpret_cast<unsigned char*>(out.data()), &size) == 1 &&
      size == out.size();
  Secret agreed(std::move(out));
  if (ok) return agreed;
  DrainOpenSslErrors();
  return std::nullopt;
}

struct Schedule {
  Secret key;
  Secret nonce;
};

// The shared secret of the KEM (ExtractAndExpand), then the key schedule.
absl::StatusOr<Schedule> MakeSchedule(const Secret& agreed, std::string_view encapsulated,
                                      std::string_view receiver, std::string_view info) {
  ASSIGN_OR_RETURN(const Secret prk, LabeledExtract(kKemSuite, "", "eae_prk", agreed.view()));
  ASSIGN_OR_RETURN(const Secret shared,
                   LabeledExpand(kKemSuite, prk.view(), "shared_secret",
                                 absl::StrCat(ToAbsl(encapsulated), ToAbsl(receiver)), kHashSize));
  ASSIGN_OR_RETURN(const Secret psk_id, LabeledExtract(kHpkeSuite, "", "psk_id_hash", ""));
  ASSIGN_OR_RETURN(const Secret info_hash, LabeledExtract(kHpkeSuite, "", "info_hash", info));
  const std::string context =
      absl::StrCat(std::string(1, kModeBase), ToAbsl(psk_id.view()), ToAbsl(info_hash.view()));
  ASSIGN_OR_RETURN(const Secret secret, LabeledExtract(kHpkeSuite, shared.view(), "secret", ""));
  Schedule schedule;
  ASSIGN_OR_RETURN(schedule.key,
                   LabeledExpand(kHpkeSuite, secret.view(), "key", context, kAeadKeySize));
  ASSIGN_OR_RETURN(schedule.nonce,
                   LabeledExpand(kHpkeSuite, secret.view(), "base_nonce", context, kGcmNonceSize));
  return schedule;
}

}  // namespace

absl::StatusOr<HpkeKey> HpkeKey::Generate() {
  auto key = Own(EVP_PKEY_Q_keygen(nullptr, nullptr, "X25519"));
  std::string public_key(kHpkeKeySize, '\0');
  size_t size = public_key.size();
  if (key == nullptr ||
      EVP_PKEY_get_raw_public_key(key.get(), reinterpret_cast<unsigned char*>(public_key.data()),
                                  &size) != 1) {
    return OpenSslError("make a key of X25519");
  }
  return HpkeKey(std::move(key), std::move(public_key));
}

absl::StatusOr<HpkeKey> HpkeKey::FromBytes(std::string_view bytes) {
  auto key =
      Own(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, Bytes(bytes), bytes.size()));
  std::string public_key(kHpkeKeySize, '\0');
  size_t size = public_key.size();
  if (key == nullptr ||
      EVP_PKEY_get_raw_public_key(key.get(), reinterpret_cast<unsigned char*>(public_key.data()),
                                  &size) != 1) {
    return OpenSslError("read a key of X25519");
  }
  return HpkeKey(std::move(key), std::move(public_key));
}

absl::StatusOr<HpkeMessage> HpkeSeal(std::string_view receiver, std::string_view info,
                                     std::string_view associated, std::string_view plain) {
  ASSIGN_OR_RETURN(const HpkeKey ephemeral, HpkeKey::Generate());
  return HpkeSeal(ephemeral, receiver, info, associated, plain);
}

absl::StatusOr<HpkeMessage> HpkeSeal(const HpkeKey& ephemeral, std::string_view receiver,
                                     std::string_view info, std::string_view associated,
                                     std::string_view plain) {
  const auto agreed = Agree(ephemeral.get(), receiver);
  if (!agreed) return errors::ReceiverKeyMalformed();
  ASSIGN_OR_RETURN(const Schedule schedule,
                   MakeSchedule(*agreed, ephemeral.public_key(), receiver, info));
  auto sealed = GcmSeal(schedule.key.view(), schedule.nonce.view(), associated, plain);
  if (!sealed) return OpenSslError("seal a message");
  return HpkeMessage{ephemeral.public_key(), *std::move(sealed)};
}

absl::StatusOr<Secret> HpkeOpen(const HpkeKey& key, const HpkeMessage& message,
                                std::string_view info, std::string_view associated) {
  const auto agreed = Agree(key.get(), message.encapsulated_key);
  if (!agreed) return errors::SealedMessageDamaged();
  ASSIGN_OR_RETURN(const Schedule schedule,
                   MakeSchedule(*agreed, message.encapsulated_key, key.public_key(), info));
  auto plain = GcmOpen(schedule.key.view(), schedule.nonce.view(), associated, message.sealed);
  if (!plain) return errors::SealedMessageDamaged();
  return *std::move(plain);
}

}  // namespace muster
