// Loss of the process at every change of the disk: each acknowledged file is read unchanged, its
// replacement is complete or absent, and no bytes are left behind.
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/file_ops.h"
#include "services/common/blob/blob_test_util.h"
#include "services/relay/files/share_store.h"
#include "services/relay/files/share_test_util.h"
#include "services/relay/testing/snapshots.h"

namespace muster {
namespace {

using testing::Snapshots;

class ShareStoreCrashTest : public ::testing::Test {
 protected:
  ShareStoreCrashTest() {
    if (mkdtemp(root_.data()) == nullptr) std::abort();
    options_.folder = root_ + "/shares";
    options_.relay = "r1";
  }
  ~ShareStoreCrashTest() override {
    Close();
    RemoveTree(PosixFileOps(), root_).IgnoreError();
  }

  void Open(FileOps& ops) {
    Close();
    metrics_ = std::make_unique<Metrics>();
    executor_ = std::make_unique<Executor>(Executor::Options{"disk", 1, 64});
    auto opened = ShareStore::Open(options_, *executor_, clock_, *metrics_, ops);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }

  void Close() {
    if (executor_ != nullptr) executor_->Drain(absl::Seconds(30)).IgnoreError();
    store_.reset();
    executor_.reset();
  }

  v1::SharedFile File(const std::string& id, const std::string& body) const {
    v1::SharedFile file = UnsignedFile(id, body, clock_.Now());
    file.set_signature("s");
    return file;
  }

  absl::Status Share(const std::string& id, const std::string& body) {
    return store_->Receive(
        File(id, body), false, NodeOpener("n1"), [&](int64_t offset, ShareStore::Sink sink) {
          return sink(std::string_view(body).substr(static_cast<size_t>(offset)));
        });
  }

  // The content, or "" if the file is not held.
  std::string Body(const std::string& id) {
    const auto found = store_->Find(File(id, "").key());
    if (!found || found->stage != ShareStage::kHeld) return "";
    auto source = store_->Read(*found, 0);
    return source.ok() ? ReadAll(**source) : std::string(source.status().message());
  }

  int Blobs() const {
    int blobs = 0;
    const std::string folder = options_.folder + "/blobs/blobs";
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      blobs += entry.is_regular_file() ? 1 : 0;
    }
    return blobs;
  }

  std::string root_ = ::testing::TempDir() + "/crash_XXXXXX";
  FakeClock clock_;
  ShareStoreOptions options_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<ShareStore> store_;
};

struct Copy {
  std::string folder;
  size_t acknowledged;  // steps
};

TEST_F(ShareStoreCrashTest, LossOfTheProcessAtAnyChangeLosesNoAcknowledgedFile) {
  // Each step replaces the file, from and to the database and a blob. The last one ends it.
  const std::vector<std::string> bodies = {Pattern(900), Pattern(70'000), Pattern(80'000),
                                           Pattern(800)};
  std::vector<Copy> copies;
  {
    Snapshots snapshots(options_.folder);
    size_t acknowledged = 0;
    snapshots.Start([&](const std::string& folder) { copies.push_back({folder, acknowledged}); });
    Open(snapshots.ops());
    for (const std::string& body : bodies) {
      clock_.Advance(absl::Seconds(1));
      ASSERT_TRUE(Share("f", body).ok());
      ++acknowledged;
    }
    const auto held = store_->Find(File("f", "").key());
    ShareRecord ended = *held;
    ended.stage = ShareStage::kEnded;
    ASSERT_TRUE(store_->Update(*held, ended).ok());
    ++acknowledged;
    Close();
    snapshots.Stop();
  }
  ASSERT_GT(copies.size(), 50u);
  for (const Copy& copy : copies) {
    SCOPED_TRACE(copy.folder);
    options_.folder = copy.folder;
    Open(PosixFileOps());
    const std::string body = Body("f");
    // The step that was not acknowledged may be complete.
    const auto after = [&](size_t steps) {
      return steps == 0 || steps > bodies.size() ? std::string() : bodies[steps - 1];
    };
    EXPECT_TRUE(body == after(copy.acknowledged) || body == after(copy.acknowledged + 1));
    clock_.Advance(absl::Seconds(1));
    ASSERT_TRUE(Share("f", Pattern(90'000)).ok());
    EXPECT_TRUE(Body("f") == Pattern(90'000));
    EXPECT_EQ(Blobs(), 1);
    EXPECT_EQ(store_->files(), 1);
    Close();
    if (HasFailure()) return;
    std::filesystem::remove_all(copy.folder);
  }
}

TEST_F(ShareStoreCrashTest, RecordIsSyncedWhenAFileIsAcknowledged) {
  sqlite::FaultVfs vfs;
  Open(PosixFileOps());
  ASSERT_TRUE(Share("small", Pattern(900)).ok());
  EXPECT_FALSE(vfs.has_unsynced_writes());
  ASSERT_TRUE(Share("large", Pattern(90'000)).ok());
  EXPECT_FALSE(vfs.has_unsynced_writes());
  Close();
}

}  // namespace
}  // namespace muster
