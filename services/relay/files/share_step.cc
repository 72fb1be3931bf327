#include "services/relay/files/share_step.h"

namespace muster {

ShareStep NextStep(const ShareRecord& record, const TargetRoute& route, bool is_root,
                   bool settled) {
  using Kind = TargetRoute::Kind;
  if (record.stage != ShareStage::kHeld) return ShareStep::kWait;
  const bool delivered = record.share.state() == v1::SHARE_STATE_DELIVERED;
  Kind kind = route.kind;
  if (kind == Kind::kUnknown && record.from_parent) {
    // The parent has a route to the target through this relay, which lost its own knowledge in a
    // crash. A target that does not attach again was attached here last.
    if (!settled) return ShareStep::kWait;
    kind = Kind::kLocal;
  }
  switch (kind) {
    case Kind::kDownstream:
      return ShareStep::kOffer;
    case Kind::kLocal:
      if (!delivered) return ShareStep::kMarkDelivered;
      return route.attached ? ShareStep::kWait : ShareStep::kSendIfElsewhere;
    case Kind::kUnreachable:
      return ShareStep::kSendIfElsewhere;
    case Kind::kUnknown:
      break;
  }
  if (!is_root) return delivered ? ShareStep::kSendIfElsewhere : ShareStep::kSend;
  if (delivered) return ShareStep::kWait;
  return settled ? ShareStep::kRefuse : ShareStep::kLookUpTarget;
}

}  // namespace muster
