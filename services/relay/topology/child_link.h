// The stream of a direct child of this relay.
#ifndef MUSTER_SERVICES_RELAY_TOPOLOGY_CHILD_LINK_H_
#define MUSTER_SERVICES_RELAY_TOPOLOGY_CHILD_LINK_H_

#include "absl/status/status.h"
#include "muster/v1/attachment.pb.h"

namespace muster {

// Thread-safe.
class ChildLink {
 public:
  virtual ~ChildLink() = default;
  // Enqueues a message. A child that does not take its messages loses its stream.
  virtual void Send(v1::AttachResponse message) = 0;
  virtual void End(const absl::Status& why) = 0;
  // Sends a heartbeat after an interval without messages to the child, and ends the stream after
  // three intervals without messages of the child. To be called at least every second.
  virtual void Tick() = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_TOPOLOGY_CHILD_LINK_H_
