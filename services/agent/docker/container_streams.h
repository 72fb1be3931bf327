// The output and the end of a container, in one thread.
#ifndef MUSTER_SERVICES_AGENT_DOCKER_CONTAINER_STREAMS_H_
#define MUSTER_SERVICES_AGENT_DOCKER_CONTAINER_STREAMS_H_

#include <curl/curl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/agent/docker/daemon_log.h"
#include "services/agent/docker/docker_engine.h"
#include "services/agent/docker/engine_transfer.h"
#include "services/agent/docker/stream_frames.h"

namespace muster {

// The bytes of each stream of a container that were passed, as the daemon's log has them.
struct ContainerBytes {
  DaemonLogBytes out;
  DaemonLogBytes err;
};

// Two requests at the daemon: one for the output, one that is answered at the end. The output is
// read as fast as the caller calls Wait: a container whose output is not read is stopped at its
// next write. Not thread-safe; used by one thread.
//
// The end of the output is not the end of the container: the daemon closes its streams when it
// ends, and containers may run on.
class ContainerStreams {
 public:
  // Attaches to a container that is not started yet, so that no byte is missed. Blocks until the
  // daemon has answered, for at most 30 s. Adds what it passes to `passed`, which outlives it. The
  // errors of DockerEngine.
  static absl::StatusOr<std::unique_ptr<ContainerStreams>> Attach(DockerEngine& engine,
                                                                  const std::string& container,
                                                                  ContainerBytes& passed,
                                                                  ContainerOutputSink sink);

  // Follows the daemon's log of a container that was started, from its first byte on, and passes
  // what comes after the `passed` bytes. `log_file_size` is that of ContainerState. Otherwise as
  // Attach.
  static absl::StatusOr<std::unique_ptr<ContainerStreams>> Follow(DockerEngine& engine,
                                                                  const std::string& container,
                                                                  ContainerBytes& passed,
                                                                  int64_t log_file_size,
                                                                  ContainerOutputSink sink);

  ~ContainerStreams();

  // Passes output on until `limit` has passed, the descriptor `wake` is readable, or a stream has
  // ended. May return earlier.
  void Wait(int wake, absl::Duration limit);

  // Returns whether the daemon has reported an end of the container. Inspect it: it may have been
  // started again by hand.
  bool ended() const { return end_.done && end_.status.ok() && !end_body_.empty(); }
  // Returns whether the log did not begin with the `passed` bytes, or was so full that it may
  // have lost its beginning. Call it after the end of the output.
  bool missing() const {
    return out_.missing() || err_.missing() ||
           (log_file_size_ > 0 && log_size_.full(log_file_size_));
  }
  // Returns whether the output has ended: all of it was passed if the container has ended, too.
  bool output_ended() const { return output_.done; }
  // Returns why the streams are of no more use, although the container may run; OK otherwise.
  absl::Status fault() const;

 private:
  struct Stream {
    std::unique_ptr<EngineTransfer> transfer;
    bool done = false;
    absl::Status status;  // once it is done
  };

  // `again`: what the daemon sends again.
  ContainerStreams(const ContainerBytes& again, ContainerBytes& passed, int64_t log_file_size,
                   ContainerOutputSink sink);
  absl::Status Open(DockerEngine& engine, const std::string& container, bool attach);
  absl::Status AddStream(DockerEngine& engine, std::string method, const std::string& call,
                         EngineTransfer::BodySink sink, Stream* stream);
  void Pass(ContainerStream stream, std::string_view data);
  void Perform();

  ReceivedBytes out_;  // not passed again
  ReceivedBytes err_;
  ContainerBytes& passed_;
  DaemonLogSize log_size_;
  const int64_t log_file_size_;  // 0: no log is read
  const ContainerOutputSink sink_;
  StreamFrames frames_;
  std::string end_body_;
  CURLM* const multi_;
  Stream output_;
  Stream end_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_DOCKER_CONTAINER_STREAMS_H_
