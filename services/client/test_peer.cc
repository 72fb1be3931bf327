#include "services/client/test_peer.h"

#include <chrono>
#include <future>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/client/content_digest.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/zstd_frame.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/authority.h"
#include "services/common/rpc/status.h"
#include "services/common/upload/attempt.h"

namespace muster::client {
namespace {

constexpr int64_t kChunkMax = 256 * 1024;

std::string Pem(const PrivateKey& key) { return std::string(key.ToPkcs8Pem().value().view()); }

std::string Sha256(const std::string& body) {
  ContentDigest digest;
  digest.Add(0, body);
  return digest.Sha256();
}

v1::Result ResultOf(const TestPeer::Committed& committed) {
  v1::Result result;
  *result.mutable_key() = committed.description.key();
  result.set_outcome(committed.description.is_error() ? v1::OUTCOME_ERROR : v1::OUTCOME_GENUINE);
  result.set_generation(committed.generation);
  result.set_size(static_cast<int64_t>(committed.body.size()));
  result.set_crc32c(Crc32c(committed.body));
  result.set_sha256(Sha256(committed.body));
  return result;
}

}  // namespace

TestFleet TestFleet::Make() {
  TestFleet made;
  const absl::Time now = absl::Now();
  const auto key = [] { return PrivateKey::Generate().value(); };
  const FleetRoot root = FleetRoot::Create(made.fleet, key(), now).value();
  const PrivateKey middle_key = key();
  const Certificate middle = root.SignIntermediate(middle_key.public_key(), now).value();
  auto intermediate = std::make_shared<Intermediate>(
      Intermediate::Load(made.fleet, middle_key, middle, root.certificate()).value());
  const absl::Time end = now + absl::Hours(4);
  auto run =
      std::make_shared<RunAuthority>(intermediate->CreateRunAuthority(made.run, now, end).value());

  const auto service = [&](ServiceRole role) {
    const PrivateKey service_key = key();
    const Certificate leaf = intermediate
                                 ->Issue(ServiceIdentity{role, "a1"}, service_key.public_key(),
                                         {"service.example"}, now, end)
                                 .value();
    return std::pair(leaf.ToPem() + middle.ToPem(), Pem(service_key));
  };
  const PrivateKey listener_key = key();
  const Certificate listener =
      run->Issue(RunListenerIdentity{made.run}, listener_key.public_key(), {"localhost"}, now)
          .value();
  made.root_pem = root.certificate().ToPem();
  std::tie(made.server_chain_pem, made.server_key_pem) = service(ServiceRole::kAggregator);
  std::tie(made.status_chain_pem, made.status_key_pem) = service(ServiceRole::kStatus);
  made.run_ca_pem = run->self_signed().ToPem();
  made.listener_chain_pem = listener.ToPem();
  made.listener_key_pem = Pem(listener_key);
  made.issue = [=, id = made.run](const std::string& node) {
    const PrivateKey leaf_key = key();
    const Certificate leaf =
        run->Issue(RunNodeIdentity{id, "facts", node}, leaf_key.public_key(), {}, now).value();
    return std::pair(leaf.ToPem() + run->fleet_signed().ToPem() + middle.ToPem(), Pem(leaf_key));
  };
  return made;
}

std::pair<std::string, std::string> TestFleet::RunCredential(const std::string& node) const {
  return issue(node);
}

Config TestFleet::ConfigOf(const std::string& node) const {
  const auto [chain, key] = RunCredential(node);
  Config config;
  config.run = run;
  config.plugin = "facts";
  config.node = node;
  config.fleet_ca_cert = root_pem;
  config.client_cert = chain;
  config.client_key = key;
  return config;
}

TestPeer::TestPeer(const TestFleet& fleet) : fleet_(fleet) {}

TestPeer::~TestPeer() { Stop(); }

void TestPeer::Start() {
  grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  tls.pem_root_certs = fleet_.root_pem;
  tls.pem_key_cert_pairs.push_back({fleet_.server_key_pem, fleet_.server_chain_pem});
  grpc::ServerBuilder builder;
  builder.AddListeningPort(absl::StrCat("127.0.0.1:", port_), grpc::SslServerCredentials(tls),
                           &port_);
  builder.RegisterService(this);
  builder.RegisterService(&runs_);
  server_ = builder.BuildAndStart();
}

void TestPeer::Stop() {
  if (!server_) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
}

std::string TestPeer::target() const { return absl::StrCat("127.0.0.1:", port_); }

std::optional<TestPeer::Committed> TestPeer::committed() const {
  MutexLock lock(mutex_);
  return committed_;
}

void TestPeer::Forget() {
  MutexLock lock(mutex_);
  committed_.reset();
}

grpc::Status TestPeer::Runs::GetRun(grpc::ServerContext*, const v1::GetRunRequest* request,
                                    v1::Run* run) {
  if (request->run() != peer_.fleet_.run) return ToGrpc(errors::RunNotFound(request->run()));
  if (peer_.run_state) {
    const auto state = peer_.run_state();
    if (!state.ok()) return ToGrpc(state.status());
    run->set_state(*state);
  }
  run->set_id(request->run());
  run->mutable_deadline()->set_seconds(absl::ToUnixSeconds(absl::Now() + absl::Hours(1)));
  v1::Plugin& plugin = *run->add_plugins();
  plugin.set_name("facts");
  plugin.set_definition_yaml(peer_.definition_yaml);
  return grpc::Status::OK;
}

absl::StatusOr<v1::Result> TestPeer::Commit(const v1::ResultDescription& description,
                                            const std::string& body, const std::string& signature) {
  if (committed_ && description.is_error()) return ResultOf(*committed_);  // it stays
  if (committed_ && !committed_->description.is_error()) {
    if (committed_->body != body) {
      return errors::ResultConflict(description.key().plugin(), description.key().node());
    }
  } else {
    committed_ = Committed{body, description, committed_ ? committed_->generation + 1 : 1,
                           signature, saw_zstd_};
  }
  if (on_commit) on_commit();
  return ResultOf(*committed_);
}

grpc::Status TestPeer::OpenUpload(grpc::ServerContext*, const v1::OpenUploadRequest* request,
                                  v1::OpenUploadResponse* response) {
  ++opens;
  if (judge) {
    if (const absl::Status verdict = judge(); !verdict.ok()) return ToGrpc(verdict);
  }
  if (refuse_opens > 0) {
    --refuse_opens;
    return ToGrpc(WithRetryAfter(errors::TooManyUploads(1), absl::Milliseconds(20)));
  }
  MutexLock lock(mutex_);
  const v1::ResultDescription& description = request->description();
  if (sealed && !(committed_ && request->sha256() == ResultOf(*committed_).sha256())) {
    return ToGrpc(errors::RunSealed(fleet_.run));
  }
  if (committed_ && !committed_->description.is_error() && !description.is_error()) {
    *response->mutable_committed() = ResultOf(*committed_);
    return grpc::Status::OK;
  }
  if (description.attempt() < description_.attempt()) {
    return ToGrpc(StaleAttempt(description.attempt(), description_.attempt()));
  }
  if (description.attempt() > description_.attempt()) bytes_.clear();
  description_ = description;
  response->set_upload_id("00112233445566778899aabbccddeeff");
  response->set_epoch(++epoch_);
  response->set_offset(static_cast<int64_t>(bytes_.size()));
  response->set_chunk_max(chunk_max);
  response->set_window(window);
  response->set_zstd_accepted(zstd);
  return grpc::Status::OK;
}

absl::Status TestPeer::ReceiveChunk(const v1::UploadRequest::Chunk& chunk, int64_t epoch) {
  ++chunks;
  std::string raw(static_cast<size_t>(chunk.raw_size()), '\0');
  if (chunk.raw_size() > kChunkMax) return errors::ChunkTooLarge(chunk.raw_size(), kChunkMax);
  if (chunk.encoding() == v1::UploadRequest::ENCODING_ZSTD) {
    const size_t limit = raw.size();
    RETURN_IF_ERROR(DecompressFrame(chunk.data(), limit, &raw));
    if (raw.size() != limit) return errors::InvalidChunk("not the size it says");
  } else {
    raw = chunk.data();
  }
  if (Crc32c(raw) != chunk.crc32c()) return errors::CrcMismatch("a chunk");
  MutexLock lock(mutex_);
  if (epoch != epoch_) return errors::TakenOver("it");
  const auto have = static_cast<int64_t>(bytes_.size());
  if (chunk.offset() != have) return errors::OffsetTooHigh(chunk.offset(), have);
  saw_zstd_ = saw_zstd_ || chunk.encoding() == v1::UploadRequest::ENCODING_ZSTD;
  bytes_ += raw;
  chunk_bytes += chunk.raw_size();
  return absl::OkStatus();
}

grpc::Status TestPeer::Upload(
    grpc::ServerContext*, grpc::ServerReaderWriter<v1::UploadResponse, v1::UploadRequest>* stream) {
  v1::UploadRequest request;
  int64_t epoch = 0;
  int64_t got = 0;
  int64_t unacknowledged = 0;
  std::future<bool> ahead;
  const auto next = [&] { return ahead.valid() ? ahead.get() : stream->Read(&request); };
  while (next()) {
    if (request.has_start()) {
      epoch = request.start().epoch();
    } else if (request.has_chunk()) {
      if (const auto status = ReceiveChunk(request.chunk(), epoch); !status.ok())
        return ToGrpc(status);
      got += request.chunk().raw_size();
      unacknowledged += request.chunk().raw_size();
      const int64_t end = request.chunk().offset() + request.chunk().raw_size();
      if (on_chunk) on_chunk(end);
      if (cut_after >= 0 && got >= cut_after) return {grpc::StatusCode::UNAVAILABLE, "cut"};
      // Acknowledges as late as the window permits: a sender that waits for more would stall.
      if (unacknowledged + kChunkMax > window) {
        if (probe_window.exchange(false)) {
          // A chunk before the acknowledgement exceeds the window.
          ahead = std::async(std::launch::async, [&] { return stream->Read(&request); });
          overrun = ahead.wait_for(std::chrono::milliseconds(500)) == std::future_status::ready;
        }
        v1::UploadResponse ack;
        ack.mutable_ack()->set_written(end);
        unacknowledged = 0;
        stream->Write(ack);
      }
    } else if (request.has_finish()) {
      const auto& finish = request.finish();
      MutexLock lock(mutex_);
      if (damage_digest > 0) {
        --damage_digest;
        return ToGrpc(errors::DigestMismatch());
      }
      if (finish.size() != static_cast<int64_t>(bytes_.size())) {
        return ToGrpc(errors::SizeMismatch(finish.size(), static_cast<int64_t>(bytes_.size())));
      }
      if (finish.crc32c() != Crc32c(bytes_)) return ToGrpc(errors::CrcMismatch("the whole"));
      if (finish.sha256() != Sha256(bytes_)) return ToGrpc(errors::DigestMismatch());
      auto result = Commit(description_, bytes_, finish.signature().value());
      if (!result.ok()) return ToGrpc(result.status());
      if (lose_answers > 0) {
        --lose_answers;
        return {grpc::StatusCode::UNAVAILABLE, "lost"};
      }
      v1::UploadResponse answer;
      *answer.mutable_committed() = *result;
      stream->Write(answer);
      return grpc::Status::OK;
    }
  }
  return grpc::Status::OK;
}

grpc::Status TestPeer::SubmitResult(grpc::ServerContext*, const v1::SubmitResultRequest* request,
                                    v1::Result* response) {
  if (judge) {
    if (const absl::Status verdict = judge(); !verdict.ok()) return ToGrpc(verdict);
  }
  if (request->crc32c() != Crc32c(request->body())) return ToGrpc(errors::CrcMismatch("the body"));
  if (request->sha256() != Sha256(request->body())) return ToGrpc(errors::DigestMismatch());
  MutexLock lock(mutex_);
  auto result = Commit(request->description(), request->body(), request->signature().value());
  if (!result.ok()) return ToGrpc(result.status());
  *response = *result;
  return grpc::Status::OK;
}

grpc::Status TestPeer::GetResult(grpc::ServerContext*, const v1::GetResultRequest* request,
                                 v1::Result* response) {
  if (judge_read) {
    if (const absl::Status verdict = judge_read(); !verdict.ok()) return ToGrpc(verdict);
  }
  *response->mutable_key() = request->key();
  response->set_outcome(v1::OUTCOME_PENDING);
  if (const auto result = committed(); result && result->description.key().SerializeAsString() ==
                                                     request->key().SerializeAsString()) {
    response->set_outcome(result->description.is_error() ? v1::OUTCOME_ERROR : v1::OUTCOME_GENUINE);
  }
  return grpc::Status::OK;
}

grpc::Status TestPeer::DeclineRedelivery(grpc::ServerContext*,
                                         const v1::DeclineRedeliveryRequest* request,
                                         v1::DeclineRedeliveryResponse*) {
  MutexLock lock(mutex_);
  declines_.push_back(request->reason());
  return grpc::Status::OK;
}

std::vector<std::string> TestPeer::declines() const {
  MutexLock lock(mutex_);
  return declines_;
}

}  // namespace muster::client
