#include "services/agent/kept_results.h"

#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/client/attempt_state.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/simulated_disk.h"
#include "services/common/base/status_macros.h"

namespace muster {
namespace {

constexpr char kSource[] = "/node/collections/x/results/out";
constexpr char kKept[] = "/node/kept";

class KeptResultsTest : public ::testing::Test {
 protected:
  KeptResultsTest() {
    EXPECT_TRUE(MakeFolders(disk_, "/node/collections/x/results").ok());
    Open();
  }

  void Open() {
    kept_.reset();
    options_.folder = kKept;
    options_.node = "n1";
    options_.clock = &clock_;
    options_.ops = &disk_;
    options_.is_committed = [this](const ResultName& name) { return committed_.contains(name); };
    kept_ = std::make_unique<KeptResults>(options_);
  }

  // Writes a file as a plugin does.
  void Produce(const std::string& content) {
    ASSERT_TRUE(WriteFileDurably(disk_, kSource, content).ok());
  }

  static KeptResult Describe(const std::string& content) {
    return {.media_type = "text/plain",
            .file_name = "out.txt",
            .size = static_cast<int64_t>(content.size()),
            .sha256 = "ab"};
  }

  absl::Status Keep(const ResultName& name, const std::string& content) {
    Produce(content);
    RETURN_IF_ERROR(kept_->Prepare(name, kSource, Describe(content)));
    committed_.insert(name);
    return kept_->Move(name);
  }

