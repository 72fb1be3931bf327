// What an attachment is made of, and what its owner does with it.
#ifndef MUSTER_SERVICES_COMMON_ATTACH_ATTACH_DELEGATE_H_
#define MUSTER_SERVICES_COMMON_ATTACH_ATTACH_DELEGATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/attachment.pb.h"

namespace muster {

// What the owner of an attachment does with it. Called from threads of gRPC and of the client, one
// call at a time except OnWritable; must not wait for long: nothing else is read meanwhile, and
// that is how an owner holds up its parent.
class AttachDelegate {
 public:
  virtual ~AttachDelegate() = default;

  // Of the command revocations that are held.
  virtual int64_t RevocationsVersion() = 0;

  // The first time on a stream (`first`), and whenever the relay says it again: then what was not
  // acknowledged has to be sent again. An error ends the stream and tries the next parent.
  virtual absl::Status OnWelcome(const v1::AttachResponse::Welcome& welcome, bool first) = 0;

  // Everything that is not of the attachment itself.
  virtual void OnMessage(v1::AttachResponse message) = 0;

  // A stream that was welcomed has ended.
  virtual void OnLost(const absl::Status& why) = 0;

  // Send takes messages again, after it refused one.
  virtual void OnWritable() = 0;
};

struct AttachClientOptions {
  // "host:port", in the order in which they are preferred.
  std::vector<std::string> targets;
  std::string fleet;
  std::string uri;  // the child's
  // key.pem, cert.pem and ca.pem, replaced as a whole when they change: read for each connection
  // and each statement.
  std::string identity_folder;
  bool is_relay = false;
  std::vector<std::string> relay_targets;  // of a relay
  // Full jitter up to a bound that begins here and doubles; at least 1 s passes.
  absl::Duration first_back_off = absl::Seconds(5);
  absl::Duration longest_back_off = absl::Seconds(60);
  // Who hangs below another parent than the first looks whether an earlier one is there again,
  // after a random time of once to three times this.
  absl::Duration return_after = absl::Minutes(5);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ATTACH_ATTACH_DELEGATE_H_
