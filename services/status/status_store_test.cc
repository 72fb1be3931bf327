#include "services/status/status_store.h"

#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"
#include "services/common/store/sqlite/fault_vfs.h"

namespace muster {
namespace {

v1::ResultKey Key(const std::string& run, const std::string& node) {
  v1::ResultKey key;
  key.set_run(run);
  key.set_plugin("p");
  key.set_node(node);
  return key;
}

class StatusStoreTest : public ::testing::Test {
 protected:
  StatusStoreTest() {
    folder_ = ::testing::TempDir() + "/status-store-XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    Reopen();
  }
  ~StatusStoreTest() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  // As a new process would.
  void Reopen() {
    store_.reset();
    metrics_ = std::make_unique<Metrics>();
    auto store = StatusStore::Open(folder_, clock_, *metrics_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  v1::NodeEvent Event(const std::string& detail) {
    v1::NodeEvent event;
    event.mutable_time()->set_seconds(absl::ToUnixSeconds(clock_.Now()));
    event.mutable_time()->set_nanos(123'456'000);
    event.set_presence(v1::PRESENCE_LATE);
    event.set_reason(v1::REASON_CRASHED);
    event.set_run("r");
    event.set_plugin("p");
    event.set_detail(detail);
    return event;
  }

  std::vector<SenderRecord> LoadSenders() {
    auto senders = store_->LoadSenders();
    EXPECT_TRUE(senders.ok()) << senders.status();
    return senders.ok() ? *std::move(senders) : std::vector<SenderRecord>();
  }

  StatusStore::Pairs LoadPairs(const std::string& run) {
    auto pairs = store_->LoadPairs(run);
    EXPECT_TRUE(pairs.ok()) << pairs.status();
    return pairs.ok() ? *std::move(pairs) : StatusStore::Pairs{};
  }

  std::string folder_;
  FakeClock clock_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<StatusStore> store_;
};

TEST_F(StatusStoreTest, StoredRecordsSurviveARestart) {
  const absl::Time now = clock_.Now();
  store_->PutSenders({{"spiffe://f/node/n1", "n1", v1::PRESENCE_LATE, now - absl::Seconds(9),
                       now - absl::Seconds(30), ~uint64_t{0}, 7, Evidence::kClosed}});
  store_->PutContact({Key("r", "n1"), "spiffe://f/node/n1", now});
  v1::Progress progress;
  progress.set_message("half");
  progress.set_total(4);
  store_->PutProgress(Key("r", "n1"), progress);
  store_->AddEvent("n1", Event("late"));
  Reopen();

  const std::vector<SenderRecord> senders = LoadSenders();
  ASSERT_EQ(senders.size(), 1);
  const SenderRecord& sender = senders[0];
  EXPECT_EQ(sender.uri, "spiffe://f/node/n1");
  EXPECT_EQ(sender.node, "n1");
  EXPECT_EQ(sender.presence, v1::PRESENCE_LATE);
  EXPECT_EQ(sender.presence_since, now - absl::Seconds(9));
  EXPECT_EQ(sender.last_seen, now - absl::Seconds(30));
  EXPECT_EQ(sender.instance, ~uint64_t{0});
  EXPECT_EQ(sender.boot, 7);
  EXPECT_EQ(sender.evidence, Evidence::kClosed);
  const StatusStore::Pairs pairs = LoadPairs("r");
  ASSERT_EQ(pairs.contacts.size(), 1);
  EXPECT_EQ(pairs.contacts[0].key.run(), "r");
  EXPECT_EQ(pairs.contacts[0].key.node(), "n1");
  EXPECT_EQ(pairs.contacts[0].first, now);
  ASSERT_EQ(pairs.progress.size(), 1);
  EXPECT_EQ(pairs.progress[0].second.message(), "half");
  const auto events = store_->Events("n1");
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 1);
  EXPECT_EQ(events->at(0).SerializeAsString(), Event("late").SerializeAsString());
}

TEST_F(StatusStoreTest, NewestRecordReplacesOlderOnes) {
  const absl::Time now = clock_.Now();
  for (const char* message : {"first", "second"}) {
    v1::Progress progress;
    progress.set_message(message);
    store_->PutProgress(Key("r", "n1"), progress);
    store_->PutSenders({{"u", "n1", v1::PRESENCE_ONLINE, now, clock_.Now(), 0, 0}});
    store_->PutContact({Key("r", "n1"), message, clock_.Now()});
    store_->Flush();
    clock_.Advance(absl::Seconds(5));
  }
  const StatusStore::Pairs pairs = LoadPairs("r");
  ASSERT_EQ(pairs.progress.size(), 1);
  EXPECT_EQ(pairs.progress[0].second.message(), "second");
  ASSERT_EQ(LoadSenders().size(), 1);
  EXPECT_EQ(LoadSenders()[0].last_seen, now + absl::Seconds(5));
  ASSERT_EQ(pairs.contacts.size(), 1);
  EXPECT_EQ(pairs.contacts[0].uri, "second");
  EXPECT_EQ(pairs.contacts[0].first, now);
}

TEST_F(StatusStoreTest, NodeKeepsItsNewest200Events) {
  for (int i = 0; i < 250; ++i) {
    store_->AddEvent("n1", Event(std::to_string(i)));
    if (i % 60 == 0) store_->Flush();
  }
  store_->AddEvent("n2", Event("other"));
  store_->Flush();
  const auto events = store_->Events("n1");
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 200);
  EXPECT_EQ(events->front().detail(), "249");
  EXPECT_EQ(events->back().detail(), "50");
  EXPECT_EQ(store_->Events("n2")->size(), 1);
}

TEST_F(StatusStoreTest, RecordsOlderThan30DaysAreRemoved) {
  store_->AddEvent("n1", Event("old"));
  store_->PutSenders({{"old", "n1", v1::PRESENCE_LOST, clock_.Now(), clock_.Now(), 0, 0}});
  store_->Flush();
  clock_.Advance(absl::Hours(24 * 30 + 1));
  store_->AddEvent("n1", Event("new"));
  store_->PutSenders({{"new", "n1", v1::PRESENCE_LOST, clock_.Now(), clock_.Now(), 0, 0}});
  store_->Flush();
  const auto events = store_->Events("n1");
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 1);
  EXPECT_EQ(events->at(0).detail(), "new");
  ASSERT_EQ(LoadSenders().size(), 1);
  EXPECT_EQ(LoadSenders()[0].uri, "new");
}

TEST_F(StatusStoreTest, RemovedRunLeavesNoPairs) {
  for (const char* run : {"r1", "r2"}) {
    store_->PutContact({Key(run, "n1"), "u", clock_.Now()});
    store_->PutProgress(Key(run, "n1"), v1::Progress());
  }
  store_->Flush();
  store_->ForgetRun("r1");
  store_->Flush();
  EXPECT_TRUE(LoadPairs("r1").contacts.empty());
  EXPECT_TRUE(LoadPairs("r1").progress.empty());
  EXPECT_EQ(LoadPairs("r2").contacts.size(), 1);
  EXPECT_EQ(LoadPairs("r2").progress.size(), 1);
}

TEST_F(StatusStoreTest, RemovedRunReturnsItsSpaceToTheDisk) {
  v1::Progress progress;
  progress.set_message(std::string(100'000, 'x'));
  for (int i = 0; i < 400; ++i) store_->PutProgress(Key("r", "n" + std::to_string(i)), progress);
  store_->Flush();
  const auto bytes = [this](const std::string& name) {
    return std::filesystem::file_size(folder_ + "/status.db" + name);
  };
  EXPECT_GT(bytes(""), 30u << 20);
  EXPECT_LE(bytes("-wal"), 8u << 20) << "the log of a large batch remains";
  store_->ForgetRun("r");
  store_->Flush();
  EXPECT_LT(bytes(""), 8u << 20);
  EXPECT_LE(bytes("-wal"), 8u << 20);
}

// The removal begins within a second of ForgetRun. If it is faster than the test once, it is not
// each time.
TEST_F(StatusStoreTest, StopDoesNotWaitForTheRemovalOfRuns) {
  size_t left = 0;
  for (int attempt = 0; left == 0 && attempt < 20; ++attempt) {
    for (int i = 0; i < 1000; ++i) {
      store_->PutContact({Key("r", "n" + std::to_string(i)), "u", clock_.Now()});
    }
    store_->Flush();
    store_->ForgetRun("r");
    Reopen();
    left = LoadPairs("r").contacts.size();
  }
  EXPECT_GT(left, 0);
  store_->ForgetRunsExcept({});
  store_->Flush();
  EXPECT_TRUE(LoadPairs("r").contacts.empty());
}

TEST_F(StatusStoreTest, LogThatCannotBeTruncatedIsCounted) {
  store_.reset();
  sqlite::FaultVfs disk;
  Reopen();
  // The first record of a log is synced.
  store_->PutContact({Key("r", "n1"), "u", clock_.Now()});
  store_->Flush();
  disk.FailAt(sqlite::Fault::kSyncError, 1, /*for_good=*/true);
  v1::Progress progress;
  progress.set_message(std::string(100'000, 'x'));
  for (int i = 0; i < 100; ++i) store_->PutProgress(Key("r", "n" + std::to_string(i)), progress);
  store_->Flush();
  EXPECT_EQ(metrics_->Text().find("muster_status_store_failures_total 0\n"), std::string::npos);
  disk.Clear();
  store_->PutProgress(Key("r", "n1"), progress);
  store_->Flush();
  EXPECT_EQ(LoadPairs("r").progress.size(), 100);
  store_.reset();
}

TEST_F(StatusStoreTest, DatabaseOfAnEarlierVersionKeepsItsSpace) {
  store_.reset();
  const std::string path = folder_ + "/status.db";
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, "PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  Reopen();
  v1::Progress progress;
  progress.set_message(std::string(100'000, 'x'));
  for (int i = 0; i < 100; ++i) store_->PutProgress(Key("r", "n" + std::to_string(i)), progress);
  store_->Flush();
  store_->ForgetRun("r");
  store_->Flush();  // returns, although no page can be returned
  EXPECT_TRUE(LoadPairs("r").progress.empty());
  EXPECT_GT(std::filesystem::file_size(path), 8u << 20);
}

TEST_F(StatusStoreTest, RunsThatWereRemovedMeanwhileLeaveNoPairs) {
  for (const char* run : {"r1", "r2", "r3"}) {
    store_->PutContact({Key(run, "n1"), "u", clock_.Now()});
    store_->PutContact({Key(run, "n2"), "u", clock_.Now()});
  }
  store_->PutProgress(Key("r4", "n1"), v1::Progress());
  store_->Flush();
  store_->ForgetRunsExcept({"r2"});
  store_->Flush();
  EXPECT_TRUE(LoadPairs("r1").contacts.empty());
  EXPECT_EQ(LoadPairs("r2").contacts.size(), 2);
  EXPECT_TRUE(LoadPairs("r3").contacts.empty());
  EXPECT_TRUE(LoadPairs("r4").progress.empty());
}

TEST_F(StatusStoreTest, DroppedRecordsAreCounted) {
  const auto none_dropped = [this] {
    return metrics_->Text().find("muster_status_records_dropped_total 0\n") != std::string::npos;
  };
  EXPECT_TRUE(none_dropped());
  // The writer may empty the queue meanwhile.
  for (int i = 0; i < 1'000'000 && (i % 1000 != 0 || none_dropped()); ++i) {
    store_->AddEvent("n", v1::NodeEvent());
  }
  EXPECT_FALSE(none_dropped());
}

TEST_F(StatusStoreTest, SendersAboveTheQueueAreNotTaken) {
  const SenderRecord record = {"u", "n", v1::PRESENCE_ONLINE, clock_.Now(), clock_.Now(), 0, 0};
  EXPECT_EQ(store_->PutSenders(std::vector<SenderRecord>(100'001, record)), 100'000u);
  store_->Flush();
  EXPECT_EQ(store_->PutSenders({record}), 1u);
}

TEST_F(StatusStoreTest, ForeignFileIsRejected) {
  store_.reset();
  std::filesystem::resize_file(folder_ + "/status.db", 100);
  FILE* file = std::fopen((folder_ + "/status.db").c_str(), "w");
  std::fputs("this is not a database, and never was one", file);
  std::fclose(file);
  Metrics metrics;
  const auto store = StatusStore::Open(folder_, clock_, metrics);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss) << store.status();
}

}  // namespace
}  // namespace muster
