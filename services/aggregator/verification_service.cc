#include "services/aggregator/verification_service.h"

#include <pthread.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "services/aggregator/convert.h"
#include "services/aggregator/verify/blob_sweep.h"
#include "services/aggregator/verify/store_cursor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/status_macros.h"
#include "services/common/identity/identity.h"

namespace muster {
namespace {

constexpr int64_t kStepBytes = int64_t{4} << 20;  // between two responses
// Each reads as fast as the disk, and has a thread for the check of the database.
constexpr StreamLimits kVerifications = {.in_all = 4, .of_caller = 2};
constexpr int64_t kSweepStep = 1000;  // blobs and runs between two responses

// Checks the database on its own thread, because that may take minutes. Thread-safe.
class StateCheck {
 public:
  // `ended` is called on the thread.
  StateCheck(StateStore& store, std::function<void()> ended)
      : thread_([this, &store, ended = std::move(ended)] {
          const absl::Status status = store.CheckState(stop_);
          {
            MutexLock lock(mutex_);
            outcome_ = status;
          }
          ended();
        }) {
    pthread_setname_np(thread_.native_handle(), "verify");
  }

  ~StateCheck() {
    stop_ = true;
    thread_.join();
  }

  // Returns nothing while the check runs.
  std::optional<absl::Status> outcome() const {
    MutexLock lock(mutex_);
    return outcome_;
  }

 private:
  std::atomic<bool> stop_ = false;
  mutable Mutex mutex_;
  std::optional<absl::Status> outcome_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // declared last: starts after all other members
};

class VerifySource : public StreamSource<v1::VerifyStoreResponse> {
 public:
  VerifySource(StateStore& store, BlobStore& blobs, StoreCursor cursor, bool all,
               const std::function<void()>& wake)
      : store_(store), blobs_(blobs), cursor_(std::move(cursor)), all_(all) {
    if (all) check_ = std::make_unique<StateCheck>(store, wake);
  }

  absl::StatusOr<Pull> Next(v1::VerifyStoreResponse* response) override {
    response->Clear();
    if (complete_) return Pull::kEnd;
    if (!read_) {
      RETURN_IF_ERROR(sweep_ ? Sweep() : Compare(response));
    } else if (check_ != nullptr) {
      const auto outcome = check_->outcome();
      if (!outcome) return Pull::kWait;
      // Another failure is no damage: the check could not run.
      if (!outcome->ok() && !absl::IsDataLoss(*outcome)) return *outcome;
      if (!outcome->ok()) response->set_database_damage(std::string(outcome->message()));
      complete_ = true;
    }
    complete_ = complete_ || (read_ && check_ == nullptr);
    response->set_results(results_);
    response->set_bytes(bytes_);
    response->set_removed_files(removed_);
    response->set_complete(complete_);
    return Pull::kMessage;
  }

 private:
  absl::Status Compare(v1::VerifyStoreResponse* response) {
    ASSIGN_OR_RETURN(const VerifyStep step, cursor_.Step(kStepBytes));
    results_ += step.objects;
    bytes_ += step.bytes;
    for (const DamagedObject& object : step.damaged) {
      v1::DamagedResult* damaged = response->add_damaged();
      damaged->mutable_key()->set_run(object.key.run);
      damaged->mutable_key()->set_plugin(object.key.plugin);
      damaged->mutable_key()->set_node(object.key.node);
      damaged->set_generation(object.generation);
      damaged->set_damage(object.damage);
      damaged->set_redelivery(object.redelivery);
    }
    if (!step.end) return absl::OkStatus();
    if (all_) {
      sweep_.emplace(store_, blobs_);
    } else {
      read_ = true;
    }
    return absl::OkStatus();
  }

  absl::Status Sweep() {
    for (int64_t done = 0; done < kSweepStep && !read_;) {
      ASSIGN_OR_RETURN(const BlobSweep::Step step, sweep_->Advance());
      removed_ += step.removed;
      done += 1 + step.listed;
      read_ = step.end;
    }
    return absl::OkStatus();
  }

  StateStore& store_;
  BlobStore& blobs_;
  StoreCursor cursor_;
  const bool all_;
  std::unique_ptr<StateCheck> check_;  // null: of one run
  int64_t results_ = 0;
  int64_t bytes_ = 0;
  int64_t removed_ = 0;
  std::optional<BlobSweep> sweep_;  // after every result was compared
  bool read_ = false;               // every result was compared, and the blobs were swept
  bool complete_ = false;
};

}  // namespace

grpc::ServerWriteReactor<v1::VerifyStoreResponse>* VerificationService::VerifyStore(
    grpc::CallbackServerContext* context, const v1::VerifyStoreRequest* request) {
  return StartSourceStream<v1::VerifyStoreResponse>(
      runtime_, context, "/muster.v1.VerificationService/VerifyStore", kVerifications,
      [this, run = request->run()](Call& call, const std::function<void()>& wake)
          -> absl::StatusOr<std::unique_ptr<StreamSource<v1::VerifyStoreResponse>>> {
        const bool all = run.empty();
        if (!all) RETURN_IF_ERROR(CheckRunId(run));
        RETURN_IF_ERROR(call.Authorize(all ? Resource::Fleet() : Resource::Run(run)));
        StoreCursor cursor(store_, blobs_, clock_, ActorOf(call.caller()), run,
                           {.read_failures = &failures_});
        return std::make_unique<VerifySource>(store_, blobs_, std::move(cursor), all, wake);
      });
}

}  // namespace muster
