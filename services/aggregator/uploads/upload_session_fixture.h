// What the tests of upload sessions share.
#ifndef MUSTER_SERVICES_AGGREGATOR_UPLOADS_UPLOAD_SESSION_FIXTURE_H_
#define MUSTER_SERVICES_AGGREGATOR_UPLOADS_UPLOAD_SESSION_FIXTURE_H_

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "services/aggregator/testing/test_state.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/blob/blob_test_util.h"
#include "services/common/upload/upload_session.h"

namespace muster {

inline const UploadPeer kPeer = {{testing::kFleet, NodeIdentity{"n1"}}, {}};

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

// Holds each commit until the test decides it, or passes it on.
class HeldSink : public ResultSink {
 public:
  struct Held {
    VerifiedResult verified;
    Done done;
  };

  absl::Status CheckSignature(const VerifiedResult&) const override { return signature; }

  void Commit(VerifiedResult verified, Done done) override {
    held.push_back({std::move(verified), std::move(done)});
  }

  absl::Status signature;
  std::vector<Held> held;
};

// The session runs on the test's own thread, as if that were its strand.
class UploadSessionTest : public ::testing::Test {
 protected:
  void SetUp() override { state_.Plan({"n1", "n2"}); }

  // Opens "u1" for n1 as a sender does before each stream.
  UploadRecord OpenInStore() {
    return state_.Apply(Opening(KeyOf("n1"), "u1", 1, kCreated)).upload;
  }

  std::shared_ptr<UploadSession> Session(const UploadRecord& upload, ResultSink& sink) {
    return std::make_shared<UploadSession>(upload, state_.blobs(), sink, state_.executor(),
                                           state_.clock);
  }
  std::shared_ptr<UploadSession> Session(const UploadRecord& upload) {
    return Session(upload, committer_);
  }

  // A session to which a stream is attached.
  std::shared_ptr<UploadSession> Attached(ResultSink& sink) {
    upload_ = OpenInStore();
    auto session = Session(upload_, sink);
    EXPECT_TRUE(session->Reopen(upload_, kPeer).ok());
    Attach(*session);
    return session;
  }
  std::shared_ptr<UploadSession> Attached() { return Attached(committer_); }

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

  absl::StatusOr<ResultRecord> Complete(UploadSession& session, const UploadFinish& finish) {
    std::promise<absl::StatusOr<ResultRecord>> answer;
    session.Complete(attachment_, finish, [&](absl::StatusOr<ResultRecord> result) {
      answer.set_value(std::move(result));
    });
    return answer.get_future().get();
  }

  // Begins to complete, as `attachment`; what comes of it goes to the result.
  static std::shared_ptr<absl::StatusOr<ResultRecord>> BeginComplete(
      UploadSession& session, const UploadAttachment& attachment, const std::string& data) {
    auto outcome = std::make_shared<absl::StatusOr<ResultRecord>>(absl::UnknownError("no answer"));
    session.Complete(attachment, FinishOf(data),
                     [outcome](absl::StatusOr<ResultRecord> result) { *outcome = result; });
    return outcome;
  }

  // Lets the committer decide a commit that is held; returns after the session has its outcome.
  absl::StatusOr<ResultRecord> Decide(size_t index) {
    HeldSink::Held& held = held_.held[index];
    std::promise<absl::StatusOr<ResultRecord>> decided;
    committer_.Commit(std::move(held.verified), [&](absl::StatusOr<ResultRecord> result) {
      decided.set_value(std::move(result));
    });
    const auto result = decided.get_future().get();
    held.done(result);
    return result;
  }

  std::string Stored(const std::string& node) {
    const auto result = **state_.store().GetResult(KeyOf(node));
    return result.blob.empty() ? result.body : ReadAll(**state_.blobs().Open(result.blob, 0));
  }

  testing::TestState state_;
  Committer committer_{state_.store(),      state_.blobs(),  state_.executor(),
                       state_.clock,        testing::kFleet, state_.root().certificate(),
                       state_.revocations()};
  HeldSink held_;
  UploadRecord upload_;
  UploadAttachment attachment_;
  absl::Status detached_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_UPLOADS_UPLOAD_SESSION_FIXTURE_H_
