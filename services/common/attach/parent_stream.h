// The connection and the stream to a parent, as an attachment uses them: gRPC's in programs, fakes
// in tests.
#ifndef MUSTER_SERVICES_COMMON_ATTACH_PARENT_STREAM_H_
#define MUSTER_SERVICES_COMMON_ATTACH_PARENT_STREAM_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/attachment.pb.h"
#include "services/common/base/text_values.h"
#include "services/common/rpc/stream_core.h"

namespace grpc {
class Channel;
}

namespace muster {

// Callbacks of one stream. They never overlap, and none runs before the first ReadNext.
class ParentStreamEvents {
 public:
  virtual ~ParentStreamEvents() = default;
  // A message that ReadNext asked for.
  virtual void OnMessage(v1::AttachResponse message) = 0;
  // There is room again after a Send that returned kFull, or all messages have been sent.
  virtual void OnWritable() = 0;
  // The last callback.
  virtual void OnEnd(const absl::Status& status) = 0;
};

// Thread-safe. Close comes before the destructor.
class ParentStream {
 public:
  virtual ~ParentStream() = default;
  virtual void ReadNext() = 0;
  virtual Sent Send(v1::AttachRequest message) = 0;
  virtual void Cancel(const absl::Status& why) = 0;

  // Cancels the stream and waits until its last callback has returned. Not called in a callback.
  virtual void Close() = 0;

  // Checks that the relay of this greeting is the one at the other end of the connection.
  virtual absl::Status CheckGreeting(const v1::AttachResponse::Greeting& greeting) = 0;
};

// Opens a stream.
using OpenParentStream = std::function<std::unique_ptr<ParentStream>(ParentStreamEvents& events)>;

// Signs a statement for the relay of a greeting.
using SignStatement = std::function<absl::StatusOr<v1::AttachStatement>(
    const v1::AttachResponse::Greeting& greeting)>;

// A connection to a parent.
struct ParentConnection {
  std::shared_ptr<grpc::Channel> channel;  // for other calls; null in tests
  OpenParentStream open;
};

// Thread-safe.
class ParentConnector {
 public:
  virtual ~ParentConnector() = default;
  // Makes a separate connection, which is established when it is used.
  virtual ParentConnection Connect(const HostPort& target) = 0;
  virtual absl::StatusOr<v1::AttachStatement> Sign(
      const v1::AttachResponse::Greeting& greeting) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ATTACH_PARENT_STREAM_H_
