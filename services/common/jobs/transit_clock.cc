#include "services/common/jobs/transit_clock.h"

#include <algorithm>

#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

void Subtract(absl::Duration transit, google::protobuf::Duration* left) {
  ToProto(std::max(FromProto(*left) - transit, absl::ZeroDuration()), left);
}

}  // namespace

void TransitClock::Welcome(absl::Duration sender, absl::Duration now, bool first) {
  offset_ = first ? now - sender : std::min(offset_, now - sender);
}

void TransitClock::Adjust(absl::Duration now, v1::JobCommand* command) const {
  if (!command->has_clock() || offset_ == absl::InfiniteDuration()) return;
  const absl::Duration transit = now - FromProto(command->clock()) - offset_;
  if (transit <= absl::ZeroDuration()) return;
  if (command->has_begin_within()) Subtract(transit, command->mutable_begin_within());
  if (command->has_wait_within()) Subtract(transit, command->mutable_wait_within());
}

}  // namespace muster
