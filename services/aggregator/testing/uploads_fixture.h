// Uploads over a real store, for tests.
#ifndef MUSTER_SERVICES_AGGREGATOR_TESTING_UPLOADS_FIXTURE_H_
#define MUSTER_SERVICES_AGGREGATOR_TESTING_UPLOADS_FIXTURE_H_

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "services/aggregator/testing/test_state.h"
#include "services/aggregator/uploads/uploads.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/metrics.h"

namespace muster::testing {

inline const UploadPeer kPeer = {{kFleet, NodeIdentity{"n1"}}, {}};

// A run with the nodes "n1", "n2" and "n3".
class UploadsFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    state_.Plan({"n1", "n2", "n3"});
    Begin();
  }

  // As a process that starts over the same state.
  void Begin(Uploads::Limits limits = {.expiry = absl::Seconds(50)}) {
    uploads_.emplace(state_.store(), *blobs_, committer_, disk_, state_.clock, state_.streams(),
                     limits);
  }

  static UploadRecord Of(const std::string& node) {
    return {.key = KeyOf(node), .attempt = 1, .file_name = "f"};
  }

  absl::StatusOr<OpenedUpload> Open(const UploadRecord& upload) {
    return TestState::OpenAndWait(*uploads_, upload, kPeer);
  }

  // Waits for the tasks of the strand.
  void Settle(UploadSession& session) {
    std::promise<void> done;
    ASSERT_TRUE(session.strand().Post([&] { done.set_value(); }));
    done.get_future().wait();
  }

  // A stream that holds the upload; what ends it is in `ended_`.
  std::shared_ptr<UploadSession> Attach(const OpenedUpload& opened,
                                        const UploadPeer& peer = kPeer) {
    auto session = *uploads_->Find(opened.id);
    EXPECT_TRUE(session->strand().Post([&, session] {
      const auto attachment =
          session->Attach(opened.epoch, peer, [this](const absl::Status& why) { ended_ = why; });
      EXPECT_TRUE(attachment.ok()) << attachment.status();
      attachments_[opened.id] = attachment.value_or(UploadAttachment());
    }));
    Settle(*session);
    return session;
  }

  absl::Status TryAppend(UploadSession& session, const OpenedUpload& opened,
                         const std::string& data) {
    absl::Status appended;
    EXPECT_TRUE(session.strand().Post([&] {
      appended =
          session
              .Append(attachments_[opened.id], {.offset = opened.offset,
                                                .raw_size = static_cast<int64_t>(data.size()),
                                                .crc32c = Crc32c(data),
                                                .data = data})
              .status();
    }));
    Settle(session);
    return appended;
  }

  void Append(UploadSession& session, const OpenedUpload& opened, const std::string& data) {
    EXPECT_TRUE(TryAppend(session, opened, data).ok());
  }

  // Completes the upload as a result with these bytes, and waits for the outcome.
  absl::Status Complete(UploadSession& session, const OpenedUpload& opened,
                        const std::string& bytes) {
    std::promise<absl::Status> outcome;
    EXPECT_TRUE(session.strand().Post([&] {
      session.Complete(
          attachments_[opened.id],
          {.size = static_cast<int64_t>(bytes.size()), .crc32c = Crc32c(bytes)},
          [&](const absl::StatusOr<ResultRecord>& result) { outcome.set_value(result.status()); });
    }));
    return outcome.get_future().get();
  }

  void Detach(const OpenedUpload& opened) {
    const auto session = *uploads_->Find(opened.id);
    ASSERT_TRUE(session->strand().Post([&] { session->Detach(attachments_[opened.id]); }));
    Settle(*session);
  }

  TestState state_;
  BlobStore* blobs_ = &state_.blobs();
  Metrics metrics_;
  ResultCommitter committer_{state_.store(),       state_.blobs(), state_.executor(),
                             state_.clock,         kFleet,         state_.root().certificate(),
                             state_.revocations(), metrics_};
  std::optional<Uploads> uploads_;
  Executor disk_{{"disk", 1, 100}};
  absl::Status ended_;
  std::map<std::string, UploadAttachment> attachments_;  // by upload
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_AGGREGATOR_TESTING_UPLOADS_FIXTURE_H_
