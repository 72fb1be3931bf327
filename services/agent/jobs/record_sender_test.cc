#include "services/agent/jobs/record_sender.h"

#include <atomic>
#include <cerrno>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/simulated_disk.h"
#include "services/common/jobs/final_record.h"

namespace muster {
namespace {

v1::JobRecord Output(const std::string& text) {
  v1::JobRecord record;
  record.mutable_output()->set_stream(v1::JOB_STREAM_STDOUT);
  record.mutable_output()->set_data(text);
  return record;
}

v1::JobRecord Final() { return FinalRecord(v1::JOB_OUTCOME_EXITED, "", ""); }

class RecordSenderTest : public ::testing::Test {
 protected:
  RecordSenderTest() {
    for (const char* job : {"a", "b"}) {
      outboxes_[job] = RecordOutbox::Create(disk_, absl::StrCat("/", job), job, "n1").value();
      sender_.Add(job, *outboxes_[job]);
    }
  }

  void Append(const std::string& job, const v1::JobRecord& record) {
    ASSERT_TRUE(outboxes_[job]->Append(record).ok());
  }

  // The next records, as "JOB:SEQUENCE", with "!" for a signed one.
  std::string Next() {
    v1::JobRecords records;
    const bool any = sender_.NextRecords(&records);
    EXPECT_EQ(any, records.records_size() > 0);
    std::string next;
    for (const v1::JobRecord& record : records.records()) {
      absl::StrAppend(&next, next.empty() ? "" : " ", record.job(), ":", record.sequence(),
                      record.final().has_signature() ? "!" : "");
    }
    return next;
  }

  void Ack(const std::string& job, int64_t sequence, const std::string& node = "n1") {
    v1::RecordsAck acks;
    auto& reached = *acks.add_reached();
    reached.set_job(job);
    reached.set_node(node);
    reached.set_sequence(sequence);
    sender_.HandleAcks(acks);
  }

  void Advance(absl::Duration by) {
    clock_.Advance(by);
    executor_.AwaitIdle();
  }

  absl::StatusOr<v1::JobRecord::RecordsSignature> Sign() {
    ++attempts_;
    if (failures_ > 0 && failures_-- > 0) return absl::ResourceExhaustedError("no descriptors");
    return v1::JobRecord::RecordsSignature();
  }

