#include "services/common/rpc/call_admission.h"

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/token_buckets.h"

namespace muster {
namespace {

constexpr CallLimits kLimits = {.rate = {.per_second = 1'000, .burst = 1'000},
                                .waiting_calls = 2,
                                .waiting_forwarded_calls = 2};
constexpr absl::Duration kStart = absl::Hours(1);

TEST(CallAdmissionTest, WaitingCallsOfAPeerAreBounded) {
  CallAdmission calls;
  EXPECT_TRUE(calls.Accept("p", "c", "c", kLimits, kStart).ok());
  EXPECT_TRUE(calls.Accept("p", "d", "d", kLimits, kStart).ok());
  EXPECT_EQ(ReasonOf(calls.Accept("p", "c", "c", kLimits, kStart)), "TOO_MANY_WAITING_CALLS");
  EXPECT_TRUE(calls.Accept("other", "c", "c", kLimits, kStart).ok());
  calls.Start("p", "c", kStart);
  EXPECT_TRUE(calls.Accept("p", "c", "c", kLimits, kStart).ok());
  EXPECT_EQ(ReasonOf(calls.Accept("p", "c", "c", kLimits, kStart)), "TOO_MANY_WAITING_CALLS");
}

TEST(CallAdmissionTest, WaitingCallsOfAForwardedCallerAreBounded) {
  CallAdmission calls;
  const CallLimits limits = {.rate = {.per_second = 1'000, .burst = 1'000},
                             .waiting_calls = 5,
                             .waiting_forwarded_calls = 2};
  EXPECT_TRUE(calls.Accept("p", "c", "c", limits, kStart).ok());
  EXPECT_TRUE(calls.Accept("p", "c", "c", limits, kStart).ok());
  EXPECT_EQ(ReasonOf(calls.Accept("p", "c", "c", limits, kStart)), "TOO_MANY_WAITING_CALLS");
  EXPECT_TRUE(calls.Accept("p", "d", "d", limits, kStart).ok())
      << "another client of the same peer";
  EXPECT_TRUE(calls.Accept("other", "c", "c", limits, kStart).ok());
  EXPECT_TRUE(calls.Accept("p", "p", "p", limits, kStart).ok());
  EXPECT_TRUE(calls.Accept("p", "p", "p", limits, kStart).ok()) << "the peer's own calls";
  EXPECT_EQ(ReasonOf(calls.Accept("p", "d", "d", limits, kStart)), "TOO_MANY_WAITING_CALLS")
      << "in all";
  calls.Start("p", "c", kStart);
  EXPECT_TRUE(calls.Accept("p", "c", "c", limits, kStart).ok());
  const absl::Duration next = kStart + CallAdmission::kPeriod;
  calls.Start("p", "d", next);
  EXPECT_EQ(ReasonOf(calls.Accept("p", "c", "c", limits, next)), "TOO_MANY_WAITING_CALLS");
  EXPECT_TRUE(calls.Accept("p", "c", "c", limits, next + CallAdmission::kPeriod).ok());
}

TEST(CallAdmissionTest, CallThatNeverStartsIsForgottenAfterTwoPeriods) {
  CallAdmission calls;
  EXPECT_TRUE(calls.Accept("p", "c", "c", kLimits, kStart).ok());
  EXPECT_TRUE(calls.Accept("p", "c", "c", kLimits, kStart).ok());
  const absl::Duration next = kStart + CallAdmission::kPeriod;
  EXPECT_EQ(ReasonOf(calls.Accept("p", "c", "c", kLimits, next)), "TOO_MANY_WAITING_CALLS");
  EXPECT_TRUE(calls.Accept("p", "c", "c", kLimits, next + CallAdmission::kPeriod).ok());
  EXPECT_EQ(calls.waiting("p"), 1);
}

TEST(CallAdmissionTest, StartBeyondTheAcceptedCallsIsIgnored) {
  CallAdmission calls;
  calls.Start("p", "p", kStart);
  EXPECT_TRUE(calls.Accept("p", "c", "c", kLimits, kStart).ok());
  calls.Start("p", "p", kStart);
  calls.Start("p", "p", kStart);
  EXPECT_EQ(calls.waiting("p"), 0);
}

TEST(CallAdmissionTest, ManyRefusalsInAPeriodAreReportedOnceAtTheNextStart) {
  CallAdmission calls;
  for (int i = 0; i < 2 + 8; ++i) calls.Accept("p", "p", "p", kLimits, kStart).IgnoreError();
  EXPECT_FALSE(calls.Start("other", "other", kStart));
  EXPECT_TRUE(calls.Start("p", "p", kStart));
  EXPECT_FALSE(calls.Start("p", "p", kStart));
}

TEST(CallAdmissionTest, RefusalsOfSeveralPeriodsAreNotAddedUp) {
  CallAdmission calls;
  for (int i = 0; i < 2 + 7; ++i) calls.Accept("p", "p", "p", kLimits, kStart).IgnoreError();
  calls.Accept("p", "p", "p", kLimits, kStart + CallAdmission::kPeriod).IgnoreError();
  EXPECT_FALSE(calls.Start("p", "p", kStart + CallAdmission::kPeriod));
}

TEST(CallAdmissionTest, RefusedRateOfAPeerItselfIsReported) {
  CallAdmission calls;
  const CallLimits limits = {.rate = {.per_second = 1, .burst = 1}, .waiting_calls = 2};
  for (int i = 0; i < 1 + 8; ++i) calls.Accept("p", "p", "p", limits, kStart).IgnoreError();
  EXPECT_TRUE(calls.Start("p", "p", kStart));
}

TEST(CallAdmissionTest, RefusalsOfForwardedCallsAreNotReported) {
  CallAdmission calls;
  const CallLimits rate = {
      .rate = {.per_second = 1, .burst = 1}, .waiting_calls = 2, .waiting_forwarded_calls = 2};
  for (int i = 0; i < 1 + 5 * 8; ++i) calls.Accept("p", "c", "c", rate, kStart).IgnoreError();
  EXPECT_FALSE(calls.Start("p", "p", kStart));
  for (int i = 0; i < 2 + 5 * 8; ++i) calls.Accept("p", "d", "d", kLimits, kStart).IgnoreError();
  EXPECT_FALSE(calls.Start("p", "p", kStart));
}

TEST(CallAdmissionTest, RateOfAnIdentityIsBounded) {
  CallAdmission calls;
  const CallLimits limits = {
      .rate = {.per_second = 1, .burst = 1}, .waiting_calls = 100, .waiting_forwarded_calls = 100};
  EXPECT_TRUE(calls.Accept("p", "c", "c", limits, kStart).ok());
  EXPECT_EQ(ReasonOf(calls.Accept("p", "c", "c", limits, kStart)), "TOO_MANY_CALLS");
  EXPECT_TRUE(calls.Accept("p", "other", "other", limits, kStart).ok());
  EXPECT_TRUE(calls.Accept("p", "c", "another certificate", limits, kStart).ok());
  EXPECT_TRUE(calls.Accept("p", "c", "c", limits, kStart + absl::Seconds(1)).ok());
}

TEST(CallAdmissionTest, FirstCallsOfManyIdentitiesAtATimeAreAccepted) {
  CallAdmission calls;
  const CallLimits limits = {.rate = {.per_second = 1, .burst = 1}, .waiting_calls = 1};
  for (size_t i = 0; i <= TokenBuckets::kDefaultMaxKeys; ++i) {
    const std::string identity = absl::StrCat(i);
    ASSERT_TRUE(calls.Accept(identity, identity, identity, limits, kStart).ok()) << i;
  }
}

}  // namespace
}  // namespace muster
