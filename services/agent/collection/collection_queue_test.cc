// The queue of offered plugins.
#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "services/agent/collection/testing/runner_fixture.h"
#include "services/common/base/mutex.h"

namespace muster {
namespace {

// One thread, which the plugin "first" occupies until Release.
class CollectionQueueTest : public CollectionRunnerTest {
 protected:
  using Names = std::vector<std::string>;

  CollectionQueueTest() {
    options_.max_parallel = 1;
    options_.on_worked = [this](const std::string& plugin) {
      MutexLock lock(mutex_);
      worked_.push_back(plugin);
      changed_.NotifyAll();
      while (plugin == "first" && !released_) changed_.Wait(mutex_);
    };
  }
  ~CollectionQueueTest() override {
    Release();
    runner_.reset();
  }

  void Enqueue(const std::string& run, const Names& plugins, const std::string& definition) {
    runner_->Offer(OfferOf(run, plugins, definition), peer_.target());
  }
  void Enqueue(const Names& plugins) { Enqueue(fleet_.run, plugins, kNoWork); }

  void BeginOccupied() {
    Begin();
    Enqueue({"first"});
    Await("first");
  }

  void Release() {
    MutexLock lock(mutex_);
    released_ = true;
    changed_.NotifyAll();
  }

  // Waits until the work for this plugin has ended, and returns all that worked.
  Names Await(const std::string& plugin) {
    MutexLock lock(mutex_);
    EXPECT_TRUE(
        changed_.WaitFor(mutex_, absl::Minutes(1), [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
          return std::ranges::find(worked_, plugin) != worked_.end();
        }));
    return worked_;
  }

  Mutex mutex_;
  CondVar changed_;
  Names worked_ ABSL_GUARDED_BY(mutex_);
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST_F(CollectionQueueTest, WaitingPluginsAreBoundedInNumber) {
  options_.max_waiting = 2;
  BeginOccupied();
  Enqueue({"a", "b", "c"});
  Release();
  Await("b");
  Enqueue({"d"});
  EXPECT_EQ(Await("d"), (Names{"first", "a", "b", "d"}));
}

TEST_F(CollectionQueueTest, WaitingDefinitionsAreBoundedInBytes) {
  const size_t bytes = OfferOf(fleet_.run, {"a"}, kNoWork).plugins(0).definition_yaml().size();
  options_.max_waiting_bytes = 2 * bytes;
  BeginOccupied();
  Enqueue({"a", "b", "c"});
  Release();
  Await("b");
  Enqueue({"d", "e"});
  EXPECT_EQ(Await("e"), (Names{"first", "a", "b", "d", "e"}));
}

TEST_F(CollectionQueueTest, EndOfARunFreesTheBytesOfItsDefinitions) {
  const size_t bytes = OfferOf(fleet_.run, {"a"}, kNoWork).plugins(0).definition_yaml().size();
  options_.max_waiting_bytes = bytes;
  BeginOccupied();
  const std::string other(fleet_.run.size(), 'e');
  Enqueue(other, {"a"}, kNoWork);
  v1::CollectionEnded ended;
  ended.set_run(other);
  runner_->End(ended);
  Enqueue({"b"});
  Release();
  EXPECT_EQ(Await("b"), (Names{"first", "b"}));
}

// As after a time at a relay that lies.
TEST_F(CollectionQueueTest, NewAttachmentDropsWhatHasNotStarted) {
  BeginOccupied();
  Enqueue({"a", "b"});
  runner_->OnAttached(peer_.target());
  Enqueue({"c", "a"});  // offered again
  Release();
  EXPECT_EQ(Await("a"), (Names{"first", "c", "a"}));
}

TEST_F(CollectionQueueTest, RememberedFinishedPluginsAreBounded) {
  options_.max_finished = 1;
  Begin();
  Enqueue(fleet_.run, {"a", "b"}, kInvalid);
  Enqueue({"x"});
  Await("x");
  Enqueue(fleet_.run, {"a", "b"}, kInvalid);
  Enqueue({"y"});
  EXPECT_EQ(Await("y"), (Names{"a", "b", "x", "b", "y"}));
}

}  // namespace
}  // namespace muster
