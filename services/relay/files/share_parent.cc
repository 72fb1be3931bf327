#include "services/relay/files/share_parent.h"

#include <cstddef>
#include <string>

#include "services/common/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kPiece = size_t{256} << 10;

absl::Status NoParent() { return absl::UnavailableError("the relay has no parent now"); }

}  // namespace

uint64_t RemoteShareParent::connection() {
  const auto channel = peers_.Parent();
  if (channel == nullptr) return 0;
  MutexLock lock(mutex_);
  if (last_.lock() != channel) {
    last_ = channel;
    ++connections_;
  }
  return connections_;
}

absl::StatusOr<ShareTransfer::Sent> RemoteShareParent::Send(const v1::SharedFile& file,
                                                            bool only_if_elsewhere,
                                                            const ShareTransfer::OpenSource& open) {
  const auto channel = peers_.Parent();
  if (channel == nullptr) return NoParent();
  return ShareTransfer(channel, stopper_).Send(file, only_if_elsewhere, open);
}

absl::Status RemoteShareParent::Report(const v1::Share& share) {
  const auto channel = peers_.Parent();
  if (channel == nullptr) return NoParent();
  return ShareTransfer(channel, stopper_).Report(share);
}

absl::Status RemoteShareParent::Read(const v1::SharedFile& file, int64_t offset, Sink sink) {
  const auto channel = peers_.Parent();
  if (channel == nullptr) return NoParent();
  ShareTransfer transfer(channel, stopper_);
  const auto source = transfer.Open(file, offset);
  std::string piece(kPiece, '\0');
  while (true) {
    ASSIGN_OR_RETURN(const auto n, source->Read(piece));
    if (n == 0) return absl::OkStatus();
    RETURN_IF_ERROR(sink(std::string_view(piece.data(), n)));
  }
}

}  // namespace muster
