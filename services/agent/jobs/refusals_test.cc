#include "services/agent/jobs/refusals.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/jobs/final_record.h"

namespace muster {
namespace {

constexpr size_t kRoom = size_t{256} << 10;

class RefusalsTest : public ::testing::Test {
 protected:
  void Add(const std::string& job, v1::JobOutcome outcome = v1::JOB_OUTCOME_REFUSED) {
    refusals_.Add(job, FinalRecord(outcome, "", ""));
  }

  // The next records, as "JOB OUTCOME".
  std::vector<std::string> Next(size_t room = kRoom, const FinalSigner& sign = nullptr) {
    v1::JobRecords records;
    refusals_.NextRecords(room, sign, &records);
    std::vector<std::string> next;
    for (const v1::JobRecord& record : records.records()) {
      EXPECT_EQ(record.node(), "n1");
      EXPECT_EQ(record.sequence(), 1);
      next.push_back(absl::StrCat(record.job(), " ",
                                  v1::JobOutcome_Name(record.final().outcome()).substr(12)));
    }
    return next;
  }

  using Records = std::vector<std::string>;
  Refusals refusals_{"n1", 1'000};
};

TEST_F(RefusalsTest, RecordIsSentOnceUntilARewind) {
  Add("a");
  Add("b");
  EXPECT_EQ(Next(), (Records{"a REFUSED", "b REFUSED"}));
  EXPECT_EQ(Next(), Records());
  refusals_.Ack("a");
  refusals_.Rewind();
  EXPECT_EQ(Next(), Records{"b REFUSED"});
  refusals_.Ack("b");
  EXPECT_TRUE(refusals_.empty());
}

TEST_F(RefusalsTest, UnackedOutcomeIsNotReplacedButSentAgain) {
  Add("a");
  Add("b");
  Next();
  Add("a", v1::JOB_OUTCOME_CANCELLED);
  EXPECT_EQ(Next(), Records{"a REFUSED"});
  Add("c");
  Add("c", v1::JOB_OUTCOME_CANCELLED);
  EXPECT_EQ(Next(), Records{"c REFUSED"});
  for (const char* job : {"a", "b", "c"}) refusals_.Ack(job);
  EXPECT_TRUE(refusals_.empty());
}

TEST_F(RefusalsTest, AckOfAnEarlierRecordDoesNotRemoveAnUnsentOne) {
  Add("a");
  Next();
  refusals_.Ack("a");
  Add("a", v1::JOB_OUTCOME_CANCELLED);
  refusals_.Ack("a");
  EXPECT_EQ(Next(), Records{"a CANCELLED"});
}

TEST_F(RefusalsTest, OldestRecordIsDroppedPastTheLimit) {
  for (int i = 0; i < 1'001; ++i) Add(absl::StrCat(i));
  const Records next = Next();
  EXPECT_EQ(next.size(), 1'000);
  EXPECT_EQ(next.front(), "1 REFUSED");
  EXPECT_EQ(next.back(), "1000 REFUSED");
}

TEST_F(RefusalsTest, RecordsThatDoNotFitAreSentNext) {
  Add("a");
  Add("b");
  EXPECT_EQ(Next(50), Records{"a REFUSED"});
  EXPECT_EQ(Next(50), Records{"b REFUSED"});
}

TEST_F(RefusalsTest, RecordWhoseSignatureFailsIsSentLater) {
  const FinalSigner fail = [](const v1::JobRecord&, const RecordsDigest&) {
    return absl::ResourceExhaustedError("no descriptors");
  };
  Add("a");
  EXPECT_EQ(Next(kRoom, fail), Records());
  EXPECT_EQ(Next(), Records{"a REFUSED"});
}

}  // namespace
}  // namespace muster
