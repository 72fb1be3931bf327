// The next step of a relay with a shared file that it holds.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_STEP_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_STEP_H_

#include "services/relay/files/share_record.h"
#include "services/relay/files/target_route.h"

namespace muster {

enum class ShareStep {
  kWait,
  kOffer,            // offer it to the child relay on the route to the target.
  kMarkDelivered,    // the target is, or was last, attached to this relay.
  kSend,             // send it to the parent.
  kSendIfElsewhere,  // send it to the parent if that has another route.
  kLookUpTarget,     // look in the register of nodes.
  kRefuse,           // the target is unknown.
};

// Returns the next step for a file whose target has this `route`. After the settling time, a target
// without a route is unknown. A pure function.
ShareStep NextStep(const ShareRecord& record, const TargetRoute& route, bool is_root, bool settled);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_STEP_H_
