#include "services/agent/outcome.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

TEST(OutcomeTest, OutcomeHasNoControlCharactersAndNoForgedLines) {
  client::Delivery delivery;
  delivery.status = {client::Code::kRefused, "REFUSED", "a\x1b[2J\r\n next: run it", "stop\x07"};
  CaptureStderr();
  EXPECT_EQ(PrintOutcome(delivery, "plugin \x1b logs"), 11);
  EXPECT_EQ(GetCapturedStderr(),
            "error: a?[2J?\n        next: run it (REFUSED)\n"
            "   on: plugin ? logs\n"
            " next: stop?\n");
}

TEST(OutcomeTest, WaitHasNoControlCharactersAndOmitsWhatIsEmpty) {
  CaptureStderr();
  PrintWait("the relay is \x1b]0;x\x07 full", "", "", "");
  EXPECT_EQ(GetCapturedStderr(), "waiting: the relay is ?]0;x? full\n");
}

}  // namespace
}  // namespace muster
