#include "services/agent/jobs/send_window.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr absl::Duration kFast = absl::Milliseconds(100);
constexpr absl::Duration kLate = absl::Milliseconds(1'100);

// Acks all bytes of a full window.
void AckFull(SendWindow& window, absl::Duration delay) {
  window.NoteFull();
  window.HandleAck(window.size(), delay);
}

TEST(SendWindowTest, DoublesWhileAcksAreAsFastAsTheFastestUpToItsLimit) {
  SendWindow window;
  EXPECT_EQ(window.size(), SendWindow::kMin);
  AckFull(window, kFast);
  EXPECT_EQ(window.size(), 2 * SendWindow::kMin);
  for (int i = 0; i < 10; ++i) AckFull(window, kFast + absl::Milliseconds(20));
  EXPECT_EQ(window.size(), SendWindow::kMax);
}

TEST(SendWindowTest, ShrinksWhenAcksComeLateDownToItsLimit) {
  SendWindow window;
  for (int i = 0; i < 3; ++i) AckFull(window, kFast);
  window.HandleAck(window.size() / 2, kLate);
  EXPECT_EQ(window.size(), 4 * SendWindow::kMin);
  AckFull(window, kLate);
  EXPECT_EQ(window.size(), SendWindow::kMin);
}

TEST(SendWindowTest, KeepsItsSizeBetweenBoth) {
  SendWindow window;
  AckFull(window, kFast);
  AckFull(window, kFast + absl::Milliseconds(150));
  EXPECT_EQ(window.size(), 2 * SendWindow::kMin);
}

TEST(SendWindowTest, LearnsThatThePathHasBecomeLonger) {
  SendWindow window;
  AckFull(window, kFast);
  for (int i = 0; i < 50; ++i) AckFull(window, kLate);
  EXPECT_EQ(window.size(), SendWindow::kMax);
  AckFull(window, kFast);
  AckFull(window, kLate);
  EXPECT_LT(window.size(), SendWindow::kMax) << "it was a queue";
}

TEST(SendWindowTest, DoesNotGrowWhileItIsNotFull) {
  SendWindow window;
  for (int i = 0; i < 10; ++i) window.HandleAck(1'000, kFast);
  EXPECT_EQ(window.size(), SendWindow::kMin);
}

}  // namespace
}  // namespace muster
