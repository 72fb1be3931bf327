#include "services/common/rpc/caller_quota.h"

#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

using Verdict = CallerQuota::Verdict;

constexpr CallerQuota::Limits kLimits = {.in_all = 10, .of_caller = 4};

TEST(CallerQuotaTest, TicketHoldsItsAmountUntilItIsDestroyed) {
  CallerQuota quota;
  {
    CallerQuota::Ticket ticket;
    EXPECT_EQ(quota.Reserve("a", 3, kLimits, &ticket), Verdict::kReserved);
    EXPECT_EQ(quota.reserved(), 3);
  }
  EXPECT_EQ(quota.reserved(), 0);
}

TEST(CallerQuotaTest, MovedTicketReleasesOnce) {
  CallerQuota quota;
  CallerQuota::Ticket first;
  ASSERT_EQ(quota.Reserve("a", 3, kLimits, &first), Verdict::kReserved);
  CallerQuota::Ticket second(std::move(first));
  first = CallerQuota::Ticket();
  EXPECT_EQ(quota.reserved(), 3);
  CallerQuota::Ticket& same = second;
  second = std::move(same);
  EXPECT_EQ(quota.reserved(), 3);
  second = CallerQuota::Ticket();
  EXPECT_EQ(quota.reserved(), 0);
}

TEST(CallerQuotaTest, ReservedTicketReplacesAnEarlierOne) {
  CallerQuota quota;
  CallerQuota::Ticket ticket;
  ASSERT_EQ(quota.Reserve("a", 1, kLimits, &ticket), Verdict::kReserved);
  ASSERT_EQ(quota.Reserve("b", 2, kLimits, &ticket), Verdict::kReserved);
  EXPECT_EQ(quota.reserved(), 2);
}

TEST(CallerQuotaTest, CallerAtItsLimitDoesNotAffectAnother) {
  CallerQuota quota;
  CallerQuota::Ticket first;
  CallerQuota::Ticket second;
  CallerQuota::Ticket other;
  EXPECT_EQ(quota.Reserve("a", 3, kLimits, &first), Verdict::kReserved);
  EXPECT_EQ(quota.Reserve("a", 2, kLimits, &second), Verdict::kCallerAtLimit);
  EXPECT_EQ(quota.Reserve("b", 2, kLimits, &other), Verdict::kReserved);
  EXPECT_EQ(quota.Reserve("a", 1, kLimits, &second), Verdict::kReserved);
  EXPECT_EQ(quota.reserved(), 6);
}

TEST(CallerQuotaTest, RefusedReservationChangesNothing) {
  CallerQuota quota;
  CallerQuota::Ticket ticket;
  ASSERT_EQ(quota.Reserve("a", 3, kLimits, &ticket), Verdict::kReserved);
  EXPECT_EQ(quota.Reserve("a", 2, kLimits, &ticket), Verdict::kCallerAtLimit);
  EXPECT_EQ(quota.Reserve("b", 8, kLimits, &ticket), Verdict::kFull);
  EXPECT_EQ(quota.reserved(), 3) << "the ticket still holds the first amount";
}

TEST(CallerQuotaTest, FirstReservationOfACallerMayExceedItsOwnLimitButNotTheTotal) {
  CallerQuota quota;
  CallerQuota::Ticket first;
  CallerQuota::Ticket second;
  EXPECT_EQ(quota.Reserve("a", 11, kLimits, &first), Verdict::kFull);
  EXPECT_EQ(quota.Reserve("a", 10, kLimits, &first), Verdict::kReserved);
  EXPECT_EQ(quota.Reserve("b", 1, kLimits, &second), Verdict::kFull);
  first = CallerQuota::Ticket();
  EXPECT_EQ(quota.Reserve("b", 1, kLimits, &second), Verdict::kReserved);
}

TEST(CallerQuotaTest, ZeroIsNoLimit) {
  CallerQuota quota;
  std::vector<CallerQuota::Ticket> tickets(100);
  for (CallerQuota::Ticket& ticket : tickets) {
    EXPECT_EQ(quota.Reserve("a", 1'000'000, {}, &ticket), Verdict::kReserved);
  }
  EXPECT_EQ(quota.reserved(), 100'000'000);
}

TEST(CallerQuotaTest, GaugeShowsTheReservedAmount) {
  Metrics metrics;
  CallerQuota quota(metrics.AddGauge("muster_reserved", "Reserved."));
  CallerQuota::Ticket ticket;
  ASSERT_EQ(quota.Reserve("a", 3, kLimits, &ticket), Verdict::kReserved);
  EXPECT_NE(metrics.Text().find("muster_reserved 3\n"), std::string::npos);
  ticket = CallerQuota::Ticket();
  EXPECT_NE(metrics.Text().find("muster_reserved 0\n"), std::string::npos);
}

TEST(CallerQuotaTest, ThreadsNeverExceedTheLimit) {
  CallerQuota quota;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&quota, caller = std::string(1, static_cast<char>('a' + t))] {
      for (int i = 0; i < 1000; ++i) {
        CallerQuota::Ticket ticket;
        if (quota.Reserve(caller, 4, kLimits, &ticket) != Verdict::kReserved) continue;
        EXPECT_LE(quota.reserved(), kLimits.in_all);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(quota.reserved(), 0);
}

}  // namespace
}  // namespace muster
