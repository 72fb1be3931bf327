// All open uploads.
#ifndef MUSTER_SERVICES_AGGREGATOR_UPLOADS_UPLOADS_H_
#define MUSTER_SERVICES_AGGREGATOR_UPLOADS_UPLOADS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/aggregator/uploads/result_committer.h"
#include "services/aggregator/uploads/upload_quota.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/blob/blob_store.h"
#include "services/common/identity/identity.h"
#include "services/common/rpc/open_streams.h"
#include "services/common/store/state_store.h"
#include "services/common/upload/upload_pace.h"
#include "services/common/upload/upload_session.h"

namespace muster {

// The answer to OpenUpload.
struct OpenedUpload {
  std::string id;
  int64_t epoch = 0;
  int64_t offset = 0;
  UploadPace pace;
  int64_t expires_at = 0;
  std::optional<ResultRecord> committed;  // set: there is nothing to send
};

// Thread-safe. Methods other than Open, Find, Receives and those of streams may wait for the disk:
// call them on an executor other than `disk`, on which the sessions work. Callers wait until Open
// has answered before they destroy this.
class Uploads {
 public:
  using Limits = UploadLimits;
  using Opened = absl::AnyInvocable<void(absl::StatusOr<OpenedUpload>)>;

  // `streams` counts the streams that are attached.
  Uploads(StateStore& store, BlobStore& blobs, ResultCommitter& committer, Executor& disk,
          const Clock& clock, OpenStreams& streams, Limits limits);

  // Discards staged bytes that no upload in the store knows: what a crash between the two left.
  // Charges the senders of the other staged bytes for them. Before the first Open.
  absl::Status Recover();

  // Opens or takes over an upload for `opener`, without waiting. `upload` names key, attempt, size
  // and the rest; id, epoch and times are set here. `signed_at`: as in VerifiedResult. `opened` is
  // called once, by any thread, and must not block. INVALID_ATTEMPT, RESULT_TOO_LARGE (also of its
  // run); UPLOAD_IN_USE for a sender without proof while a stream of the owner is attached;
  // TOO_MANY_UPLOADS, but never for an upload that has a session, so that interrupted uploads can
  // be resumed at the limit.
  void Open(UploadRecord upload, const UploadPeer& opener, std::optional<absl::Time> signed_at,
            Opened opened);

  // The session of an upload that was opened since this process began; else UPLOAD_NOT_FOUND.
  absl::StatusOr<std::shared_ptr<UploadSession>> Find(std::string_view id) const;

  // Forgets a session whose result is committed.
  void Forget(const std::string& id);

  // Ends every upload of a run that was cancelled, deleted or sealed.
  void EndRun(const std::string& run, const absl::Status& why);

  // Ends the uploads of a sealed run, also those that were opened since the start of an earlier
  // process, but not those of damaged results: the same content is still accepted. After an error
  // the caller repeats the call.
  absl::Status EndUnawaited(const std::string& run, const absl::Status& why);

  // Ends every upload of a run and publishes what had arrived. After an error the caller repeats
  // the call a few seconds later. Partial data that many calls could not publish is discarded: an
  // I/O error that lasts must not prevent that the run is sealed.
  absl::StatusOr<std::vector<PartialData>> KeepPartials(const std::string& run);

  // Ends stalled streams, closes files that no stream uses, releases what their uploads are charged
  // for beyond their bytes, and forgets uploads that are over or
  // have expired. To be called every few seconds.
  void Sweep();

  // Returns whether a stream that delivers a result of this run is attached.
  bool Receives(const std::string& run) const;

  UploadQuota& quota() { return quota_; }

 private:
  // None: nothing is counted.
  using Ticket = std::optional<UploadQuota::SessionTicket>;

  // Passes results to the committer, and charges for their bytes.
  class Sink final : public ResultSink {
   public:
    Sink(ResultCommitter& committer, UploadQuota& quota) : committer_(committer), quota_(quota) {}

    absl::Status Reserve(std::string_view upload_id, int64_t size) override {
      return quota_.Grow(upload_id, size);
    }
    void Release(std::string_view upload_id) override { quota_.Clear(upload_id); }
    absl::Status CheckSignature(const VerifiedResult& verified) const override {
      return committer_.CheckSignature(verified);
    }
    void Commit(VerifiedResult verified, Done done) override {
      committer_.Commit(std::move(verified), std::move(done));
    }

   private:
    ResultCommitter& committer_;
    UploadQuota& quota_;
  };

  // A call of Open.
  struct Opening {
    // The ticket is released first: this may exist for longer than the uploads.
    void Answer(absl::StatusOr<OpenedUpload> result) {
      ticket.reset();
      opened(std::move(result));
    }

    UploadRecord upload;
    UploadPeer opener;
    std::optional<absl::Time> signed_at;
    Opened opened;
    Ticket ticket;  // for a new session, until it exists
  };

  struct OpenSession {
    std::shared_ptr<UploadSession> session;
    Ticket ticket;
    bool proven = false;  // as UploadRecord::proven of its last open
  };

  void BeginOpening(const std::shared_ptr<Opening>& opening) ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleStored(const std::shared_ptr<Opening>& opening, OpenUpload::Result outcome);
  void HandleReopened(const std::shared_ptr<Opening>& opening, const OpenUpload::Result& outcome,
                      const absl::StatusOr<int64_t>& offset);
  void AnswerCommitted(const std::shared_ptr<Opening>& opening, const ResultRecord& committed);
  bool OwnerDelivers(const ResultKey& key) const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ReserveSession(Opening& opening) ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<UploadSession> Session(const UploadRecord& upload, Opening* opening = nullptr)
      ABSL_LOCKS_EXCLUDED(mutex_);
  Ticket Remove(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);
  Ticket Abandon(const std::string& id, const UploadRecord& upload, const absl::Status& why);
  absl::Status AbandonStored(const UploadRecord& upload, const absl::Status& why);
  absl::StatusOr<int64_t> KeepPartial(const UploadRecord& upload, const std::string& name);
  void DiscardRestored(const std::string& run) ABSL_LOCKS_EXCLUDED(mutex_);
  void DiscardStaged(const std::string& id);
  bool GivesUpPartials(const std::string& run) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::shared_ptr<UploadSession>> OfRun(const std::string& run) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  StateStore& store_;
  BlobStore& blobs_;
  Executor& disk_;
  const Clock& clock_;
  const Limits limits_;
  UploadQuota quota_;
  Sink sink_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, OpenSession> sessions_ ABSL_GUARDED_BY(mutex_);  // by id
  std::set<std::pair<ResultKey, std::string>> ids_ ABSL_GUARDED_BY(mutex_);        // of sessions_
  // Failed calls of KeepPartials, by run.
  std::unordered_map<std::string, int> failed_keeps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_UPLOADS_UPLOADS_H_
