#include "services/jobs/workspace_cipher.h"

#include <openssl/rand.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/upload/upload_bytes.h"

namespace muster {
namespace {

constexpr auto kPart = static_cast<int64_t>(kWorkspacePart);

absl::StatusOr<std::string> RandomBytes(size_t size) {
  std::string bytes(size, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(size)) != 1) {
    return absl::InternalError("cannot make random bytes");
  }
  return bytes;
}

}  // namespace

absl::StatusOr<Secret> NewWorkspaceKey() {
  ASSIGN_OR_RETURN(std::string key, RandomBytes(kWorkspaceKeySize));
  return Secret(std::move(key));
}

int64_t SealedSize(int64_t size) {
  return size + (size + kPart - 1) / kPart * static_cast<int64_t>(kSealedPartOverhead);
}

WorkspaceCipher::WorkspaceCipher(Secret key, std::string_view workspace, std::string_view archive,
                                 int64_t size)
    : key_(std::move(key)),
      context_(absl::StrCat("muster workspace\n", ToAbsl(workspace), "\n", ToAbsl(archive), "\n",
                            size, "\n")) {}

std::string WorkspaceCipher::AssociatedData(int64_t index) const {
  return absl::StrCat(context_, index);
}

absl::StatusOr<std::string> WorkspaceCipher::Seal(int64_t index, std::string_view part) const {
  ASSIGN_OR_RETURN(const std::string nonce, RandomBytes(kGcmNonceSize));
  const auto sealed = GcmSeal(key_.view(), nonce, AssociatedData(index), part);
  if (!sealed) return absl::InternalError("cannot encrypt a part of a workspace");
  return nonce + *sealed;
}

absl::StatusOr<std::string> WorkspaceCipher::Open(int64_t index, std::string_view sealed) const {
  if (sealed.size() > kSealedPartOverhead) {
    const auto part = GcmOpen(key_.view(), sealed.substr(0, kGcmNonceSize), AssociatedData(index),
                              sealed.substr(kGcmNonceSize));
    if (part) return std::string(part->view());
  }
  return absl::DataLossError(absl::StrCat("part ", index, " of a workspace cannot be decrypted"));
}

absl::StatusOr<size_t> SealedArchive::Read(std::span<char> buffer) {
  if (read_ == part_.size()) {
    const int64_t left = end_ - index_ * kPart;
    if (left <= 0) return 0;
    const auto size = static_cast<size_t>(std::min(left, kPart));
    ASSIGN_OR_RETURN(const std::string sealed, ReadUpTo(sealed_, size + kSealedPartOverhead));
    ASSIGN_OR_RETURN(part_, cipher_.Open(index_, sealed));
    ++index_;
    read_ = 0;
  }
  const size_t size = std::min(buffer.size(), part_.size() - read_);
  std::copy_n(part_.data() + read_, size, buffer.data());
  read_ += size;
  return size;
}

}  // namespace muster
