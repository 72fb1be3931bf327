// The objects that the classes of shared files use.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_PARTS_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_PARTS_H_

#include <memory>
#include <string>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/rpc_authorization.h"
#include "services/relay/files/share_store.h"
#include "services/relay/topology/topology_view.h"

namespace grpc {
class Channel;
}

namespace muster {

// The services that a relay calls for shared files. Thread-safe; the methods do not block.
class SharePeers {
 public:
  virtual ~SharePeers() = default;

  // Returns the channel to the parent; null at the root relay and without a parent.
  virtual std::shared_ptr<grpc::Channel> Parent() = 0;

  // Returns the channel to the aggregator; null at other relays than the root relay.
  virtual std::shared_ptr<grpc::Channel> Aggregator() = 0;
};

// The signers that a relay trusts. Thread-safe; the methods do not block.
class ShareTrust {
 public:
  virtual ~ShareTrust() = default;

  // Returns the roots of the certificates of signers.
  virtual std::vector<Certificate> Roots() const = 0;

  // Returns whether the identity or the certificate of a signer was revoked.
  virtual bool IsRevoked(const Caller& signer) const = 0;
};

// The state of the router that other classes use. Thread-safe; the methods do not block.
class ShareRouting {
 public:
  virtual ~ShareRouting() = default;

  // Requests a look at all files, because one may be able to move.
  virtual void Wake() = 0;

  // Returns whether unknown targets are refused by now.
  virtual bool settled() const = 0;
};

// A view of objects that other classes own. All of them outlive the classes that use it.
struct ShareParts {
  ShareStore& store;
  const TopologyView& tree;
  const Clock& clock;
  std::string fleet;
  bool is_root = true;
  SharePeers& peers;
  const ShareTrust& trust;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_PARTS_H_
