// Fakes for tests of uploads: a sink that commits to memory, and a fixture with a session.
#ifndef MUSTER_SERVICES_COMMON_UPLOAD_TESTING_UPLOAD_FIXTURE_H_
#define MUSTER_SERVICES_COMMON_UPLOAD_TESTING_UPLOAD_FIXTURE_H_

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/blob/blob_test_util.h"
#include "services/common/blob/files/files_blob_store.h"
#include "services/common/errors/results.h"
#include "services/common/store/sqlite/sqlite_harness.h"
#include "services/common/upload/upload_session.h"

namespace muster::testing {

inline constexpr char kUploadRun[] = "00112233aabbccdd";
inline const UploadPeer kPeer = {{"f.muster", NodeIdentity{"n1"}}, {}};

inline UploadChunk Chunk(int64_t offset, const std::string& data) {
  return {.offset = offset,
          .raw_size = static_cast<int64_t>(data.size()),
          .crc32c = Crc32c(data),
          .data = data};
}

inline UploadFinish FinishOf(const std::string& data) {
  return {.size = static_cast<int64_t>(data.size()),
          .crc32c = Crc32c(data),
          .sha256 = DigestBytes(Sha256::Of(data))};
}

// Commits results to memory by the rules of the store: the last open of an upload owns it, and
// another content than the first is a conflict. Not thread-safe.
class FakeSink : public ResultSink {
 public:
  struct Held {
    VerifiedResult verified;
    Done done;
  };

  absl::Status CheckSignature(const VerifiedResult&) const override { return signature; }

  void Release(std::string_view upload_id) override { released.emplace_back(upload_id); }

  void Commit(VerifiedResult verified, Done done) override {
    if (hold) {
      held.push_back({std::move(verified), std::move(done)});
    } else {
      done(Decide(verified));
    }
  }

  // Decides a commit that was held.
  absl::StatusOr<ResultRecord> Decide(size_t index) {
    const auto result = Decide(held[index].verified);
    held[index].done(result);
    return result;
  }

  const ResultRecord* Find(const std::string& node) const {
    const auto it = results.find(node);
    return it == results.end() ? nullptr : &it->second;
  }

  absl::Status signature;
  bool hold = false;
  std::vector<Held> held;
  std::vector<std::string> released;
  std::map<std::string, int64_t> epochs;        // by upload: of its last open
  std::map<std::string, ResultRecord> results;  // by node

 private:
  absl::StatusOr<ResultRecord> Decide(const VerifiedResult& verified) {
    const ResultRecord& result = verified.result;
    if (verified.epoch != epochs[verified.upload_id]) return errors::TakenOver(verified.upload_id);
    const auto [head, inserted] = results.try_emplace(result.key.node, result);
    if (!inserted && head->second.sha256 != result.sha256) {
      return errors::ResultConflict(result.key.plugin, result.key.node);
    }
    return head->second;
  }
};

// The session runs on the test's own thread, as if that were its strand; Settle waits for tasks
// that it posts to its strand itself.
class UploadSessionTest : public ::testing::Test {
 protected:
  // Opens an upload as a sender does before each stream.
  UploadRecord OpenUpload(const std::string& id = "u1", const std::string& node = "n1") {
    UploadRecord upload;
    upload.id = id;
    upload.key = {kUploadRun, "facts", node};
    upload.attempt = 1;
    upload.size = -1;
    upload.epoch = ++sink_.epochs[id];
    return upload;
  }

  std::shared_ptr<UploadSession> Session(const UploadRecord& upload) {
    return Session(upload, *blobs_);
  }
  std::shared_ptr<UploadSession> Session(const UploadRecord& upload, BlobStore& blobs) {
    return std::make_shared<UploadSession>(upload, blobs, sink_, executor_, clock_);
  }

  // Returns a session of the upload, to which a stream is attached.
  std::shared_ptr<UploadSession> Attached(UploadRecord upload) {
    upload_ = std::move(upload);
    auto session = Session(upload_);
    EXPECT_TRUE(session->Reopen(upload_, kPeer).ok());
    Attach(*session);
    return session;
  }
  std::shared_ptr<UploadSession> Attached() { return Attached(OpenUpload()); }

  // Attaches a stream, as which Append and Complete act from here on.
  UploadAttachment Attach(UploadSession& session) {
    const auto attachment =
        session.Attach(upload_.epoch, kPeer, [this](const absl::Status& why) { detached_ = why; });
    EXPECT_TRUE(attachment.ok()) << attachment.status();
    return attachment_ = attachment.value_or(UploadAttachment());
  }

  absl::StatusOr<int64_t> Append(UploadSession& session, UploadChunk chunk) {
    ASSIGN_OR_RETURN(const auto ack, session.Append(attachment_, std::move(chunk)));
    return ack.written;
  }

  // Completes as the attached stream, and waits for the outcome.
  absl::StatusOr<ResultRecord> Complete(UploadSession& session, const UploadFinish& finish) {
    std::promise<absl::StatusOr<ResultRecord>> answer;
    const bool queued = session.strand().Post([&] {
      session.Complete(attachment_, finish, [&](absl::StatusOr<ResultRecord> result) {
        answer.set_value(std::move(result));
      });
    });
    if (!queued) return absl::InternalError("the strand is full");
    return answer.get_future().get();
  }

  // Begins to complete as `attachment`; the outcome is stored in the result.
  static std::shared_ptr<absl::StatusOr<ResultRecord>> BeginComplete(
      UploadSession& session, const UploadAttachment& attachment, const std::string& data) {
    auto outcome = std::make_shared<absl::StatusOr<ResultRecord>>(absl::UnknownError("no answer"));
    session.Complete(attachment, FinishOf(data),
                     [outcome](absl::StatusOr<ResultRecord> result) { *outcome = result; });
    return outcome;
  }

  void Settle(UploadSession& session) {
    std::promise<void> done;
    ASSERT_TRUE(session.strand().Post([&] { done.set_value(); }));
    done.get_future().wait();
  }

  std::string Stored(const std::string& node) {
    const ResultRecord* const result = sink_.Find(node);
    if (result == nullptr) return "no result";
    return result->blob.empty() ? result->body : ReadAll(**blobs_->Open(result->blob, 0));
  }

  TempFolder folder_;
  std::unique_ptr<BlobStore> blobs_ = *OpenFilesBlobStore({.root = folder_ / "blobs"});
  FakeClock clock_;
  Executor executor_{{"strand", 1, 100}};
  FakeSink sink_;
  UploadRecord upload_;
  UploadAttachment attachment_;
  absl::Status detached_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_COMMON_UPLOAD_TESTING_UPLOAD_FIXTURE_H_
