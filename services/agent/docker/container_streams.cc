#include "services/agent/docker/container_streams.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "services/common/base/clock.h"
#include "services/common/base/poll_time.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/docker.h"

namespace muster {
namespace {

constexpr absl::Duration kOpenLimit = absl::Seconds(30);
constexpr size_t kMaxEndBody = size_t{64} << 10;
constexpr absl::Duration kLongestPoll = absl::Hours(1);

absl::Duration Now() { return SystemClock().MonotonicNow(); }

}  // namespace

ContainerStreams::ContainerStreams(const ContainerBytes& again, ContainerBytes& passed,
                                   int64_t log_file_size, ContainerOutputSink sink)
    : out_(again.out),
      err_(again.err),
      passed_(passed),
      log_file_size_(log_file_size),
      sink_(std::move(sink)),
      frames_([this](ContainerStream stream, std::string_view data) { Pass(stream, data); }),
      multi_(curl_multi_init()) {}

ContainerStreams::~ContainerStreams() {
  for (const Stream* stream : {&output_, &end_}) {
    if (stream->transfer != nullptr) curl_multi_remove_handle(multi_, stream->transfer->curl());
  }
  curl_multi_cleanup(multi_);
}

absl::StatusOr<std::unique_ptr<ContainerStreams>> ContainerStreams::Attach(
    DockerEngine& engine, const std::string& container, ContainerBytes& passed,
    ContainerOutputSink sink) {
  std::unique_ptr<ContainerStreams> streams(new ContainerStreams({}, passed, 0, std::move(sink)));
  RETURN_IF_ERROR(streams->Open(engine, container, /*attach=*/true));
  return streams;
}

absl::StatusOr<std::unique_ptr<ContainerStreams>> ContainerStreams::Follow(
    DockerEngine& engine, const std::string& container, ContainerBytes& passed,
    int64_t log_file_size, ContainerOutputSink sink) {
  std::unique_ptr<ContainerStreams> streams(
      new ContainerStreams(passed, passed, log_file_size, std::move(sink)));
  RETURN_IF_ERROR(streams->Open(engine, container, /*attach=*/false));
  return streams;
}

absl::Status ContainerStreams::Open(DockerEngine& engine, const std::string& container,
                                    bool attach) {
  const std::string path = absl::StrCat("/containers/", container);
  // A container that is not started has not ended, but is not running either.
  RETURN_IF_ERROR(AddStream(
      engine, "POST", absl::StrCat(path, "/wait?condition=", attach ? "next-exit" : "not-running"),
      [this](std::string_view piece) {
        if (end_body_.size() + piece.size() > kMaxEndBody) {
          return errors::DockerAnswerInvalid("POST /containers/wait", "it is larger than 64 KiB");
        }
        end_body_.append(piece);
        return absl::OkStatus();
      },
      &end_));
  return AddStream(
      engine, attach ? "POST" : "GET",
      absl::StrCat(
          path, attach ? "/attach?stream=1&stdout=1&stderr=1" : "/logs?follow=1&stdout=1&stderr=1"),
      [this](std::string_view piece) { return frames_.Feed(piece); }, &output_);
}

// Returns when the daemon has accepted the request.
absl::Status ContainerStreams::AddStream(DockerEngine& engine, std::string method,
                                         const std::string& call, EngineTransfer::BodySink sink,
                                         Stream* stream) {
  ASSIGN_OR_RETURN(std::string path, engine.PathOf(call));
  stream->transfer = std::make_unique<EngineTransfer>(
      engine.socket(), EngineRequest{std::move(method), std::move(path), ""}, std::move(sink));
  if (multi_ == nullptr || stream->transfer->curl() == nullptr ||
      curl_multi_add_handle(multi_, stream->transfer->curl()) != CURLM_OK) {
    return errors::DockerUnreachable(engine.socket(), "no memory");
  }
  const absl::Duration end = Now() + kOpenLimit;
  while (stream->transfer->code() == 0 && !stream->done) {
    const absl::Duration left = end - Now();
    if (left <= absl::ZeroDuration()) {
      return errors::DockerUnreachable(engine.socket(), "it does not answer");
    }
    Wait(-1, left);
  }
  // An error comes with its message.
  while (stream->transfer->code() >= 400 && !stream->done && Now() < end) Wait(-1, end - Now());
  return stream->transfer->code() >= 400 ? stream->transfer->ResultOf(CURLE_OK) : stream->status;
}

void ContainerStreams::Pass(ContainerStream stream, std::string_view data) {
  if (log_file_size_ > 0) log_size_.Add(data);
  const bool out = stream == ContainerStream::kStdout;
  ReceivedBytes& again = out ? out_ : err_;
  DaemonLogBytes& passed = out ? passed_.out : passed_.err;
  data = again.Skip(data);
  if (again.DequeueLostPart()) passed.DropPart();
  if (data.empty()) return;
  passed.Add(data);
  sink_(stream, data);
}

void ContainerStreams::Wait(int wake, absl::Duration limit) {
  curl_waitfd other = {wake, CURL_WAIT_POLLIN, 0};
  // libcurl refuses -1.
  curl_multi_poll(multi_, &other, wake >= 0 ? 1 : 0,
                  PollMilliseconds(std::min(limit, kLongestPoll)), nullptr);
  Perform();
}

void ContainerStreams::Perform() {
  int running = 0;
  curl_multi_perform(multi_, &running);
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    for (Stream* stream : {&output_, &end_}) {
      if (stream->transfer == nullptr || stream->transfer->curl() != message->easy_handle) continue;
      stream->done = true;
      stream->status = stream->transfer->ResultOf(message->data.result);
    }
  }
}

absl::Status ContainerStreams::fault() const {
  if (output_.done && !output_.status.ok()) return output_.status;
  if (end_.done && !end_.status.ok()) return end_.status;
  if (end_.done && end_body_.empty()) {
    return errors::ContainerOutputLost("the daemon closed the connection before the end");
  }
  return absl::OkStatus();
}

}  // namespace muster
