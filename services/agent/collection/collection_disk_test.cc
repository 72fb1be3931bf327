// Collections on a node whose disk fails for a while. Each is offered once.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"
#include "services/agent/collection/testing/runner_fixture.h"
#include "services/common/base/unique_fd.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

std::string ContentsOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The log, on stderr, is written to a file.
class CollectionDiskTest : public CollectionRunnerTest {
 protected:
  CollectionDiskTest() : stderr_(dup(STDERR_FILENO)) {
    const UniqueFd file(open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    EXPECT_EQ(dup2(file.get(), STDERR_FILENO), STDERR_FILENO);
  }
  ~CollectionDiskTest() override {
    runner_.reset();
    dup2(stderr_.get(), STDERR_FILENO);
  }

  bool AwaitLog(const std::string& message) {
    return testing::Await([&] { return ContentsOf(log_).find(message) != std::string::npos; });
  }
  void ExpectDelivered() {
    ASSERT_TRUE(testing::Await([&] { return peer_.committed().has_value(); }));
    EXPECT_EQ(peer_.committed()->body, "hello\n");
    EXPECT_FALSE(peer_.committed()->description.is_error());
    EXPECT_EQ(ContentsOf(marks_), "x\n");
  }

  const std::string log_ = folder_ + "/log";
  const std::string marks_ = folder_ + "/marks";
  const std::string in_the_way_ = folder_ + "/in-the-way";
  const UniqueFd stderr_;
};

TEST_F(CollectionDiskTest, StateThatCannotBeOpenedForNowIsOpenedLater) {
  std::filesystem::remove_all(folder_ + "/collections");
  Write("collections", "");
  runner_->Offer(Offer("echo x >> " + marks_ + "; " + kSayHello), peer_.target());
  ASSERT_TRUE(AwaitLog("the state of a collection cannot be opened; trying again"));
  std::filesystem::remove(folder_ + "/collections");
  ExpectDelivered();
}

TEST_F(CollectionDiskTest, ResultThatCannotBeNotedForNowIsKept) {
  runner_->Offer(Offer("echo x >> " + marks_ +
                       "; s=$(dirname $RESULTS_DIR)/state.json; mkdir $s; "
                       "printf $s > " +
                       in_the_way_ + "; " + kSayHello),
                 peer_.target());
  ASSERT_TRUE(AwaitLog("the result cannot be noted; trying again"));
  std::filesystem::remove(ContentsOf(in_the_way_));
  ExpectDelivered();
}

TEST_F(CollectionDiskTest, DeliveryThatCannotBeNotedForNowIsRepeated) {
  runner_->Offer(Offer("echo x >> " + marks_ +
                       "; s=$(dirname $RESULTS_DIR).json; ln -s $s $s; "
                       "printf $s > " +
                       in_the_way_ + "; " + kSayHello),
                 peer_.target());
  ASSERT_TRUE(AwaitLog("the delivery cannot be noted; trying again"));
  std::filesystem::remove(ContentsOf(in_the_way_));
  ExpectDelivered();
}

TEST_F(CollectionDiskTest, EndOfTheRunEndsTheRepetition) {
  std::filesystem::remove_all(folder_ + "/collections");
  Write("collections", "");
  // Another plugin, because the log repeats no line of the same plugin within a minute.
  runner_->Offer(
      OfferOf(fleet_.run, {"other"},
              "{driver: DaemonSet, plugin-name: other}\nspec:\n  command: [/bin/true]\n"),
      peer_.target());
  ASSERT_TRUE(AwaitLog("the state of a collection cannot be opened; trying again"));
  v1::CollectionEnded ended;
  ended.set_run(fleet_.run);
  runner_->End(ended);
  EXPECT_TRUE(AwaitLog("a collection was stopped"));
}

}  // namespace
}  // namespace muster
