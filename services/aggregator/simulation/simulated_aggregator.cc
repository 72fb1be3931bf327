#include "services/aggregator/simulation/simulated_aggregator.h"

#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/match.h"
#include "services/aggregator/runs/sealer.h"
#include "services/aggregator/simulation/simulated_fleet.h"
#include "services/common/base/status_macros.h"
#include "services/common/blob/files/files_blob_store.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/key_wrap.h"
#include "services/common/store/sqlite/simulated_vfs.h"

namespace muster::testing {
namespace {

constexpr char kActor[] = "spiffe://f.muster/user/ann";

}  // namespace

SimulatedAggregator::SimulatedAggregator(SimulatedDisk& disk, FakeClock& clock)
    : disk_(disk), clock_(clock) {}

absl::StatusOr<std::unique_ptr<SimulatedAggregator>> SimulatedAggregator::Start(SimulatedDisk& disk,
                                                                                FakeClock& clock) {
  std::unique_ptr<SimulatedAggregator> life(new SimulatedAggregator(disk, clock));
  RETURN_IF_ERROR(life->Begin());
  return life;
}

absl::Status SimulatedAggregator::Begin() {
  SqliteStoreOptions options;
  options.path = "/m/state.db";
  options.readers = 1;
  options.idle_checkpoint_pages = 60;
  options.on_fatal = [this](const absl::Status&) { failed_ = true; };
  ASSIGN_OR_RETURN(store_, OpenSqliteStore(std::move(options), disk_));
  store_->AwaitIdle();
  disk_.BeforeCall([this] {
    if (!sqlite::SimulatedVfs::InCall()) store_->AwaitIdle();
  });
  sqlite::SimulatedVfs::BeforeReads([this] { store_->AwaitIdle(); });
  ASSIGN_OR_RETURN(blobs_, OpenFilesBlobStore({.root = "/m/blobs", .sync_every = 20'000}, disk_));
  const SimulatedFleet& fleet = SimulatedFleet::Get();
  authorities_.emplace(fleet.intermediate(),
                       *KeyWrap::OpenOrCreate(::testing::TempDir() + "/simulation.key"), *store_,
                       clock_);
  committer_.emplace(*store_, *blobs_, work_, clock_, SimulatedFleet::kName, fleet.root(),
                     revocations_, metrics_);
  uploads_.emplace(*store_, *blobs_, *committer_, work_, clock_, streams_,
                   Uploads::Limits{.expiry = kExpiry});
  runs_.emplace(*store_, *blobs_, *uploads_, *authorities_, clock_,
                std::vector<std::string>{"host"}, "");
  return uploads_->Recover();
}

SimulatedAggregator::~SimulatedAggregator() {
  if (store_ != nullptr) Settle();
  runs_.reset();
  uploads_.reset();
  blobs_.reset();
  disk_.BeforeCall(nullptr);
  sqlite::SimulatedVfs::BeforeReads(nullptr);
}

void SimulatedAggregator::Settle() {
  // An answer of the store may lead to work on the disk, and the reverse.
  for (int i = 0; i < 3; ++i) {
    store_->AwaitIdle();
    work_.AwaitIdle();
  }
  store_->AwaitIdle();
}

template <typename T>
T SimulatedAggregator::OnStrand(UploadSession& session, const std::function<T()>& work) {
  std::promise<T> promise;
  if (!session.strand().Post([&] { promise.set_value(work()); })) std::abort();
  T result = promise.get_future().get();
  Settle();
  return result;
}

absl::StatusOr<OpenedUpload> SimulatedAggregator::Open(const UploadRecord& upload,
                                                       const UploadPeer& peer) {
  std::promise<absl::StatusOr<OpenedUpload>> answer;
  uploads_->Open(upload, peer, std::nullopt,
                 [&](absl::StatusOr<OpenedUpload> opened) { answer.set_value(std::move(opened)); });
  auto opened = answer.get_future().get();
  Settle();
  return opened;
}

absl::StatusOr<UploadAttachment> SimulatedAggregator::Attach(UploadSession& session, int64_t epoch,
                                                             const UploadPeer& peer) {
  return OnStrand<absl::StatusOr<UploadAttachment>>(
      session, [&] { return session.Attach(epoch, peer, [](const absl::Status&) {}); });
}

absl::StatusOr<UploadAck> SimulatedAggregator::Append(UploadSession& session,
                                                      const UploadAttachment& attachment,
                                                      UploadChunk chunk) {
  return OnStrand<absl::StatusOr<UploadAck>>(
      session, [&] { return session.Append(attachment, std::move(chunk)); });
}

absl::StatusOr<ResultRecord> SimulatedAggregator::Complete(UploadSession& session,
                                                           const UploadAttachment& attachment,
                                                           const UploadFinish& finish) {
  std::promise<absl::StatusOr<ResultRecord>> answer;
  const bool queued = session.strand().Post([&] {
    session.Complete(attachment, finish, [&](absl::StatusOr<ResultRecord> result) {
      answer.set_value(std::move(result));
    });
  });
  if (!queued) std::abort();
  auto result = answer.get_future().get();
  Settle();
  if (!result.ok()) {
    Detach(session, attachment);
    return result;
  }
  uploads_->Forget(session.id());
  OnStrand<bool>(session, [&] {
    session.Close();
    return true;
  });
  return result;
}

void SimulatedAggregator::Detach(UploadSession& session, const UploadAttachment& attachment) {
  OnStrand<bool>(session, [&] {
    session.Detach(attachment);
    return true;
  });
}

absl::StatusOr<ResultRecord> SimulatedAggregator::Commit(VerifiedResult verified) {
  std::promise<absl::StatusOr<ResultRecord>> answer;
  committer_->Commit(std::move(verified), [&](absl::StatusOr<ResultRecord> result) {
    answer.set_value(std::move(result));
  });
  auto result = answer.get_future().get();
  Settle();
  return result;
}

absl::Status SimulatedAggregator::Cancel(const std::string& run) {
  const absl::Status cancelled = runs_->Cancel(run, "", kActor).status();
  Settle();
  return cancelled;
}

absl::Status SimulatedAggregator::Delete(const std::string& run) {
  const absl::Status deleted = runs_->Delete(run, kActor);
  Settle();
  return deleted;
}

absl::Status SimulatedAggregator::TimeOut(const std::string& run) {
  const absl::Status ended =
      store_
          ->ApplyAndWait(
              TimeOutRun{run, "the deadline passed", absl::ToUnixMicros(clock_.Now()), kActor})
          .status();
  Settle();
  return ended;
}

absl::Status SimulatedAggregator::Seal(const std::string& run) {
  Metrics metrics;
  bool failed = false;
  RedeliveryWait redeliveries(*store_, *blobs_, clock_, kActor);
  {
    Sealer sealer(
        *store_, *blobs_, *uploads_, disk_, "/m", clock_, redeliveries, kActor,
        [&](const std::string&) { failed = true; }, metrics);
    sealer.Seal(run);
  }
  Settle();
  const auto damaged = store_->DamagedResults();
  if ((damaged.ok() && *damaged > 0) ||
      !absl::StrContains(metrics.Text(), "muster_seal_damaged_results_total 0\n")) {
    return absl::DataLossError("a result is damaged");
  }
  if (failed) return absl::UnavailableError("the archive was not built");
  uploads_->EndRun(run, errors::RunSealed(run));
  Settle();
  return absl::OkStatus();
}

// On the thread of the uploads: their tasks follow after the sweep.
void SimulatedAggregator::SweepUploads() {
  if (!work_.Post([this] { uploads_->Sweep(); })) std::abort();
  work_.AwaitIdle();
  Settle();
}

}  // namespace muster::testing
