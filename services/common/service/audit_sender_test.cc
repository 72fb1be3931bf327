#include "services/common/service/audit_sender.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/audit.pb.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/errors/identity.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Record = v1::RecordServiceChangeRequest;
using Sender = AuditSender<Record>;

// The aggregator answers with `answer_`. The disk fails for the next `failing_marks_` records.
class AuditSenderTest : public ::testing::Test {
 protected:
  AuditSenderTest() {
    sender_ = std::make_unique<Sender>(
        Sender::Parts{.unaudited = [this](size_t) { return unaudited_; },
                      .mark_audited =
                          [this](const Record& record) {
                            if (failing_marks_-- > 0) {
                              return absl::ResourceExhaustedError("DISK_FULL");
                            }
                            std::erase_if(unaudited_, [&](const Record& other) {
                              return other.subject() == record.subject();
                            });
                            return absl::OkStatus();
                          },
                      .send =
                          [this](const Record& record, const Sender::Done& done) {
                            sent_.push_back(record.subject());
                            done(answer_);
                          },
                      .subject_of = [](const Record& record) { return record.subject(); },
                      .log_lost = [this](const Record& record,
                                         const std::string&) { lost_.push_back(record.subject()); },
                      .poll_after = kPoll},
        clock_, executor_);
    executor_.AwaitIdle();
  }

  void Add(const std::string& subject) { unaudited_.emplace_back().set_subject(subject); }
  void Advance(absl::Duration by) {
    clock_.Advance(by);
    executor_.AwaitIdle();
  }

  static constexpr absl::Duration kPoll = absl::Seconds(1);
  FakeClock clock_;
  Executor executor_{{"test", 1, 16}};
  absl::Status answer_;
  int failing_marks_ = 0;
  std::vector<Record> unaudited_;
  std::vector<std::string> sent_;
  std::vector<std::string> lost_;
  std::unique_ptr<Sender> sender_;  // last: it uses the members above
};

TEST_F(AuditSenderTest, RecordIsFoundWithoutAWake) {
  Add("a");
  EXPECT_THAT(sent_, IsEmpty());
  Advance(kPoll);
  EXPECT_THAT(sent_, ElementsAre("a"));
  Add("b");
  Advance(kPoll);
  EXPECT_THAT(sent_, ElementsAre("a", "b"));
  EXPECT_THAT(unaudited_, IsEmpty());
}

// A disk that cannot store that the record was sent does not make the sender busy.
TEST_F(AuditSenderTest, RecordThatCannotBeMarkedIsSentAgainLater) {
  failing_marks_ = 1;
  Add("a");
  Advance(kPoll);
  EXPECT_THAT(sent_, ElementsAre("a"));
  Advance(Sender::kRetryAfter - absl::Seconds(1));
  EXPECT_THAT(sent_, ElementsAre("a"));
  Advance(absl::Seconds(1));
  EXPECT_THAT(sent_, ElementsAre("a", "a"));
  EXPECT_THAT(unaudited_, IsEmpty());
}

TEST_F(AuditSenderTest, OnlyARejectedRecordIsLost) {
  answer_ = absl::UnimplementedError("an earlier aggregator");
  Add("a");
  Advance(kPoll);
  EXPECT_THAT(lost_, IsEmpty());
  answer_ = errors::RoleNotAllowed("spiffe://fleet.test/node/n", "RecordServiceChange", "operator");
  Advance(Sender::kRetryAfter);
  EXPECT_THAT(sent_, ElementsAre("a", "a"));
  EXPECT_THAT(lost_, ElementsAre("a"));
  EXPECT_THAT(unaudited_, IsEmpty());
}

}  // namespace
}  // namespace muster
