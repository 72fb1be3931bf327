#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/store/sqlite/fault_vfs.h"
#include "services/relay/files/share_store.h"
#include "services/relay/files/share_store_fixture.h"
#include "services/relay/files/share_table.h"

namespace muster {
namespace {

class ShareStoreUploadTest : public ShareStoreFixture {
 protected:
  // Opens the upload of a file for another sender. Returns the refusal; OK if it is accepted.
  absl::Status OpenFromRelay(const v1::SharedFile& file) {
    auto refusal = std::make_shared<absl::Status>();
    store_->OpenUpload(file, /*from_parent=*/false, RelayOpener("r9"),
                       [refusal](const auto& opened) { *refusal = opened.status(); });
    return *refusal;
  }
};

TEST_F(ShareStoreUploadTest, SameContentIsNotSentAgain) {
  const v1::SharedFile file = File(body_);
  ASSERT_TRUE(Store(body_, file).ok());
  EXPECT_TRUE(Open(file)->existing);
  clock_.Advance(absl::Seconds(10));
  const v1::SharedFile longer = File(body_, "f", absl::Hours(1));
  EXPECT_TRUE(Open(longer)->existing);
  // The latest signature is stored.
  EXPECT_TRUE(store_->Find(file.key())->share.file().has_expire_time());
}

TEST_F(ShareStoreUploadTest, UploadIsResumedAfterARestart) {
  const v1::SharedFile file = File(body_);
  {
    const auto opened = Open(file);
    ASSERT_TRUE(Append(*opened, 0, body_.substr(0, 1500)).ok());
  }
  Reopen();
  const auto again = Open(file);
  EXPECT_EQ(again->offset, 1500);
  ASSERT_TRUE(Append(*again, 1500, body_.substr(1500)).ok());
  EXPECT_TRUE(Complete(*again).ok());
  EXPECT_EQ(Body(file), body_);
}

TEST_F(ShareStoreUploadTest, FailedDatabaseEndsTheRelay) {
  Close();
  sqlite::FaultVfs vfs;
  absl::Status fatal;
  options_.on_fatal = [&](const absl::Status& why) { fatal = why; };
  Reopen();
  vfs.FailAt(sqlite::Fault::kSyncError, 1);
  EXPECT_FALSE(Open(File(body_)).ok());
  EXPECT_EQ(ReasonOf(fatal), "STORE_FAILED");
  Close();
}

// The bytes of a large file are published before its row is written.
TEST_F(ShareStoreUploadTest, DroppedUploadWhoseCommitFailedLeavesNoBlob) {
  Close();
  sqlite::FaultVfs vfs;
  Reopen();
  const v1::SharedFile file = File(body_);
  const auto opened = Open(file);
  ASSERT_TRUE(Append(*opened, 0, body_).ok());
  vfs.FailAt(sqlite::Fault::kFullDisk, 1);
  EXPECT_EQ(ReasonOf(Complete(*opened)), "DISK_FULL");
  EXPECT_EQ(Blobs(), 1);
  store_->DropUpload(file.key());
  DrainDisk();
  EXPECT_EQ(Blobs(), 0);
  EXPECT_EQ(store_->bytes(), 0);
  Close();
}

TEST_F(ShareStoreUploadTest, LaterOpenTakesOverTheUploadOfAKey) {
  const v1::SharedFile file = File(body_);
  const auto first = Open(file);
  ASSERT_TRUE(Append(*first, 0, body_.substr(0, 1000)).ok());
  const auto second = Open(file);
  EXPECT_EQ(second->offset, 1000);
  EXPECT_EQ(ReasonOf(Append(*first, 1000, body_.substr(1000))), "TAKEN_OVER");
  EXPECT_EQ(ReasonOf(Complete(*first)), "TAKEN_OVER");
  // An upload of other content starts at 0 and ends the earlier one.
  const v1::SharedFile other = File("other");
  const auto third = Open(other);
  EXPECT_EQ(third->offset, 0);
  EXPECT_EQ(ReasonOf(Append(*second, 1000, body_.substr(1000))), "UPLOAD_NOT_FOUND");
  ASSERT_TRUE(Append(*third, 0, "other").ok());
  EXPECT_TRUE(Complete(*third).ok());
  EXPECT_EQ(Body(other), "other");
  EXPECT_EQ(store_->files(), 1);
  EXPECT_EQ(store_->bytes(), 5);
  // Another sender does not find the upload.
  const auto fourth = Open(File("new", "g"));
  EXPECT_EQ(ReasonOf(store_->FindUpload(fourth->upload_id, NodeOpener("n9")).status()),
            "UPLOAD_NOT_FOUND");
}

TEST_F(ShareStoreUploadTest, ContentThatWasNotSignedIsRejected) {
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
  EXPECT_EQ(
      ReasonOf(OnStrand(*opened,
                        [&](UploadSession& session, UploadAttachment attachment, const auto& done) {
                          done(session.Append(attachment, {0, 1, 1, false, "x"}).status());
                        })),
      "CRC_MISMATCH");
  EXPECT_EQ(ReasonOf(Append(*opened, 7, body_)), "OFFSET_TOO_HIGH");
  EXPECT_FALSE(store_->Find(wrong.key()));
}

TEST_F(ShareStoreUploadTest, EmptyFileIsStored) {
  const v1::SharedFile file = File("");
  EXPECT_TRUE(Store("", file).ok());
  EXPECT_EQ(Body(file), "");
}

TEST_F(ShareStoreUploadTest, EarlierFileStaysUntilTheLaterIsComplete) {
  const v1::SharedFile old = File("old");
  const v1::SharedFile fresh = File(body_);
  ASSERT_TRUE(Store("old", old).ok());
  const auto opened = Open(fresh);
  ASSERT_TRUE(Append(*opened, 0, body_).ok());
  EXPECT_EQ(Body(old), "old");
  ASSERT_TRUE(Complete(*opened).ok());
  EXPECT_EQ(Body(fresh), body_);
  Reopen();
  EXPECT_EQ(Body(fresh), body_);
  EXPECT_EQ(store_->files(), 1);
}

TEST_F(ShareStoreUploadTest, FileSignedEarlierDoesNotReplaceALaterOne) {
  const v1::SharedFile old = File("old");
  clock_.Advance(absl::Seconds(5));
  ASSERT_TRUE(Store(body_, File(body_)).ok());
  EXPECT_EQ(ReasonOf(Store("old", old).status()), "SHARE_SUPERSEDED");
  EXPECT_EQ(Body(old), body_);
}

TEST_F(ShareStoreUploadTest, FilesBeyondTheQuotaAreRejected) {
  options_.quota = 110'000;
  options_.max_files = 2;
  options_.max_size = 100'500;
  Reopen();
  v1::SharedFile of_another = File("x", "g");
  of_another.mutable_key()->set_source("n9");
  EXPECT_EQ(ReasonOf(Open(File(std::string(100'501, 'x'))).status()), "SHARE_TOO_LARGE");
  ASSERT_TRUE(Store(body_, File(body_)).ok());
  EXPECT_EQ(ReasonOf(Open(File(body_, "g")).status()), "SHARE_QUOTA");
  ASSERT_TRUE(Store("x", of_another).ok());
  EXPECT_EQ(ReasonOf(Open(File("x", "h")).status()), "SHARE_QUOTA");
  ShareRecord gone = *store_->Find(File(body_).key());
  const ShareRecord was = gone;
  gone.stage = ShareStage::kEnded;
  ASSERT_TRUE(store_->Update(was, gone).ok());
  EXPECT_TRUE(Store("x", File("x", "h")).ok());
}

TEST_F(ShareStoreUploadTest, EndedFilesDoNotPreventNewOnes) {
  options_.max_files = 2;
  Reopen();
  constexpr int kFiles = 10;
  for (int i = 0; i < kFiles; ++i) {
    const auto held = Store("x", File("x", absl::StrCat("f", i)));
    ASSERT_TRUE(held.ok()) << i << held.status();
    ShareRecord ended = *held;
    ended.stage = ShareStage::kEnded;
    ASSERT_TRUE(store_->Update(*held, ended).ok());
    clock_.Advance(absl::Seconds(1));
  }
  Reopen();
  // One source has half of the records: four for each of its files.
  for (int i = 0; i < kFiles; ++i) {
    EXPECT_EQ(store_->Find(File("x", absl::StrCat("f", i)).key()).has_value(), i >= kFiles - 4);
  }
}

TEST_F(ShareStoreUploadTest, OneSourceDoesNotUseAllUploads) {
  absl::Status last;
  int opened = 0;
  for (; opened < 300 && last.ok(); ++opened) {
    last = Open(File("x", absl::StrCat("f", opened))).status();
  }
  EXPECT_EQ(ReasonOf(last), "TOO_MANY_UPLOADS");
  v1::SharedFile of_another = File("x");
  of_another.mutable_key()->set_source("n9");
  EXPECT_TRUE(Open(of_another, "n9").ok());
}

// Returns the number of open file descriptors of this process.
int OpenFiles() {
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++files;
  }
  return files;
}

TEST_F(ShareStoreUploadTest, IdleUploadsHoldNoFilesAndAreResumed) {
  constexpr int kUploads = 16;
  ops_ = &PosixFileOps();
  Reopen();
  const int before = OpenFiles();
  for (int i = 0; i < kUploads; ++i) {
    ASSERT_TRUE(Open(File(body_, absl::StrCat("f", i))).ok());
  }
  EXPECT_GE(OpenFiles(), before + kUploads);
  clock_.Advance(absl::Seconds(11));
  store_->Sweep();
  DrainDisk();
  EXPECT_EQ(OpenFiles(), before);
  const auto opened = Open(File(body_, "f3"));
  clock_.Advance(absl::Seconds(11));
  store_->Sweep();
  DrainDisk();
  ASSERT_TRUE(Append(*opened, 0, body_).ok());
  EXPECT_TRUE(Complete(*opened).ok());
  EXPECT_EQ(Body(File(body_, "f3")), body_);
}

// A source that attached elsewhere sends its file again, while its first relay forwards it.
TEST_F(ShareStoreUploadTest, SecondSenderWaitsWhileTheFirstOneSends) {
  const v1::SharedFile file = File(body_);
  const auto first = Open(file);
  const absl::Status sent =
      OnStrand(*first, [&](UploadSession& session, UploadAttachment attachment, const auto& done) {
        EXPECT_TRUE(session.Append(attachment, {0, 1, Crc32c("a"), false, "a"}).ok());
        done(OpenFromRelay(file));
      });
  EXPECT_EQ(ReasonOf(sent), "SHARE_ARRIVING");
  EXPECT_TRUE(RetryAfterOf(sent));
  // The first one has gone: the second one starts.
  EXPECT_TRUE(Open(file, "n9").ok());
  EXPECT_EQ(ReasonOf(Append(*first, 1, "a")), "UPLOAD_NOT_FOUND");
}

TEST_F(ShareStoreUploadTest, StalledSenderIsReplaced) {
  const v1::SharedFile file = File(body_);
  const auto first = Open(file);
  const absl::Status sent =
      OnStrand(*first, [&](UploadSession&, UploadAttachment, const auto& done) {
        clock_.Advance(absl::Seconds(61));
        store_->Sweep();
        done(OpenFromRelay(file));
      });
  EXPECT_TRUE(sent.ok()) << sent;
}

TEST_F(ShareStoreUploadTest, StalledStreamIsEndedAndItsUploadStays) {
  const auto first = Open(File(body_));
  ASSERT_TRUE(Append(*first, 0, body_.substr(0, 1000)).ok());
  const auto opened = Open(File(body_));
  const absl::Status appended =
      OnStrand(*opened, [&](UploadSession& session, UploadAttachment attachment, const auto& done) {
        clock_.Advance(absl::Seconds(61));
        store_->Sweep();
        UploadChunk chunk{1000, 1, Crc32c("a"), false, "a"};
        done(session.Append(attachment, std::move(chunk)).status());
      });
  EXPECT_FALSE(appended.ok());
  EXPECT_EQ(Open(File(body_))->offset, 1000);
}

TEST_F(ShareStoreUploadTest, FileSignedLaterReplacesAnUploadInProgress) {
  const auto first = Open(File(body_));
  clock_.Advance(absl::Seconds(5));
  const v1::SharedFile later = File("later");
  const absl::Status sent = OnStrand(*first, [&](UploadSession&, UploadAttachment,
                                                 const auto& done) { done(OpenFromRelay(later)); });
  EXPECT_TRUE(sent.ok()) << sent;
}

// The removal of the row of the first one failed.
TEST_F(ShareStoreUploadTest, SecondUploadOfAKeyIsRemovedAtTheStart) {
  ASSERT_TRUE(Open(File(body_)).ok());
  Close();
  {
    const auto table = ShareTable::Open(options_.folder + "/shares.db");
    ASSERT_TRUE(table.ok()) << table.status();
    const auto contents = (*table)->Load();
    ASSERT_TRUE(contents.ok()) << contents.status();
    ShareRecord second = contents->rows.at(0).record;
    second.id = std::string(second.id.size(), 'b');
    ASSERT_TRUE((*table)->Put(second).ok());
  }
  Reopen();
  EXPECT_EQ(store_->files(), 1);
  clock_.Advance(absl::Hours(2));
  store_->Sweep();
  EXPECT_EQ(store_->files(), 0);
  Reopen();
  EXPECT_EQ(store_->files(), 0);
}

// A peer may have added them; they are not signed.
TEST_F(ShareStoreUploadTest, UnknownFieldsOfAFileAreNotKept) {
  v1::SharedFile padded = File(body_);
  padded.GetReflection()->MutableUnknownFields(&padded)->AddLengthDelimited(
      100, std::string(size_t{1} << 20, 'x'));
  ASSERT_TRUE(Open(padded).ok());
  Close();
  const auto table = ShareTable::Open(options_.folder + "/shares.db");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_LT((*table)->Load()->rows.at(0).record.share.ByteSizeLong(), 1000u);
}

TEST_F(ShareStoreUploadTest, IdleUploadIsRemoved) {
  const auto opened = Open(File(body_));
  ASSERT_TRUE(Append(*opened, 0, "aaa").ok());
  store_->Sweep();
  clock_.Advance(absl::Minutes(50));
  store_->Sweep();
  EXPECT_EQ(store_->files(), 1);
  // It is charged for its full size.
  EXPECT_EQ(store_->bytes(), static_cast<int64_t>(body_.size()));
  clock_.Advance(absl::Minutes(20));
  store_->Sweep();
  EXPECT_EQ(store_->files(), 0);
  EXPECT_EQ(store_->bytes(), 0);
  EXPECT_EQ(ReasonOf(Append(*opened, 3, "aaa")), "UPLOAD_NOT_FOUND");
}

}  // namespace
}  // namespace muster
