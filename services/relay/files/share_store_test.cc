#include "services/relay/files/share_store.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/sha256.h"
#include "services/common/base/simulated_disk.h"
#include "services/common/base/status_macros.h"
#include "services/common/blob/blob_test_util.h"

namespace muster {
namespace {

class ShareStoreTest : public ::testing::Test {
 protected:
  ShareStoreTest() {
    options_.folder = "/relay/shares";
    options_.relay = "r1";
    EXPECT_TRUE(MakeFolders(disk_, "/relay").ok());
    Reopen();
  }

  void Reopen() {
    store_.reset();
    metrics_ = std::make_unique<Metrics>();
    auto store = ShareStore::Open(options_, clock_, *metrics_, disk_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  v1::SharedFile File(const std::string& body, const std::string& id = "f",
                      absl::Duration ttl = absl::InfiniteDuration()) {
    v1::SharedFile file;
    file.mutable_key()->set_source("n1");
    file.mutable_key()->set_target("n2");
    file.mutable_key()->set_id(id);
    file.set_size(static_cast<int64_t>(body.size()));
    file.set_sha256(DigestBytes(Sha256::Of(body)));
    file.mutable_sign_time()->set_seconds(absl::ToUnixSeconds(clock_.Now()));
    if (ttl != absl::InfiniteDuration()) {
      file.mutable_expire_time()->set_seconds(absl::ToUnixSeconds(clock_.Now() + ttl));
    }
    file.set_signature("s");
    file.set_certificate_chain_pem("c");
    return file;
  }

  absl::StatusOr<ShareStore::Opened> Open(const v1::SharedFile& file, bool from_parent = false) {
    return store_->OpenUpload(file, from_parent, NodeOpener("n1"));
  }

  static absl::Status Append(const ShareStore::Opened& opened, int64_t offset,
                             const std::string& data) {
    return opened.upload->Append(opened.epoch, offset, data, Crc32c(data));
  }

  absl::StatusOr<ShareRecord> Store(const std::string& body, const v1::SharedFile& file,
                                    bool from_parent = false) {
    ASSIGN_OR_RETURN(auto opened, Open(file, from_parent));
    if (opened.existing) return *opened.existing;
    for (size_t at = static_cast<size_t>(opened.offset); at < body.size(); at += 1000) {
      RETURN_IF_ERROR(Append(opened, static_cast<int64_t>(at), body.substr(at, 1000)));
    }
    return store_->Complete(*opened.upload, opened.epoch);
  }

  std::string Body(const v1::SharedFile& file, int64_t offset = 0) {
    const auto found = store_->Find(file.key());
    if (!found || found->stage != ShareStage::kHeld) return "(not held)";
    auto source = store_->Read(*found, offset);
    return source.ok() ? ReadAll(**source) : std::string(source.status().message());
  }

  FakeClock clock_;
  SimulatedDisk disk_;
  ShareStoreOptions options_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<ShareStore> store_;
  const std::string body_ = std::string(4000, 'a') + "end";
};

TEST_F(ShareStoreTest, IsThereWhenAllOfItIsAndNotBefore) {
  const v1::SharedFile file = File(body_);
  const auto opened = Open(file);
  ASSERT_TRUE(Append(*opened, 0, body_).ok());
  EXPECT_FALSE(store_->Find(file.key()));
  ASSERT_TRUE(store_->Complete(*opened->upload, opened->epoch).ok());
  EXPECT_EQ(Body(file), body_);
  EXPECT_EQ(Body(file, 4000), "end");
  Reopen();
  EXPECT_EQ(Body(file), body_);
  const auto whole = store_->ReadFile(*store_->Find(file.key()));
  EXPECT_EQ(whole->SerializeAsString(), file.SerializeAsString());
  EXPECT_EQ(store_->bytes(), file.size());
}

TEST_F(ShareStoreTest, NothingIsSentThatIsThere) {
  const v1::SharedFile file = File(body_);
  ASSERT_TRUE(Store(body_, file).ok());
  EXPECT_TRUE(Open(file)->existing);
  clock_.Advance(absl::Seconds(10));
  const v1::SharedFile longer = File(body_, "f", absl::Hours(1));
  EXPECT_TRUE(Open(longer)->existing);
  // What was signed last counts.
  EXPECT_TRUE(store_->Find(file.key())->share.file().has_expire_time());
}

TEST_F(ShareStoreTest, GoesOnAfterARestart) {
  const v1::SharedFile file = File(body_);
  {
    const auto opened = Open(file);
    ASSERT_TRUE(Append(*opened, 0, body_.substr(0, 1500)).ok());
  }
  Reopen();
  const auto again = Open(file);
  EXPECT_EQ(again->offset, 1500);
  ASSERT_TRUE(Append(*again, 1500, body_.substr(1500)).ok());
  EXPECT_TRUE(store_->Complete(*again->upload, again->epoch).ok());
  EXPECT_EQ(Body(file), body_);
}

TEST_F(ShareStoreTest, ShareThatCannotBeReadAtTheStartStays) {
  const v1::SharedFile held = File(body_, "held");
  ASSERT_TRUE(Store(body_, held).ok());
  const v1::SharedFile arriving = File(body_, "arriving");
  ASSERT_TRUE(Append(*Open(arriving), 0, body_.substr(0, 1000)).ok());
  for (const auto call :
       {SimulatedDisk::Call::kOpen, SimulatedDisk::Call::kRead, SimulatedDisk::Call::kStat}) {
    for (int n = 1; n <= 8; ++n) {
      store_.reset();
      metrics_ = std::make_unique<Metrics>();
      disk_.FailAt(call, n, EMFILE);
      ShareStore::Open(options_, clock_, *metrics_, disk_).status().IgnoreError();
    }
  }
  disk_.Restart();
  Reopen();
  EXPECT_TRUE(Body(held) == body_);
  EXPECT_EQ(Open(arriving)->offset, 1000);
}

TEST_F(ShareStoreTest, ShareWhoseBytesAreGoneIsRefused) {
  const v1::SharedFile file = File(body_);
  ASSERT_TRUE(Store(body_, file).ok());
  store_.reset();
  ASSERT_TRUE(RemoveTree(disk_, "/relay/shares/blobs").ok());
  Reopen();
  EXPECT_EQ(store_->Find(file.key())->share.state(), v1::SHARE_STATE_REFUSED);
}

TEST_F(ShareStoreTest, OneUploadOfAKeyAtATime) {
  const v1::SharedFile file = File(body_);
  const auto first = Open(file);
  ASSERT_TRUE(Append(*first, 0, body_.substr(0, 1000)).ok());
  const auto second = Open(file);
  EXPECT_EQ(second->offset, 1000);
  EXPECT_EQ(ReasonOf(Append(*first, 1000, body_.substr(1000))), "TAKEN_OVER");
  EXPECT_EQ(ReasonOf(store_->Complete(*first->upload, first->epoch).status()), "TAKEN_OVER");
  // With other bytes it begins anew, and the one before is gone.
  const v1::SharedFile other = File("other");
  const auto third = Open(other);
  EXPECT_EQ(third->offset, 0);
  EXPECT_EQ(ReasonOf(Append(*second, 1000, body_.substr(1000))), "TAKEN_OVER");
  ASSERT_TRUE(Append(*third, 0, "other").ok());
  EXPECT_TRUE(store_->Complete(*third->upload, third->epoch).ok());
  EXPECT_EQ(Body(other), "other");
  EXPECT_EQ(store_->files(), 1);
  EXPECT_EQ(store_->bytes(), 5);
  // Somebody else's upload is nobody else's.
  const auto fourth = Open(File("new", "g"));
  EXPECT_EQ(ReasonOf(store_->FindUpload(fourth->upload->id(), NodeOpener("n9")).status()),
            "UPLOAD_NOT_FOUND");
}

TEST_F(ShareStoreTest, WhatIsNotWhatWasSignedIsNotKept) {
  v1::SharedFile wrong = File(body_);
  wrong.set_sha256(DigestBytes(Sha256::Of("something else")));
  EXPECT_EQ(ReasonOf(Store(body_, wrong).status()), "DIGEST_MISMATCH");
  v1::SharedFile longer = File(body_);
  longer.set_size(longer.size() + 1);
  EXPECT_EQ(ReasonOf(Store(body_, longer).status()), "SIZE_MISMATCH");
  v1::SharedFile shorter = File(body_);
  shorter.set_size(shorter.size() - 1);
  EXPECT_EQ(ReasonOf(Store(body_, shorter).status()), "SIZE_MISMATCH");
  const auto opened = Open(File(body_, "crc"));
  EXPECT_EQ(ReasonOf(opened->upload->Append(opened->epoch, 0, body_, 1)), "CRC_MISMATCH");
  EXPECT_EQ(ReasonOf(Append(*opened, 7, body_)), "OFFSET_TOO_HIGH");
  EXPECT_FALSE(store_->Find(wrong.key()));
}

TEST_F(ShareStoreTest, AnEmptyFileIsAFile) {
  const v1::SharedFile file = File("");
  EXPECT_TRUE(Store("", file).ok());
  EXPECT_EQ(Body(file), "");
}

TEST_F(ShareStoreTest, TheOldOneIsThereUntilTheNewOneIs) {
  const v1::SharedFile old = File("old");
  const v1::SharedFile fresh = File(body_);
  ASSERT_TRUE(Store("old", old).ok());
  const auto opened = Open(fresh);
  ASSERT_TRUE(Append(*opened, 0, body_).ok());
  EXPECT_EQ(Body(old), "old");
  ASSERT_TRUE(store_->Complete(*opened->upload, opened->epoch).ok());
  EXPECT_EQ(Body(fresh), body_);
  Reopen();
  EXPECT_EQ(Body(fresh), body_);
  EXPECT_EQ(store_->files(), 1);
}

TEST_F(ShareStoreTest, WhatWasSignedBeforeDoesNotReplaceWhatWasSignedLater) {
  const v1::SharedFile old = File("old");
  clock_.Advance(absl::Seconds(5));
  ASSERT_TRUE(Store(body_, File(body_)).ok());
  EXPECT_EQ(ReasonOf(Store("old", old).status()), "SHARE_SUPERSEDED");
  EXPECT_EQ(Body(old), body_);
}

TEST_F(ShareStoreTest, RefusesWhatHasNoRoom) {
  options_.quota = 5000;
  options_.max_files = 2;
  options_.max_size = 4500;
  Reopen();
  EXPECT_EQ(ReasonOf(Open(File(std::string(4501, 'x'))).status()), "SHARE_TOO_LARGE");
  ASSERT_TRUE(Store(body_, File(body_)).ok());
  EXPECT_EQ(ReasonOf(Open(File(body_, "g")).status()), "SHARE_QUOTA");
  ASSERT_TRUE(Store("x", File("x", "g")).ok());
  EXPECT_EQ(ReasonOf(Open(File("x", "h")).status()), "SHARE_QUOTA");
  ShareRecord gone = *store_->Find(File(body_).key());
  const ShareRecord was = gone;
  gone.stage = ShareStage::kEnded;
  ASSERT_TRUE(store_->Update(was, gone).ok());
  EXPECT_TRUE(Store("x", File("x", "h")).ok());
}

TEST_F(ShareStoreTest, OneSourceDoesNotKeepOthersOut) {
  absl::Status last;
  int opened = 0;
  for (; opened < 300 && last.ok(); ++opened) {
    last = Open(File("x", absl::StrCat("f", opened))).status();
  }
  EXPECT_EQ(ReasonOf(last), "TOO_MANY_UPLOADS");
  v1::SharedFile of_another = File("x");
  of_another.mutable_key()->set_source("n9");
  EXPECT_TRUE(store_->OpenUpload(of_another, false, NodeOpener("n9")).ok());
}

TEST_F(ShareStoreTest, WhatHasExpiredIsNotThereWhateverTheDiskSays) {
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

TEST_F(ShareStoreTest, OneWithoutExpiryStaysWhereItRests) {
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
  // One that finds no way for a week is told of as expired.
  EXPECT_EQ(store_->Find(lost.key())->share.state(), v1::SHARE_STATE_EXPIRED);
}

TEST_F(ShareStoreTest, AnUploadThatNobodyGoesOnWithIsForgotten) {
  const auto opened = Open(File(body_));
  ASSERT_TRUE(Append(*opened, 0, "aaa").ok());
  store_->Sweep();
  clock_.Advance(absl::Minutes(50));
  store_->Sweep();
  EXPECT_EQ(store_->files(), 1);
  // Until then it takes the room of the whole.
  EXPECT_EQ(store_->bytes(), static_cast<int64_t>(body_.size()));
  clock_.Advance(absl::Minutes(20));
  store_->Sweep();
  EXPECT_EQ(store_->files(), 0);
  EXPECT_EQ(store_->bytes(), 0);
  EXPECT_EQ(ReasonOf(Append(*opened, 3, "aaa")), "TAKEN_OVER");
}

TEST_F(ShareStoreTest, AChangeOfWhatChangedMeanwhileIsNotMade) {
  const ShareRecord taken = *Store(body_, File(body_));
  ShareRecord first = taken;
  first.share.set_state(v1::SHARE_STATE_DELIVERED);
  ASSERT_TRUE(store_->Update(taken, first).ok());
  ShareRecord second = taken;
  second.stage = ShareStage::kPassedUp;
  EXPECT_TRUE(absl::IsAborted(store_->Update(taken, second)));
  EXPECT_EQ(Body(File(body_)), body_);
}

// Power fails at every call that changes the disk: what was answered before is there, whole, after.
TEST_F(ShareStoreTest, NothingThatWasAnsweredIsLostWithThePower) {
  for (int at = 1;; ++at) {
    SimulatedDisk disk;
    ASSERT_TRUE(MakeFolders(disk, "/relay").ok());
    Metrics metrics;
    auto store = ShareStore::Open(options_, clock_, metrics, disk);
    ASSERT_TRUE(store.ok());
    disk.PowerOffAt(at);
    std::string answered;  // the body that was answered last
    for (const std::string body : {"first body", "the second, longer body"}) {
      const v1::SharedFile file = File(body);
      auto opened = (*store)->OpenUpload(file, false, NodeOpener("n1"));
      if (!opened.ok() || !Append(*opened, 0, body).ok() ||
          !(*store)->Complete(*opened->upload, opened->epoch).ok()) {
        break;
      }
      answered = body;
    }
    const bool all = !disk.powered_off();
    store->reset();
    disk.Crash(static_cast<uint64_t>(at));
    Metrics next;
    auto again = ShareStore::Open(options_, clock_, next, disk);
    ASSERT_TRUE(again.ok()) << again.status() << " at " << at;
    const auto found = (*again)->Find(File("").key());
    std::string body;
    if (found && found->stage == ShareStage::kHeld) {
      auto source = (*again)->Read(*found, 0);
      ASSERT_TRUE(source.ok()) << source.status() << " at " << at;
      body = ReadAll(**source);
    }
    // An answer that did not get out may have been true.
    if (body != answered) {
      EXPECT_EQ(body, answered.empty() ? "first body" : "the second, longer body") << "at " << at;
    }
    if (!body.empty()) {
      EXPECT_EQ(DigestBytes(Sha256::Of(body)), found->share.file().sha256());
    }
    if (all) break;
  }
}

}  // namespace
}  // namespace muster
