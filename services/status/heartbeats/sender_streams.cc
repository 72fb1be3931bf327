#include "services/status/heartbeats/sender_streams.h"

#include <algorithm>
#include <utility>

#include "services/common/errors/rpc.h"

namespace muster {
namespace {

constexpr char kMethod[] = "/muster.v1.HeartbeatService/StreamHeartbeats";
constexpr size_t kMaxClosed = 4;

}  // namespace

absl::StatusOr<uint32_t> SenderStreams::Open(uint64_t pair, SenderConnection connection,
                                             std::shared_ptr<SenderLink>* replaced) {
  int64_t sequence = -1;
  const Iterator same = std::ranges::find(streams_, pair, &Stream::pair);
  const bool is_open = same != streams_.end() && same >= FirstOpen();
  if (!is_open && open_ >= kMaxOpen) {
    return errors::TooManyStreamsOfCaller(kMethod, kMaxOpen);
  }
  if (same != streams_.end()) {
    sequence = same->sequence;
    if (is_open) {
      *replaced = same->connection.link.lock();
      --open_;
    }
    streams_.erase(same);
  }
  streams_.push_back({++last_number_, pair, sequence, std::move(connection)});
  ++open_;
  return last_number_;
}

bool SenderStreams::Close(uint32_t number) {
  const Iterator stream = std::ranges::find(FirstOpen(), streams_.end(), number, &Stream::number);
  if (stream == streams_.end()) return false;
  std::rotate(FirstOpen(), stream, stream + 1);
  --open_;
  if (streams_.size() - open_ > kMaxClosed) streams_.erase(streams_.begin());
  return true;
}

void SenderStreams::Clear() {
  streams_.clear();
  open_ = 0;
}

int64_t* SenderStreams::FindSequence(uint32_t number) {
  const Iterator stream = std::ranges::find(FirstOpen(), streams_.end(), number, &Stream::number);
  return stream == streams_.end() ? nullptr : &stream->sequence;
}

std::vector<std::shared_ptr<SenderLink>> SenderStreams::Links() const {
  std::vector<std::shared_ptr<SenderLink>> links;
  for (size_t i = streams_.size() - open_; i < streams_.size(); ++i) {
    if (auto link = streams_[i].connection.link.lock()) links.push_back(std::move(link));
  }
  return links;
}

std::shared_ptr<SenderLink> SenderStreams::link() const {
  return streams_.empty() ? nullptr : streams_.back().connection.link.lock();
}

TcpPeer SenderStreams::peer() const {
  return streams_.empty() ? TcpPeer() : streams_.back().connection.peer;
}

const RelayState* SenderStreams::relay() const {
  return streams_.empty() ? nullptr : streams_.back().connection.relay;
}

void SenderStreams::ForgetPeer() {
  if (!streams_.empty()) streams_.back().connection.peer = TcpPeer();
}

}  // namespace muster
