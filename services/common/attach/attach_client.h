// The child's side of attachment: how a node, or a relay below a relay, hangs in the tree.
#ifndef MUSTER_SERVICES_COMMON_ATTACH_ATTACH_CLIENT_H_
#define MUSTER_SERVICES_COMMON_ATTACH_ATTACH_CLIENT_H_

#include <grpcpp/channel.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
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
  // "host:port", tried in turn.
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
};

// Keeps one stream to one of the parents, for as long as it lives. Thread-safe.
class AttachClient {
 public:
  // `delegate` outlives it.
  AttachClient(AttachClientOptions options, AttachDelegate& delegate);
  // Begins to attach. Once.
  void Start();
  // Ends the stream; after that the delegate is not called.
  ~AttachClient();

  AttachClient(const AttachClient&) = delete;
  AttachClient& operator=(const AttachClient&) = delete;

  // Queues a message for the parent. False if it is not attached, or if too much is queued:
  // OnWritable tells when to try again, OnWelcome when to begin anew.
  [[nodiscard]] bool Send(v1::AttachRequest message);

  // Whether a welcomed stream stands.
  bool attached() const;
  // The address and the channel of the parent that it is attached to, or was last; empty and null
  // before the first.
  std::string target() const;
  std::shared_ptr<grpc::Channel> channel() const;

 private:
  class Stream;
  struct Parent {
    std::string target;
    std::shared_ptr<grpc::Channel> channel;
  };

  Parent Newest() const;
  void Run(const std::stop_token& stop);
  absl::Status Hold(const std::stop_token& stop, const std::string& target, bool* welcomed);

  const AttachClientOptions options_;
  AttachDelegate& delegate_;
  const std::string instance_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::shared_ptr<Stream> stream_;  // guarded by mutex_
  Parent trying_;                   // guarded by mutex_
  mutable Parent parent_;           // guarded by mutex_; that which welcomed last
  std::jthread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ATTACH_ATTACH_CLIENT_H_
