#include "services/jobs/testing/scripted_relay.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/errors/jobs.h"
#include "services/common/rpc/status.h"

namespace muster::testing {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr absl::Duration kLook = absl::Milliseconds(50);  // whether a watcher has gone

// Removes the first answer and returns it; OK if there is none.
grpc::Status Next(std::vector<grpc::Status>& answers) {
  if (answers.empty()) return grpc::Status::OK;
  grpc::Status next = answers.front();
  answers.erase(answers.begin());
  return next;
}

}  // namespace

ScriptedRelay::ScriptedRelay(const TestFleet& fleet)
    : identity_(fleet.Issue(ServiceIdentity{ServiceRole::kRelay, std::string(kRootRelay)})),
      root_pem_(fleet.fleet_ca_pem()) {
  Start();
}

ScriptedRelay::~ScriptedRelay() { Stop(); }

void ScriptedRelay::Start() {
  grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  tls.pem_root_certs = root_pem_;
  tls.pem_key_cert_pairs.push_back({identity_.key_pem, identity_.chain_pem});
  grpc::ServerBuilder builder;
  builder.AddListeningPort(absl::StrCat("127.0.0.1:", port_), grpc::SslServerCredentials(tls),
                           &port_);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
}

void ScriptedRelay::Stop() {
  if (!server_) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
}

void ScriptedRelay::AnswerWith(std::vector<grpc::Status> answers) {
  MutexLock lock(mutex_);
  answers_ = std::move(answers);
}

void ScriptedRelay::AnswerCancelsWith(std::vector<grpc::Status> answers) {
  MutexLock lock(mutex_);
  cancel_answers_ = std::move(answers);
}

void ScriptedRelay::Hang(bool hangs) {
  MutexLock lock(mutex_);
  hangs_ = hangs;
  changed_.NotifyAll();
}

void ScriptedRelay::AddRecord(const std::string& job, v1::JobRecord record) {
  MutexLock lock(mutex_);
  record.set_job(job);
  jobs_[job].records.push_back(std::move(record));
  changed_.NotifyAll();
}

void ScriptedRelay::End(const std::string& job, v1::JobState state) {
  MutexLock lock(mutex_);
  jobs_[job].job.set_state(state);
  jobs_[job].job.mutable_end_time()->set_seconds(absl::ToUnixSeconds(absl::Now()));
  changed_.NotifyAll();
}

void ScriptedRelay::AddLateRecord(const std::string& job, v1::JobRecord record) {
  AddRecord(job, std::move(record));
  MutexLock lock(mutex_);
  v1::Job& late = jobs_[job].job;
  late.mutable_late_time()->set_seconds(late.late_time().seconds() + 1);
}

grpc::Status ScriptedRelay::GetJob(grpc::ServerContext* /*context*/,
                                   const v1::GetJobRequest* request, v1::Job* response) {
  MutexLock lock(mutex_);
  const auto found = jobs_.find(request->job());
  if (found == jobs_.end()) return ToGrpc(errors::JobNotFound(request->job()));
  *response = found->second.job;
  return grpc::Status::OK;
}

void ScriptedRelay::Forget(const std::string& job) {
  MutexLock lock(mutex_);
  jobs_.erase(job);
}

void ScriptedRelay::CutWatches() {
  MutexLock lock(mutex_);
  ++cuts_;
  changed_.NotifyAll();
}

int ScriptedRelay::submissions() const {
  MutexLock lock(mutex_);
  return submissions_;
}

std::vector<v1::CancelJobRequest> ScriptedRelay::cancels() const {
  MutexLock lock(mutex_);
  return cancels_;
}

std::vector<int64_t> ScriptedRelay::watched_from() const {
  MutexLock lock(mutex_);
  return watched_from_;
}

bool ScriptedRelay::AwaitJob(const std::string& job) const {
  MutexLock lock(mutex_);
  return changed_.WaitFor(mutex_, kPatience, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return jobs_.contains(job);
  });
}

ScriptedRelay::Entry& ScriptedRelay::Accept(const v1::SubmitJobRequest& request) {
  v1::Command command;
  command.ParseFromString(request.command().command());
  Entry& entry = jobs_[command.job()];
  if (entry.job.job().empty()) {
    entry.job.set_job(command.job());
    entry.job.set_state(v1::JOB_STATE_RUNNING);
    entry.job.set_targets(request.nodes_size());
  }
  changed_.NotifyAll();
  return entry;
}

grpc::Status ScriptedRelay::SubmitJob(grpc::ServerContext* context,
                                      const v1::SubmitJobRequest* request, v1::Job* response) {
  MutexLock lock(mutex_);
  ++submissions_;
  changed_.NotifyAll();
  while (hangs_) {
    if (context->IsCancelled()) return grpc::Status::CANCELLED;
    changed_.WaitFor(mutex_, kLook, [] { return false; });
  }
  const grpc::Status answer = Next(answers_);
  if (!answer.ok() && !keep_refused_) return answer;
  *response = Accept(*request).job;
  return answer;
}

grpc::Status ScriptedRelay::CancelJob(grpc::ServerContext*, const v1::CancelJobRequest* request,
                                      v1::Job* response) {
  MutexLock lock(mutex_);
  cancels_.push_back(*request);
  const grpc::Status answer = Next(cancel_answers_);
  if (!answer.ok()) return answer;
  if (!jobs_.contains(request->job())) {
    if (!request->has_submission()) return ToGrpc(errors::JobNotFound(request->job()));
    Accept(request->submission());
  }
  Entry& entry = jobs_[request->job()];
  if (entry.job.state() == v1::JOB_STATE_RUNNING) entry.job.set_state(v1::JOB_STATE_CANCELLED);
  *response = entry.job;
  changed_.NotifyAll();
  return grpc::Status::OK;
}

bool ScriptedRelay::Fill(const std::string& job, int64_t position, v1::WatchJobResponse* response) {
  response->Clear();
  const Entry& entry = jobs_[job];
  const auto end = static_cast<int64_t>(entry.records.size());
  if (position < end) *response->add_records() = entry.records[static_cast<size_t>(position)];
  response->set_position(std::min(position + 1, end));
  response->set_complete(response->position() == end && entry.job.state() != v1::JOB_STATE_RUNNING);
  *response->mutable_job() = entry.job;
  return response->records_size() > 0 || response->complete();
}

grpc::Status ScriptedRelay::WatchJob(grpc::ServerContext* context,
                                     const v1::WatchJobRequest* request,
                                     grpc::ServerWriter<v1::WatchJobResponse>* writer) {
  int64_t position = request->position();
  MutexLock lock(mutex_);
  watched_from_.push_back(position);
  if (!jobs_.contains(request->job())) return ToGrpc(errors::JobNotFound(request->job()));
  if (position > static_cast<int64_t>(jobs_[request->job()].records.size())) {
    return ToGrpc(errors::InvalidPosition(position));
  }
  const int cuts = cuts_;
  v1::WatchJobResponse response;
  Fill(request->job(), position, &response);
  for (bool first = true; !context->IsCancelled(); first = false) {
    if (cuts_ != cuts) return {grpc::StatusCode::UNAVAILABLE, "cut"};
    if (!first && !Fill(request->job(), position, &response)) {
      changed_.WaitFor(mutex_, kLook, [] { return false; });
      continue;
    }
    position = response.position();
    lock.Unlock();
    writer->Write(response);
    lock.Lock();
    if (response.complete()) return grpc::Status::OK;
  }
  return grpc::Status::CANCELLED;
}

}  // namespace muster::testing
