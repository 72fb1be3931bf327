// Creates, ends and deletes runs.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUNS_RUNS_H_
#define MUSTER_SERVICES_AGGREGATOR_RUNS_RUNS_H_

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/aggregator/runs/authorities.h"
#include "services/aggregator/uploads/uploads.h"
#include "services/common/base/clock.h"
#include "services/common/blob/blob_store.h"
#include "services/common/store/state_store.h"

namespace muster {

// An operator's request.
struct NewRun {
  std::string request_id;
  std::string title;
  Actor created_by;
  std::vector<std::string> plugins;
  std::vector<std::string> nodes;
  absl::Duration timeout = absl::Hours(6);
  absl::Duration seal_grace = absl::Seconds(120);
  std::optional<absl::Duration> start_grace;  // nullopt: derived from the plugins
  absl::Duration lost_after = absl::Minutes(3);
  bool fail_fast = false;
};

// Thread-safe. Its methods may wait for the disk.
class Runs {
 public:
  // `hosts`: the hosts in the certificates and addresses of the runs' listeners. If `host_pattern`
  // (run_host.h) is not empty, each run has its own host name instead.
  Runs(StateStore& store, BlobStore& blobs, Uploads& uploads, Authorities& authorities,
       const Clock& clock, std::vector<std::string> hosts, std::string host_pattern)
      : store_(store),
        blobs_(blobs),
        uploads_(uploads),
        authorities_(authorities),
        clock_(clock),
        hosts_(std::move(hosts)),
        host_pattern_(std::move(host_pattern)) {}

  // Fails as RunService.CreateRun does.
  absl::StatusOr<RunRecord> Create(const NewRun& wanted);

  absl::StatusOr<RunRecord> Get(const std::string& run);

  // Ends a run; a run that has ended remains unchanged.
  absl::StatusOr<RunRecord> Cancel(const std::string& run, const std::string& reason,
                                   const Actor& actor);

  // Deletes a run that has ended, with all its blobs. RemoveLeftBlobs removes those that cannot be
  // removed now. `rule`: as in the command DeleteRun.
  absl::Status Delete(const std::string& run, const Actor& actor, const std::string& rule = "");

  // Removes blobs of deleted runs that a crash or a failure left, if there may be any. To be called
  // every few seconds, by one thread at a time.
  absl::Status RemoveLeftBlobs();

  // Pins or unpins a run.
  absl::StatusOr<RunRecord> Pin(const std::string& run, bool pinned, const Actor& actor);

 private:
  absl::Status RemoveBlobsOfUnknownRuns();

  StateStore& store_;
  BlobStore& blobs_;
  Uploads& uploads_;
  Authorities& authorities_;
  const Clock& clock_;
  const std::vector<std::string> hosts_;
  const std::string host_pattern_;
  std::atomic<bool> blobs_left_ = true;  // a crash may have been the reason of this start
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUNS_RUNS_H_
