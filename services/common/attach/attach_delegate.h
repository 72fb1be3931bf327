// The options of an attachment, and the callbacks of its owner.
#ifndef MUSTER_SERVICES_COMMON_ATTACH_ATTACH_DELEGATE_H_
#define MUSTER_SERVICES_COMMON_ATTACH_ATTACH_DELEGATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/attachment.pb.h"
#include "services/common/base/text_values.h"

namespace muster {

// The owner of an attachment. Called on threads of gRPC and of the client, one call at a time
// except OnWritable. A call must not block.
class AttachDelegate {
 public:
  virtual ~AttachDelegate() = default;

  // The version of the stored command revocations.
  virtual int64_t RevocationsVersion() = 0;

  // Called for the first welcome of a stream (`first`), and for each later one: then send again
  // what was not acked. An error ends the stream, and the next parent is tried.
  virtual absl::Status OnWelcome(const v1::AttachResponse::Welcome& welcome, bool first) = 0;

  // Called for each message that does not concern the attachment itself. An error ends the stream.
  virtual absl::Status OnMessage(v1::AttachResponse message) = 0;

  // Called after each of these two. Returns whether the next message may be read now, which is the
  // flow control towards the parent; else the owner calls AttachClient::ResumeReading.
  virtual bool MayReadNext() { return true; }

  // Called when a welcomed stream has ended.
  virtual void OnLost(const absl::Status& why) = 0;

  // Called when a stream has ended before its welcome.
  virtual void OnRefused(const absl::Status& /*why*/) {}

  // Called when Send accepts messages again after it returned false.
  virtual void OnWritable() = 0;
};

struct AttachClientOptions {
  // The most preferred parent first, tunnels last (rpc/channel_target.h). Unless all are tunnels,
  // one is tried only after a proxy may have prevented the connection to another parent
  // (AllowsTunnel), and the child returns from it as from any less-preferred parent.
  std::vector<HostPort> targets;
  std::string fleet;
  std::string uri;  // the child's
  // Contains key.pem, cert.pem and ca.pem, and is replaced as a whole when they change. Read for
  // each connection and each statement.
  std::string identity_folder;
  bool is_relay = false;
  std::vector<std::string> relay_targets;  // addresses of a relay for its own children
  // Back-off with full jitter between these bounds; at least 1 s.
  absl::Duration first_back_off = absl::Seconds(5);
  absl::Duration longest_back_off = absl::Seconds(60);
  // A child that is attached to a less-preferred parent probes the preferred ones after a random
  // time of one to three times this.
  absl::Duration return_after = absl::Minutes(5);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ATTACH_ATTACH_DELEGATE_H_
