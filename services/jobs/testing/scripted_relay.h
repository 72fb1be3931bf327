// A root relay whose jobs do what a test says.
#ifndef MUSTER_SERVICES_JOBS_TESTING_SCRIPTED_RELAY_H_
#define MUSTER_SERVICES_JOBS_TESTING_SCRIPTED_RELAY_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "muster/v1/jobs.grpc.pb.h"
#include "services/common/base/mutex.h"
#include "testing/fixtures/test_fleet.h"

namespace muster::testing {

// Accepts every command, unless `answers` says otherwise. Records are those that the test adds.
// Thread-safe.
class ScriptedRelay final : public v1::JobService::Service {
 public:
  explicit ScriptedRelay(const TestFleet& fleet);
  ~ScriptedRelay() override;

  // Listens, on the previous port if there was one.
  void Start();
  void Stop();
  int port() const { return port_; }

  // The answers to the next submissions; an accepted one is OK. After them all are accepted.
  void AnswerWith(std::vector<grpc::Status> answers);
  // The answers to the next cancellations, in the same way.
  void AnswerCancelsWith(std::vector<grpc::Status> answers);
  // Submissions get no answer, and are not accepted, until `hangs` is false.
  void Hang(bool hangs);
  // The submitted job exists although the answer is an error.
  void KeepRefused() { keep_refused_ = true; }

  // Adds a record to a job; the position is its number.
  void AddRecord(const std::string& job, v1::JobRecord record);
  void End(const std::string& job, v1::JobState state);
  // Adds a record of a node that was given up, after the end.
  void AddLateRecord(const std::string& job, v1::JobRecord record);
  void Forget(const std::string& job);
  // Ends the streams of all watchers.
  void CutWatches();

  int submissions() const;
  std::vector<v1::CancelJobRequest> cancels() const;
  // Returns the positions from which a job was watched.
  std::vector<int64_t> watched_from() const;
  // Waits until the job was submitted; false after 30 s.
  bool AwaitJob(const std::string& job) const;

 private:
  struct Entry {
    v1::Job job;
    std::vector<v1::JobRecord> records;
  };

  grpc::Status SubmitJob(grpc::ServerContext* context, const v1::SubmitJobRequest* request,
                         v1::Job* response) override;
  grpc::Status GetJob(grpc::ServerContext* context, const v1::GetJobRequest* request,
                      v1::Job* response) override;
  grpc::Status CancelJob(grpc::ServerContext* context, const v1::CancelJobRequest* request,
                         v1::Job* response) override;
  // Creates the job of a submission if it is new.
  Entry& Accept(const v1::SubmitJobRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::WatchJobResponse>* writer) override;
  // Fills the next response; false if there is nothing new.
  bool Fill(const std::string& job, int64_t position, v1::WatchJobResponse* response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TestIdentity identity_;
  const std::string root_pem_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<grpc::Status> answers_ ABSL_GUARDED_BY(mutex_);
  std::vector<grpc::Status> cancel_answers_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::CancelJobRequest> cancels_ ABSL_GUARDED_BY(mutex_);
  bool hangs_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> keep_refused_ = false;
  std::map<std::string, Entry> jobs_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> watched_from_ ABSL_GUARDED_BY(mutex_);
  int submissions_ ABSL_GUARDED_BY(mutex_) = 0;
  int cuts_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_JOBS_TESTING_SCRIPTED_RELAY_H_
