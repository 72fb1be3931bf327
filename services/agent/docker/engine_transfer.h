// Requests to the Docker Engine API by its Unix socket.
#ifndef MUSTER_SERVICES_AGENT_DOCKER_ENGINE_TRANSFER_H_
#define MUSTER_SERVICES_AGENT_DOCKER_ENGINE_TRANSFER_H_

#include <curl/curl.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/rpc/https_handle.h"

namespace muster {

struct EngineRequest {
  std::string method;                     // GET, POST or DELETE
  std::string path;                       // with the version of the API and the query
  std::string body;                       // JSON; empty: none
  std::vector<std::string> headers = {};  // further ones, "Name: value"; they appear in no error
  // A tar instead of `body`, for POST. Fills the buffer with the next bytes; 0: the end.
  std::function<absl::StatusOr<size_t>(std::span<char> buffer)> tar = {};
};

// One request and its answer so far. libcurl refers to it: it stays where it is. Not thread-safe.
class EngineTransfer {
 public:
  // Receives the body of a successful answer in pieces. An error ends the transfer.
  using BodySink = std::function<absl::Status(std::string_view piece)>;

  EngineTransfer(std::string socket, EngineRequest request, BodySink sink);
  EngineTransfer(const EngineTransfer&) = delete;

  // Returns the handle, for Perform or a multi handle. Null without memory.
  CURL* curl() const { return curl_.get(); }

  // Returns the status of HTTP, or 0 until the head of the answer has arrived.
  long code() const;

  // Returns the error of a transfer that libcurl ended with `code`: DOCKER_UNREACHABLE, the error
  // of the sink or of `tar`, or DOCKER_FAILED with the daemon's message for a status of 400 and
  // more.
  absl::Status ResultOf(CURLcode code) const;

  // Returns the beginning of the daemon's message in an answer of 400 and more.
  std::string ErrorMessage() const;

  // Executes the request; fails as ResultOf. Blocks for at most `limit`, and at most a second after
  // `stopped` returns true.
  absl::Status Perform(absl::Duration limit, const std::function<bool()>& stopped = {});

 private:
  size_t Receive(std::string_view piece);
  size_t Send(std::span<char> buffer);
  void SetBody();

  const std::string socket_;
  const EngineRequest request_;
  const BodySink sink_;
  const Curl curl_;
  HeaderList headers_;
  std::string error_body_;
  absl::Status sink_error_;  // or that of `tar`
};

// Executes a request and returns the body of its answer, at most 16 MiB. Fails as
// EngineTransfer::ResultOf; `*code` is the status of HTTP, or 0 without an answer.
absl::StatusOr<std::string> CallEngine(const std::string& socket, EngineRequest request,
                                       absl::Duration limit, long* code);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_DOCKER_ENGINE_TRANSFER_H_
