#include "services/agent/jobs/record_outbox.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/jobs/job_record.h"

namespace muster {
namespace {

constexpr size_t kRoom = size_t{256} << 10;

v1::JobRecord Output(const std::string& text) {
  v1::JobRecord record;
  record.mutable_output()->set_stream(v1::JOB_STREAM_STDOUT);
  record.mutable_output()->set_data(text);
  return record;
}

v1::JobRecord Final() {
  v1::JobRecord record;
  record.mutable_final()->set_outcome(v1::JOB_OUTCOME_EXITED);
  return record;
}

class RecordOutboxTest : public ::testing::Test {
 protected:
  RecordOutboxTest() {
    for (const char* suffix : {"", ".damaged"}) std::filesystem::remove(path_ + suffix);
    log_ = RecordOutbox::Create(PosixFileOps(), path_, "j1", "n1").value();
  }

  void Open() {
    log_.reset();
    log_ = RecordOutbox::Open(PosixFileOps(), path_, "j1", "n1").value();
  }

  void Append(const v1::JobRecord& record) { ASSERT_TRUE(log_->Append(record).ok()); }

  // Returns the output of the next records, with "." for the final one.
  std::string Next(size_t room = kRoom) {
    v1::JobRecords records;
    EXPECT_TRUE(log_->NextRecords(room, nullptr, &records).ok());
    std::string text;
    for (const v1::JobRecord& record : records.records()) {
      EXPECT_EQ(record.job(), "j1");
      EXPECT_EQ(record.node(), "n1");
      EXPECT_GT(record.time().seconds(), 1'600'000'000);
      last_ = record.sequence();
      text += record.has_final() ? "." : record.output().data();
    }
    return text;
  }

  const std::string path_ = ::testing::TempDir() + "/records";
  std::unique_ptr<RecordOutbox> log_;
  int64_t last_ = 0;
};

TEST_F(RecordOutboxTest, RecordWithTextThatIsNotUtf8IsReadAgainAfterARestart) {
  v1::JobRecord record = Final();
  record.mutable_final()->set_detail("caf\xe9");
  Append(Output("a"));
  Append(record);
  Open();
  EXPECT_EQ(Next(), "a.");
}

TEST_F(RecordOutboxTest, RecordsAreSentInOrderAndAgainAfterARewind) {
  for (const char* text : {"a", "b", "c"}) Append(Output(text));
  EXPECT_EQ(Next(), "abc");
  EXPECT_EQ(last_, 3);
  EXPECT_EQ(Next(), "");
  log_->Ack(1);
  Append(Output("d"));
  EXPECT_EQ(Next(), "d");
  log_->Rewind();
  EXPECT_EQ(Next(), "bcd");
  EXPECT_EQ(last_, 4);
  log_->Ack(100);  // more than exist
  Append(Final());
  EXPECT_EQ(Next(), ".");
  EXPECT_TRUE(log_->has_final());
  EXPECT_FALSE(log_->final_acked());
  log_->Ack(5);
  EXPECT_TRUE(log_->final_acked());
}

TEST_F(RecordOutboxTest, UnackedOutputIsLimitedByAWindowThatGrowsWithAcks) {
  for (int i = 0; i < 7; ++i) Append(Output(std::string(20 * 1024, 'x')));
  EXPECT_EQ(Next().size(), 60 * 1024);
  EXPECT_EQ(Next(), "");
  log_->Ack(2);
  EXPECT_EQ(Next().size(), 80 * 1024) << "104 KiB may be unacked";
  EXPECT_EQ(Next(), "");
  log_->Ack(7);
  for (size_t i = 0; i < kMaxUnackedRecords + 1; ++i) Append(Output("y"));
  EXPECT_EQ(Next().size(), kMaxUnackedRecords);
}

TEST_F(RecordOutboxTest, RecordsFitIntoTheMessage) {
  for (int i = 0; i < 3; ++i) Append(Output(std::string(10 * 1024, 'x')));
  EXPECT_EQ(Next(25 * 1024).size(), 20 * 1024);
  EXPECT_EQ(Next(25 * 1024).size(), 10 * 1024);
}

TEST_F(RecordOutboxTest, ReopenedOutboxContinuesTheSequence) {
  for (const char* text : {"a", "b"}) Append(Output(text));
  EXPECT_EQ(Next(), "ab");
  Open();
  EXPECT_FALSE(log_->has_final());
  Append(Final());
  EXPECT_EQ(Next(), "ab.");
  EXPECT_EQ(last_, 3);
  Open();
  EXPECT_TRUE(log_->has_final());
}

TEST_F(RecordOutboxTest, TornRecordIsCutOff) {
  Append(Output("whole"));
  const int64_t whole = log_->size();
  Append(Output("torn"));
  std::filesystem::resize_file(path_, static_cast<uintmax_t>(log_->size() - 1));
  Open();
  EXPECT_EQ(log_->size(), whole);
  Append(Output("!"));
  EXPECT_EQ(Next(), "whole!");
}

TEST_F(RecordOutboxTest, MalformedRecordIsRefused) {
  v1::JobRecord record = Output(std::string(kMaxJobOutput + 1, 'x'));
  EXPECT_EQ(ReasonOf(log_->Append(record)), "INVALID_JOB_RECORD");
  record = Final();
  record.mutable_final()->set_reason("no reason");
  EXPECT_EQ(ReasonOf(log_->Append(record)), "INVALID_JOB_RECORD");
  Append(Output("good"));
  Open();
  EXPECT_EQ(Next(), "good");
}

TEST_F(RecordOutboxTest, SalvageKeepsTheRecordsBeforeTheDamage) {
  Append(Output("first"));
  const int64_t first = log_->size();
  ASSERT_TRUE(log_->Sync().ok());
  Append(Output("second"));
  ASSERT_TRUE(log_->Sync().ok());
  Append(Output("third"));
  std::fstream(path_, std::ios::in | std::ios::out).seekp(first + 20).put('#');
  log_.reset();
  const auto opened = RecordOutbox::Open(PosixFileOps(), path_, "j1", "n1");
  EXPECT_EQ(ReasonOf(opened.status()), "JOURNAL_DAMAGED");
  log_ = RecordOutbox::Salvage(PosixFileOps(), path_, "j1", "n1").value();
  EXPECT_EQ(Next(), "first");
  EXPECT_TRUE(std::filesystem::exists(path_ + ".damaged"));
  Open();
  Append(Final());
  EXPECT_EQ(Next(), "first.");
}

TEST_F(RecordOutboxTest, OutputsAreKnownAfterARestart) {
  Append(Output("a"));
  EXPECT_FALSE(log_->content().outputs);
  v1::JobRecord record;
  auto& output = *record.mutable_outputs()->add_outputs();
  output.set_name("url");
  output.set_value("1");
  Append(record);
  EXPECT_TRUE(log_->content().outputs);
  Open();
  EXPECT_TRUE(log_->content().outputs);
  EXPECT_EQ(log_->content().out.bytes, 1);
}

}  // namespace
}  // namespace muster
