#include "services/agent/attach/test_relay.h"

#include <chrono>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"
#include "services/agent/jobs/test_commands.h"
#include "services/common/base/secret_file.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr absl::Duration kLong = absl::Minutes(1);  // far more than any of this takes

void Write(const std::string& path, std::string_view text) {
  if (!WriteFileAtomically(path, text).ok()) std::abort();
}

}  // namespace

TestTree::TestTree() {
  const absl::Time now = absl::Now();
  const FleetRoot root = FleetRoot::Create(kTestFleet, PrivateKey::Generate().value(), now).value();
  const PrivateKey middle_key = PrivateKey::Generate().value();
  const Certificate middle = root.SignIntermediate(middle_key.public_key(), now).value();
  root_pem_ = root.certificate().ToPem();
  middle_pem_ = middle.ToPem();
  intermediate_ = std::make_unique<Intermediate>(
      Intermediate::Load(kTestFleet, middle_key, middle, root.certificate()).value());
}

TestTree::Credential TestTree::Issue(const FleetName& name, absl::Duration validity) const {
  const PrivateKey key = PrivateKey::Generate().value();
  const absl::Time now = absl::Now();
  const Certificate leaf =
      intermediate_->Issue(name, key.public_key(), {}, now, now + validity).value();
  return {leaf.ToPem() + middle_pem_, std::string(key.ToPkcs8Pem().value().view())};
}

void TestTree::WriteIdentity(const std::string& folder, const std::string& node,
                             absl::Duration validity) const {
  const Credential credential = Issue(NodeIdentity{node}, validity);
  Write(folder + "/key.pem", credential.key_pem);
  Write(folder + "/cert.pem", credential.chain_pem);
  Write(folder + "/ca.pem", root_pem_);
}

void TestTree::WriteNodeFolder(const std::string& folder, const std::string& node,
                               const std::vector<std::string>& relay_targets,
                               const std::string& command_ca_pem) const {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder + "/tls");
  WriteIdentity(folder + "/tls", node);
  const nlohmann::json json = {{"fleet", kTestFleet},
                               {"node", node},
                               {"aggregator_targets", nlohmann::json::array()},
                               {"status_targets", nlohmann::json::array()},
                               {"join_targets", nlohmann::json::array()},
                               {"relay_targets", relay_targets}};
  Write(folder + "/node.json", json.dump());
  Write(folder + "/command-ca.pem", command_ca_pem);
}

TestRelay::TestRelay(const TestTree& tree, std::string name)
    : credential_(tree.Issue(ServiceIdentity{ServiceRole::kRelay, std::move(name)})),
      root_pem_(tree.root_pem()) {}

TestRelay::~TestRelay() { Stop(); }

void TestRelay::Start() {
  grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  tls.pem_root_certs = root_pem_;
  tls.pem_key_cert_pairs.push_back({credential_.key_pem, credential_.chain_pem});
  grpc::ServerBuilder builder;
  builder.AddListeningPort(absl::StrCat("127.0.0.1:", port_), grpc::SslServerCredentials(tls),
                           &port_);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
}

void TestRelay::Stop() {
  if (!server_) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
}

std::string TestRelay::target() const { return absl::StrCat("127.0.0.1:", port_); }

v1::AttachResponse TestRelay::Greeting() const {
  const Certificate own = Certificate::FromPem(credential_.chain_pem).value();
  v1::AttachResponse response;
  response.mutable_greeting()->set_relay(own.Uri().value());
  response.mutable_greeting()->set_key_sha256(own.Key()->Sha256().value());
  if (spoil_greeting) spoil_greeting(*response.mutable_greeting());
  return response;
}

grpc::Status TestRelay::Attach(grpc::ServerContext* context, Stream* stream) {
  if (judge) {
    if (grpc::Status status = judge(); !status.ok()) return status;
  }
  Write(stream, Greeting());
  {
    MutexLock lock(mutex_);
    ++greetings_;
    changed_.NotifyAll();
  }
  v1::AttachRequest request;
  while (stream->Read(&request)) {
    if (request.has_hello()) Welcome(stream, request.hello());
    if (request.has_records()) Store(stream, request.records());
    MutexLock lock(mutex_);
    context_ = context;
    if (!request.has_beat()) continue;
    ++beats_;
    changed_.NotifyAll();
    if (beats) {
      v1::AttachResponse beat;
      beat.mutable_beat();
      stream->Write(beat);
    }
  }
  MutexLock lock(mutex_);
  if (stream_ == stream) stream_ = nullptr;
  changed_.NotifyAll();
  return grpc::Status::OK;
}

void TestRelay::Welcome(Stream* stream, const v1::AttachRequest::Hello& hello) {
  v1::AttachResponse response;
  ToProto(absl::Milliseconds(interval_ms.load()), response.mutable_welcome()->mutable_interval());
  response.mutable_welcome()->add_path("root");
  response.mutable_welcome()->set_connected(connected);
  MutexLock lock(mutex_);
  const bool first = stream_ != stream;
  stream_ = stream;
  hellos_.push_back(hello);
  changed_.NotifyAll();
  if (first) stream->Write(response);
}

void TestRelay::Store(Stream* stream, const v1::JobRecords& records) {
  v1::AttachResponse response;
  MutexLock lock(mutex_);
  for (const v1::JobRecord& record : records.records()) {
    ToldJob& job = jobs_[record.job()];
    if (record.sequence() == job.reached + 1) {  // else it is here, or has to come again
      job.reached = record.sequence();
      job.out += record.output().data();
      if (record.has_final()) job.final = record.final();
    }
    auto& reached = *response.mutable_records_ack()->add_reached();
    reached.set_job(record.job());
    reached.set_node(record.node());
    reached.set_sequence(job.reached);
  }
  changed_.NotifyAll();
  if (acknowledges) stream->Write(response);
}

void TestRelay::Write(Stream* stream, const v1::AttachResponse& message) {
  MutexLock lock(mutex_);
  stream->Write(message);
}

bool TestRelay::Send(const v1::AttachResponse& message) {
  MutexLock lock(mutex_);
  return stream_ != nullptr && stream_->Write(message);
}

void TestRelay::GreetAgain() { Send(Greeting()); }

void TestRelay::CutStream() {
  MutexLock lock(mutex_);
  if (stream_ != nullptr && context_ != nullptr) context_->TryCancel();
}

bool TestRelay::AwaitHellos(int count) {
  MutexLock lock(mutex_);
  return changed_.WaitFor(mutex_, kLong, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return static_cast<int>(hellos_.size()) >= count;
  });
}

bool TestRelay::AwaitBeats(int count) {
  MutexLock lock(mutex_);
  return changed_.WaitFor(mutex_, kLong,
                          [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return beats_ >= count; });
}

bool TestRelay::AwaitGreetings(int count) {
  MutexLock lock(mutex_);
  return changed_.WaitFor(
      mutex_, kLong, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return greetings_ >= count; });
}

bool TestRelay::AwaitNobody() {
  MutexLock lock(mutex_);
  return changed_.WaitFor(
      mutex_, kLong, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stream_ == nullptr; });
}

bool TestRelay::AwaitJob(const std::string& job,
                         const std::function<bool(const ToldJob&)>& enough) {
  MutexLock lock(mutex_);
  return changed_.WaitFor(
      mutex_, kLong, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return enough(jobs_[job]); });
}

ToldJob TestRelay::job(const std::string& job) const {
  MutexLock lock(mutex_);
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? ToldJob() : found->second;
}

std::vector<v1::AttachRequest::Hello> TestRelay::hellos() const {
  MutexLock lock(mutex_);
  return hellos_;
}

}  // namespace muster
