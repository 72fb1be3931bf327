#include "services/common/upload/upload_bytes.h"

#include <algorithm>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kReadBuffer = 256 * 1024;

}  // namespace

void UploadHash::Update(std::string_view bytes) {
  sha256_.Update(bytes);
  size_ += static_cast<int64_t>(bytes.size());
}

absl::Status UploadHash::Read(ByteSource& source, int64_t end, uint32_t* crc32c) {
  std::vector<char> buffer(kReadBuffer);
  while (size_ < end) {
    const auto most = std::min(buffer.size(), static_cast<size_t>(end - size_));
    ASSIGN_OR_RETURN(const auto n, source.Read(std::span(buffer).first(most)));
    if (n == 0) return absl::DataLossError(absl::StrCat("the stored bytes end at ", size_));
    const std::string_view bytes(buffer.data(), n);
    if (crc32c != nullptr) *crc32c = ExtendCrc32c(size_ == 0 ? 0 : *crc32c, bytes);
    Update(bytes);
  }
  return absl::OkStatus();
}

void UploadHash::Shorten(int64_t size) {
  if (size_ > size) *this = UploadHash();
}

std::string UploadHash::Finish() {
  size_ = 0;
  return DigestBytes(sha256_.Finish());
}

absl::StatusOr<std::string> ReadUpTo(ByteSource& source, size_t limit) {
  std::string bytes(limit, '\0');
  size_t filled = 0;
  while (filled < limit) {
    ASSIGN_OR_RETURN(const auto n, source.Read(std::span(bytes).subspan(filled)));
    if (n == 0) break;
    filled += n;
  }
  bytes.resize(filled);
  return bytes;
}

absl::Status PublishPartial(StagedBlob& staged, BlobStore& blobs, const std::string& name) {
  if (staged.written() == 0) return staged.Discard();
  const absl::Status published = staged.Publish(name);
  if (!absl::IsAlreadyExists(published)) return published;
  // A crash came before the partial data of an earlier call was recorded, and the sender started
  // from the first byte.
  RETURN_IF_ERROR(blobs.Remove(name));
  return staged.Publish(name);
}

}  // namespace muster
