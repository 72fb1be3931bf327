#include "services/common/rpc/answer_memory.h"

#include <gtest/gtest.h>

#include <string>

#include "services/common/base/error.h"

namespace muster {
namespace {

TEST(AnswerMemoryTest, CallerAtItsLimitIsRefusedAndOthersAreNot) {
  Metrics metrics;
  AnswerMemory memory(metrics, {.in_all = 100, .of_caller = 40});
  auto first = memory.Reserve("a", 60);
  ASSERT_TRUE(first.ok()) << "alone, a caller may exceed its own limit";
  EXPECT_EQ(ReasonOf(memory.Reserve("a", 1).status()), "TOO_MANY_ANSWER_BYTES");
  EXPECT_TRUE(memory.Reserve("b", 11).ok());
  *first = AnswerMemory::Ticket();
  EXPECT_EQ(memory.reserved(), 0);
  EXPECT_TRUE(memory.Reserve("a", 30).ok());
}

TEST(AnswerMemoryTest, AllAnswersAreBounded) {
  Metrics metrics;
  AnswerMemory memory(metrics, {.in_all = 100, .of_caller = 60});
  const auto first = memory.Reserve("a", 60);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(ReasonOf(memory.Reserve("b", 50).status()), "OVERLOADED");
  EXPECT_NE(metrics.Text().find("muster_rpc_unread_answer_bytes 60"), std::string::npos);
}

}  // namespace
}  // namespace muster
