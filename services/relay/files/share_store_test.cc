#include "services/relay/files/share_store.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/relay/files/share_store_fixture.h"

namespace muster {
namespace {

class ShareStoreTest : public ShareStoreFixture {};

TEST_F(ShareStoreTest, FileExistsOnceItIsComplete) {
  const v1::SharedFile file = File(body_);
  const auto opened = Open(file);
  ASSERT_TRUE(Append(*opened, 0, body_).ok());
  EXPECT_FALSE(store_->Find(file.key()));
  ASSERT_TRUE(Complete(*opened).ok());
  EXPECT_EQ(Body(file), body_);
  EXPECT_EQ(Body(file, 100'000), "end");
  Reopen();
  EXPECT_EQ(Body(file), body_);
  const auto whole = store_->ReadFile(*store_->Find(file.key()));
  EXPECT_EQ(whole->SerializeAsString(), file.SerializeAsString());
  EXPECT_EQ(store_->bytes(), file.size());
}

TEST_F(ShareStoreTest, FilesSurviveAStartThatCannotReadTheDisk) {
  const v1::SharedFile held = File(body_, "held");
  ASSERT_TRUE(Store(body_, held).ok());
  const v1::SharedFile arriving = File(body_, "arriving");
  ASSERT_TRUE(Append(*Open(arriving), 0, body_.substr(0, 1000)).ok());
  for (const auto call :
       {SimulatedDisk::Call::kOpen, SimulatedDisk::Call::kRead, SimulatedDisk::Call::kStat}) {
    for (int n = 1; n <= 8; ++n) {
      Close();
      disk_.FailAt(call, n, EMFILE);
      OpenStore().IgnoreError();
    }
  }
  Close();
  disk_.Restart();
  Reopen();
  EXPECT_TRUE(Body(held) == body_);
  EXPECT_EQ(Open(arriving)->offset, 1000);
}

TEST_F(ShareStoreTest, FileWhoseBytesAreLostIsRefused) {
  const v1::SharedFile file = File(body_);
  ASSERT_TRUE(Store(body_, file).ok());
  ASSERT_TRUE(Store(small_, File(small_, "small")).ok());
  Close();
  ASSERT_TRUE(RemoveTree(disk_, options_.folder + "/blobs").ok());
  Reopen();
  EXPECT_EQ(store_->Find(file.key())->share.state(), v1::SHARE_STATE_REFUSED);
  EXPECT_EQ(Body(File(small_, "small")), small_);
}

TEST_F(ShareStoreTest, UnreadableDatabaseRefusesToStart) {
  ASSERT_TRUE(Store(body_, File(body_)).ok());
  Close();
  std::ofstream(options_.folder + "/shares.db") << std::string(8192, 'x');
  const absl::Status opened = OpenStore();
  EXPECT_EQ(ReasonOf(opened), "STORE_CORRUPT");
  EXPECT_NE(opened.message().find("/shares.db"), std::string::npos) << opened;
  EXPECT_EQ(Blobs(), 1);
}

TEST_F(ShareStoreTest, BytesWithoutARecordAreRemovedAtTheStart) {
  ASSERT_TRUE(Store(body_, File(body_)).ok());
  Close();
  for (const char* end : {"", "-wal", "-shm"}) {
    std::filesystem::remove(options_.folder + "/shares.db" + end);
  }
  Reopen();
  EXPECT_EQ(Blobs(), 0);
}

TEST_F(ShareStoreTest, FileThatEndedLosesItsBytes) {
  for (const std::string& body : {body_, small_}) {
    const v1::SharedFile file = File(body);
    const ShareRecord held = *Store(body, file);
    ShareRecord ended = held;
    ended.stage = ShareStage::kEnded;
    ASSERT_TRUE(store_->Update(held, ended).ok());
    EXPECT_EQ(ReasonOf(store_->Read(held, 0).status()), "SHARE_NOT_FOUND");
    EXPECT_EQ(Blobs(), 0);
    clock_.Advance(absl::Seconds(1));
  }
}

TEST_F(ShareStoreTest, ExpiredFileIsNotReturned) {
  const v1::SharedFile file = File(body_, "f", absl::Hours(1));
  ASSERT_TRUE(Store(body_, file, /*from_parent=*/true).ok());
  clock_.Advance(absl::Hours(2));
  EXPECT_EQ(Body(file), "(not held)");
  EXPECT_EQ(store_->Find(file.key())->share.state(), v1::SHARE_STATE_EXPIRED);
  EXPECT_EQ(ReasonOf(Open(file).status()), "SHARE_EXPIRED");
  EXPECT_EQ(store_->bytes(), file.size());
  store_->Sweep();
  EXPECT_EQ(store_->bytes(), 0);
  EXPECT_TRUE(store_->Find(file.key())->unreported);
  Reopen();
  EXPECT_EQ(store_->Find(file.key())->share.state(), v1::SHARE_STATE_EXPIRED);
  clock_.Advance(absl::Hours(24 * 8));
  store_->Sweep();
  EXPECT_FALSE(store_->Find(file.key()));
}

TEST_F(ShareStoreTest, DeliveredFileWithoutExpiryStays) {
  const v1::SharedFile resting = File(body_);
  const v1::SharedFile lost = File(body_, "lost");
  const ShareRecord taken = *Store(body_, resting);
  ASSERT_TRUE(Store(body_, lost).ok());
  ShareRecord is = taken;
  is.share.set_state(v1::SHARE_STATE_DELIVERED);
  ASSERT_TRUE(store_->Update(taken, is).ok());
  clock_.Advance(absl::Hours(24 * 400));
  store_->Sweep();
  EXPECT_EQ(Body(resting), body_);
  // A file without a route for a week is expired.
  EXPECT_EQ(store_->Find(lost.key())->share.state(), v1::SHARE_STATE_EXPIRED);
}

TEST_F(ShareStoreTest, UpdateOfAChangedRecordIsAborted) {
  const ShareRecord taken = *Store(body_, File(body_));
  ShareRecord first = taken;
  first.share.set_state(v1::SHARE_STATE_DELIVERED);
  ASSERT_TRUE(store_->Update(taken, first).ok());
  ShareRecord second = taken;
  second.stage = ShareStage::kPassedUp;
  EXPECT_TRUE(absl::IsAborted(store_->Update(taken, second)));
  EXPECT_EQ(Body(File(body_)), body_);
}

}  // namespace
}  // namespace muster
