#include "services/client/test_status_peer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "services/common/rpc/status.h"

namespace muster::client {

void TestStatusPeer::Start() {
  grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  tls.pem_root_certs = fleet_.root_pem;
  tls.pem_key_cert_pairs.push_back({fleet_.status_key_pem, fleet_.status_chain_pem});
  grpc::ServerBuilder builder;
  builder.AddListeningPort(absl::StrCat("127.0.0.1:", port_), grpc::SslServerCredentials(tls),
                           &port_);
  if (serve_heartbeats) builder.RegisterService(&heartbeat_service_);
  builder.RegisterService(&report_service_);
  server_ = builder.BuildAndStart();
}

void TestStatusPeer::Stop() {
  if (!server_) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
}

std::string TestStatusPeer::target() const { return absl::StrCat("127.0.0.1:", port_); }

void TestStatusPeer::Probe() {
  MutexLock lock(mutex_);
  v1::StreamHeartbeatsResponse probe;
  probe.set_probe(true);
  for (const auto& [context, stream] : live_streams_) stream->Write(probe);
}

void TestStatusPeer::Cut() {
  MutexLock lock(mutex_);
  for (const auto& [context, stream] : live_streams_) context->TryCancel();
}

std::vector<v1::StreamHeartbeatsRequest> TestStatusPeer::heartbeats() const {
  MutexLock lock(mutex_);
  return heartbeats_;
}

std::vector<v1::ReportProgressRequest> TestStatusPeer::reports() const {
  MutexLock lock(mutex_);
  return reports_;
}

bool TestStatusPeer::Heard(const std::function<bool(const v1::Activity&)>& what) const {
  MutexLock lock(mutex_);
  return std::ranges::any_of(heartbeats_, [&](const v1::StreamHeartbeatsRequest& heartbeat) {
    return std::ranges::any_of(heartbeat.activities(), what);
  });
}

bool TestStatusPeer::HeardPhase(v1::Phase phase) const {
  return Heard([phase](const v1::Activity& activity) { return activity.phase() == phase; });
}

bool TestStatusPeer::SaidGoodbye() const {
  MutexLock lock(mutex_);
  return !heartbeats_.empty() && heartbeats_.back().goodbye();
}

v1::StreamHeartbeatsResponse TestStatusPeer::AnswerTo(
    const v1::StreamHeartbeatsRequest& heartbeat) const {
  v1::StreamHeartbeatsResponse answer;
  answer.set_sequence(heartbeat.sequence());
  answer.mutable_interval()->set_seconds(interval_ms / 1000);
  answer.mutable_interval()->set_nanos(static_cast<int32_t>(interval_ms % 1000 * 1'000'000));
  const absl::Time now = absl::Now() + absl::Milliseconds(clock_ahead_ms.load());
  answer.mutable_time()->set_seconds(absl::ToUnixSeconds(now));
  return answer;
}

grpc::Status TestStatusPeer::HeartbeatHandler::StreamHeartbeats(grpc::ServerContext* context,
                                                                Stream* stream) {
  ++peer_.streams;
  const std::pair self(context, stream);
  {
    MutexLock lock(peer_.mutex_);
    peer_.live_streams_.insert(self);
  }
  grpc::Status end = grpc::Status::OK;
  for (v1::StreamHeartbeatsRequest heartbeat; end.ok() && stream->Read(&heartbeat);) {
    if (peer_.judge_heartbeat) end = ToGrpc(peer_.judge_heartbeat());
    MutexLock lock(peer_.mutex_);
    peer_.heartbeats_.push_back(heartbeat);
    if (end.ok()) stream->Write(peer_.AnswerTo(heartbeat));
  }
  MutexLock lock(peer_.mutex_);
  peer_.live_streams_.erase(self);
  return end;
}

grpc::Status TestStatusPeer::Reports::ReportProgress(grpc::ServerContext*,
                                                     const v1::ReportProgressRequest* request,
                                                     v1::ReportProgressResponse*) {
  if (peer_.judge_progress) {
    if (const absl::Status verdict = peer_.judge_progress(); !verdict.ok()) return ToGrpc(verdict);
  }
  MutexLock lock(peer_.mutex_);
  peer_.reports_.push_back(*request);
  return grpc::Status::OK;
}

}  // namespace muster::client