  SimulatedDisk disk_;
  FakeClock clock_;
  Executor executor_{{"test", 1}};
  std::atomic<int> woken_ = 0;
  int attempts_ = 0;
  int failures_ = 0;  // of the next attempts to sign
  std::map<std::string, std::unique_ptr<RecordOutbox>> outboxes_;
  RecordSender sender_{
      {.node = "n1",
       .sign = [this](const v1::JobRecord&, const RecordsDigest&) { return Sign(); },
       .timers = &clock_,
       .executor = &executor_},
      [this] { ++woken_; }};
};

TEST_F(RecordSenderTest, JobsAreServedInTurnAndRefusalsFirst) {
  for (const char* job : {"a", "b"}) {
    for (int i = 0; i < 8; ++i) Append(job, Output(std::string(30 << 10, 'x')));
  }
  // Each job has at most 64 KiB in transit before the first ack.
  EXPECT_EQ(Next(), "a:1 a:2 b:1 b:2");
  Ack("a", 2);
  Ack("b", 2);
  sender_.AddRefusal("c", Final());
  EXPECT_EQ(Next(), "c:1! a:3 a:4 a:5 a:6 b:3 b:4 b:5 b:6");
  Ack("a", 6, "n2");  // of another node
  EXPECT_EQ(Next(), "");
  Ack("a", 6);
  EXPECT_EQ(Next(), "a:7 a:8");
  sender_.Rewind();
  EXPECT_EQ(Next(), "c:1! b:3 b:4 a:7 a:8");
}

TEST_F(RecordSenderTest, RemovedJobIsNotServed) {
  Append("a", Output("x"));
  Append("b", Output("x"));
  sender_.Remove("a");
  EXPECT_EQ(Next(), "b:1");
  Ack("a", 1);
}

TEST_F(RecordSenderTest, FailedSignatureIsRetriedWithoutAnotherEvent) {
  Append("a", Final());
  sender_.AddRefusal("c", Final());
  failures_ = 2;
  EXPECT_EQ(Next(), "");
  EXPECT_EQ(attempts_, 1);
  EXPECT_EQ(Next(), "");  // another event: the retry is not due
  EXPECT_EQ(attempts_, 1);
  Advance(absl::Seconds(1));
  EXPECT_EQ(woken_, 1);
  EXPECT_EQ(Next(), "");
  EXPECT_EQ(attempts_, 2);
  Advance(absl::Seconds(2));
  EXPECT_EQ(woken_, 2);
  EXPECT_EQ(Next(), "c:1! a:1!");
  Ack("a", 1);
  Ack("c", 1);
  Advance(absl::Hours(1));
  EXPECT_EQ(woken_, 2);
}

TEST_F(RecordSenderTest, RecordsWithoutAcksAreSentAgain) {
  Append("a", Final());
  Append("b", Final());
  sender_.AddRefusal("c", Final());
  EXPECT_EQ(Next(), "c:1! a:1! b:1!");
  Ack("b", 1);
  // The first check may come directly after the records were sent.
  Advance(RecordSender::kResendAfter);
  EXPECT_EQ(Next(), "");
  Advance(RecordSender::kResendAfter);
  EXPECT_EQ(Next(), "c:1! a:1!");
  Advance(RecordSender::kResendAfter);
  EXPECT_EQ(Next(), "c:1! a:1!");
  Ack("a", 1);
  Ack("c", 1);
  Advance(absl::Hours(1));
  EXPECT_EQ(Next(), "");
}

TEST_F(RecordSenderTest, RecordsOfAJobThatIsAckedAreNotSentAgain) {
  for (int i = 1; i <= 3; ++i) Append("a", Output("x"));
  EXPECT_EQ(Next(), "a:1 a:2 a:3");
  for (int i = 1; i <= 3; ++i) {
    Advance(RecordSender::kResendAfter);
    EXPECT_EQ(Next(), "");
    Ack("a", i);
  }
}

TEST_F(RecordSenderTest, OutputIsSentWhileFinalRecordsCannotBeSigned) {
  failures_ = 1;
  Append("a", Final());
  Append("b", Output("x"));
  EXPECT_EQ(Next(), "b:1");
  Append("b", Final());
  EXPECT_EQ(Next(), "");
  Advance(absl::Seconds(1));
  EXPECT_EQ(Next(), "a:1! b:2!");
}

TEST_F(RecordSenderTest, OutboxThatCannotBeSyncedIsRetried) {
  Append("a", Output("x"));
  Append("b", Output("x"));
  disk_.FailAt(SimulatedDisk::Call::kSync, 1, EIO);
  EXPECT_EQ(Next(), "b:1");
  Append("a", Output("y"));
  EXPECT_EQ(Next(), "");  // the retry is not due
  Advance(absl::Seconds(1));
  EXPECT_EQ(woken_, 1);
  EXPECT_EQ(Next(), "a:1 a:2");
}

TEST_F(RecordSenderTest, AwaitAckedWaitsForFinalRecordsAndRefusals) {
  Append("a", Output("x"));
  EXPECT_TRUE(sender_.AwaitAcked(absl::ZeroDuration()));
  Append("a", Final());
  EXPECT_FALSE(sender_.AwaitAcked(absl::ZeroDuration()));
  sender_.AddRefusal("c", Final());
  EXPECT_EQ(Next(), "c:1! a:1 a:2!");
  Ack("a", 2);
  EXPECT_FALSE(sender_.AwaitAcked(absl::ZeroDuration()));
  Ack("c", 1);
  EXPECT_TRUE(sender_.AwaitAcked(absl::ZeroDuration()));
}

}  // namespace
}  // namespace muster