  std::string Read(const ResultName& name) {
    const auto found = kept_->Find(name);
    if (!found) return "";
    return ReadSmallFile(disk_, found->path, 1'000).value_or("");
  }

  // Returns the folders of kept results.
  size_t Folders() {
    const auto entries = disk_.List(kKept);
    return entries.ok() ? entries->size() : 0;
  }

  FakeClock clock_;
  SimulatedDisk disk_{1'000'000};
  std::set<ResultName> committed_;
  KeptResultsOptions options_;
  std::unique_ptr<KeptResults> kept_;
};

TEST_F(KeptResultsTest, ResultIsMovedAndFoundAfterARestart) {
  EXPECT_TRUE(kept_->empty());
  ASSERT_TRUE(Keep({"r", "facts"}, "content").ok());
  EXPECT_FALSE(disk_.Stat(kSource).ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Read({"r", "facts"}), "content");
    const KeptResult found = *kept_->Find({"r", "facts"});
    EXPECT_EQ(found.file_name, "out.txt");
    EXPECT_EQ(found.media_type, "text/plain");
    EXPECT_EQ(found.sha256, "ab");
    EXPECT_EQ(kept_->bytes(), 7);
    Open();
  }
  EXPECT_FALSE(kept_->Find({"r", "other"}));
}

TEST_F(KeptResultsTest, ResultThatIsNotCommittedStaysWhereItIs) {
  Produce("content");
  ASSERT_TRUE(kept_->Prepare({"r", "facts"}, kSource, Describe("content")).ok());
  EXPECT_FALSE(kept_->Find({"r", "facts"}));
  Open();
  EXPECT_FALSE(kept_->Find({"r", "facts"}));
  EXPECT_TRUE(disk_.Stat(kSource).ok());
  EXPECT_EQ(Folders(), 0U);
}

TEST_F(KeptResultsTest, StartCompletesTheMoveOfACommittedResult) {
  Produce("content");
  ASSERT_TRUE(kept_->Prepare({"r", "facts"}, kSource, Describe("content")).ok());
  committed_.insert({"r", "facts"});
  Open();
  EXPECT_EQ(Read({"r", "facts"}), "content");
  EXPECT_FALSE(disk_.Stat(kSource).ok());
}

TEST_F(KeptResultsTest, OldestAreRemovedBeyondTheLimit) {
  options_.max_bytes = 20;
  options_.max_results = 3;
  Open();
  for (const char* plugin : {"a", "b", "c"}) {
    ASSERT_TRUE(Keep({"r", plugin}, "12345").ok());
    clock_.Advance(absl::Seconds(1));
  }
  ASSERT_TRUE(Keep({"r", "d"}, "1").ok());  // too many
  EXPECT_EQ(Read({"r", "a"}), "");
  EXPECT_EQ(Read({"r", "b"}), "12345");
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(Keep({"r", "e"}, "1234567890123").ok());  // too many bytes
  EXPECT_EQ(Read({"r", "b"}), "");
  EXPECT_EQ(Read({"r", "c"}), "12345");
  EXPECT_EQ(kept_->bytes(), 19);
  EXPECT_TRUE(absl::IsResourceExhausted(Keep({"r", "f"}, std::string(21, 'x'))));
  EXPECT_TRUE(disk_.Stat(kSource).ok());
}

TEST_F(KeptResultsTest, ResultOfTheSameNameIsReplaced) {
  ASSERT_TRUE(Keep({"r", "facts"}, "first").ok());
  ASSERT_TRUE(Keep({"r", "facts"}, "second").ok());
  EXPECT_EQ(Read({"r", "facts"}), "second");
  EXPECT_EQ(kept_->bytes(), 6);
}

TEST_F(KeptResultsTest, EarlierResultStaysIfTheNewOneIsTooLarge) {
  options_.max_bytes = 20;
  Open();
  ASSERT_TRUE(Keep({"r", "facts"}, "first").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Keep({"r", "facts"}, std::string(21, 'x'))));
  EXPECT_EQ(Read({"r", "facts"}), "first");
}

// The disk calls of a result ask for it, and for another one.
TEST_F(KeptResultsTest, DiskIsUsedWithoutTheLock) {
  ASSERT_TRUE(Keep({"r", "other"}, "content").ok());
  int calls = 0;
  disk_.BeforeCall([&] {
    ++calls;
    EXPECT_TRUE(kept_->Find({"r", "other"}));
    kept_->HandleEnd("r");
  });
  const auto made_calls = [&] { return std::exchange(calls, 0) > 0; };
  Produce("content");
  ASSERT_TRUE(kept_->Prepare({"r", "facts"}, kSource, Describe("content")).ok());
  EXPECT_TRUE(made_calls());
  ASSERT_TRUE(kept_->Move({"r", "facts"}).ok());
  EXPECT_TRUE(made_calls());
  kept_->Trim();
  EXPECT_TRUE(made_calls());
  kept_->Remove({"r", "facts"});
  EXPECT_TRUE(made_calls());
  disk_.BeforeCall(nullptr);
  EXPECT_EQ(Folders(), 1U);
}

TEST_F(KeptResultsTest, ResultThatIsBeingMovedIsFound) {
  Produce("content");
  ASSERT_TRUE(kept_->Prepare({"r", "facts"}, kSource, Describe("content")).ok());
  std::future<bool> found;
  int calls = 0;
  disk_.BeforeCall([&] {
    if (++calls != 2) return;  // the file is moved, and its folder is not synced yet
    found = std::async(std::launch::async, [&] { return kept_->Find({"r", "facts"}).has_value(); });
    found.wait_for(std::chrono::milliseconds(100));  // a call that did not wait would end
  });
  ASSERT_TRUE(kept_->Move({"r", "facts"}).ok());
  ASSERT_TRUE(found.valid());
  EXPECT_TRUE(found.get());
}

// A result is found whole or not at all while it is removed, replaced and trimmed.
TEST_F(KeptResultsTest, CallsOfManyThreadsLeaveWholeResults) {
  options_.max_results = 2;
  Open();
  const auto work = [&](int thread) {
    for (int i = 0; i < 50; ++i) {
      const std::string source = absl::StrCat("/node/collections/x/results/", thread);
      const ResultName name{"r", absl::StrCat("p", i % 3)};
      EXPECT_TRUE(WriteFileDurably(disk_, source, "content").ok());
      if (kept_->Prepare(name, source, Describe("content")).ok()) {
        kept_->Move(name).IgnoreError();  // another thread may have replaced it
      }
      if (i % 5 == 0) kept_->Remove(name);
      kept_->Trim();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) threads.emplace_back(work, thread);
  }
  size_t found = 0;
  for (const char* plugin : {"p0", "p1", "p2"}) {
    if (!kept_->Find({"r", plugin})) continue;
    EXPECT_EQ(Read({"r", plugin}), "content");
    ++found;
  }
  EXPECT_LE(found, 2U);
  EXPECT_EQ(kept_->bytes() % 7, 0);
  EXPECT_LE(kept_->bytes(), 14);
  const size_t folders = Folders();
  Open();  // as many as the process knew, but for those that were never moved
  EXPECT_LE(Folders(), folders);
  EXPECT_EQ(Folders(), found);
}

TEST_F(KeptResultsTest, ResultsGiveWayToAFullDisk) {
  ASSERT_TRUE(Keep({"r", "facts"}, std::string(5'000, 'x')).ok());
  kept_->Trim();
  EXPECT_FALSE(kept_->empty());
  disk_.SetCapacity(disk_.used() + 40'000);  // a tenth of it is less than the result
  kept_->Trim();
  EXPECT_TRUE(kept_->empty());
  EXPECT_EQ(Folders(), 0U);
}

TEST_F(KeptResultsTest, ResultsAreRemovedAtTheirAgeAlsoAfterARestart) {
  ASSERT_TRUE(Keep({"r", "facts"}, "content").ok());
  clock_.Advance(options_.max_age - absl::Seconds(1));
  kept_->Trim();
  EXPECT_FALSE(kept_->empty());
  Open();
  EXPECT_FALSE(kept_->empty());
  clock_.Advance(absl::Seconds(1));
  kept_->Trim();
  EXPECT_TRUE(kept_->empty());
  EXPECT_EQ(Folders(), 0U);
}

TEST_F(KeptResultsTest, ResultsAreRemovedAnHourAfterTheEndOfTheirRun) {
  ASSERT_TRUE(Keep({"r", "facts"}, "content").ok());
  ASSERT_TRUE(Keep({"other", "facts"}, "content").ok());
  kept_->HandleEnd("r");
  clock_.Advance(KeptResults::kKeptAfterEnd - absl::Seconds(1));
  kept_->HandleEnd("r");
  kept_->Trim();
  EXPECT_EQ(Read({"r", "facts"}), "content");
  clock_.Advance(absl::Seconds(1));
  kept_->Trim();
  EXPECT_EQ(Read({"r", "facts"}), "");
  EXPECT_EQ(Read({"other", "facts"}), "content");
}

TEST_F(KeptResultsTest, UnreadableFoldersAreRemoved) {
  ASSERT_TRUE(MakeFolders(disk_, absl::StrCat(kKept, "/foreign")).ok());
  const std::string broken = absl::StrCat(kKept, "/", client::StateName("r", "facts", "n1"));
  ASSERT_TRUE(MakeFolders(disk_, broken).ok());
  ASSERT_TRUE(WriteFileDurably(disk_, broken + "/kept.json", "{\"run\": 7").ok());
  Open();
  EXPECT_TRUE(kept_->empty());
  EXPECT_EQ(Folders(), 0U);
}

TEST_F(KeptResultsTest, FailureOfTheDiskRemovesNothing) {
  ASSERT_TRUE(Keep({"r", "facts"}, "content").ok());
  int unread = 0;
  for (const auto call :
       {SimulatedDisk::Call::kOpen, SimulatedDisk::Call::kRead, SimulatedDisk::Call::kStat}) {
    for (const int fault : {EIO, EMFILE, EACCES}) {
      disk_.FailAt(call, 1, fault);
      Open();
      if (kept_->empty()) ++unread;
      Open();
      ASSERT_EQ(Read({"r", "facts"}), "content");
    }
  }
  EXPECT_EQ(unread, 9);
}

TEST_F(KeptResultsTest, NothingIsKeptWithALimitOfZero) {
  options_.max_bytes = 0;
  Open();
  EXPECT_TRUE(absl::IsResourceExhausted(Keep({"r", "facts"}, "content")));
  EXPECT_EQ(Folders(), 0U);
}

// Power fails at each change of the disk. The result is where it was or kept whole, never lost,
// unless it is committed: then it may only be lost for the keeping.
TEST(KeptResultsCrashTest, CrashAtAnyPointLosesNoUncommittedResult) {
  const ResultName name{"r", "facts"};
  const std::string content = "content";
  bool finished = false;
  for (int point = 1; !finished; ++point) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SimulatedDisk disk;
      FakeClock clock;
      ASSERT_TRUE(MakeFolders(disk, "/node/collections/x/results").ok());
      ASSERT_TRUE(WriteFileDurably(disk, kSource, content).ok());
      bool committed = false;
      const KeptResultsOptions options{
          .folder = kKept,
          .node = "n1",
          .clock = &clock,
          .ops = &disk,
          .is_committed = [&](const ResultName&) { return committed; }};
      {
        KeptResults kept(options);
        disk.PowerOffAt(point);
        // The agent notes the commit whether or not the result can be kept.
        const bool prepared = kept.Prepare(name, kSource, {.size = 7, .sha256 = "ab"}).ok();
        committed = !disk.powered_off();
        if (committed && prepared) kept.Move(name).IgnoreError();
        finished = !disk.powered_off();
      }
      disk.Crash(seed);
      KeptResults kept(options);
      const auto found = kept.Find(name);
      if (found) {
        EXPECT_EQ(ReadSmallFile(disk, found->path, 100).value_or(""), content) << point;
      }
      if (!committed) {
        EXPECT_FALSE(found) << point;
        EXPECT_EQ(ReadSmallFile(disk, kSource, 100).value_or(""), content) << point;
      } else {
        EXPECT_TRUE(found) << "after change " << point << ", seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace muster
