// The results that an attached node gathers for runs.
#ifndef MUSTER_SERVICES_AGENT_ATTACH_COLLECTIONS_H_
#define MUSTER_SERVICES_AGENT_ATTACH_COLLECTIONS_H_

#include <string>

#include "muster/v1/attachment.pb.h"

namespace muster {

// Thread-safe. No call waits for the work.
class Collections {
 public:
  virtual ~Collections() = default;

  // A run expects results, which are delivered to `relay_target`. A repeated offer has no effect.
  virtual void Offer(const v1::CollectionOffer& offer, const std::string& relay_target) = 0;

  // Drops the collections that have not started, because the node has attached again: its relay
  // offers those that are still needed, and another relay may have offered them.
  virtual void OnAttached(const std::string& relay_target) = 0;

  // A run expects no results any more.
  virtual void End(const v1::CollectionEnded& ended) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_ATTACH_COLLECTIONS_H_
