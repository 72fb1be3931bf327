// How a large upload is hashed that was stored before a restart.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "services/common/blob/forwarding_blob_store.h"
#include "services/common/upload/testing/upload_fixture.h"

namespace muster::testing {
namespace {

constexpr size_t kSize = 20 << 20;
constexpr int64_t kPiece = 1 << 20;

// Passes everything on to another store, and calls `on_read` before each read of stored bytes.
class SlowBlobs : public ForwardingBlobStore {
 public:
  using ForwardingBlobStore::ForwardingBlobStore;

  std::function<void(size_t)> on_read = [](size_t) {};

  absl::StatusOr<std::unique_ptr<StagedBlob>> Stage(std::string_view id, int64_t size) override {
    return Wrap(ForwardingBlobStore::Stage(id, size));
  }
  absl::StatusOr<std::unique_ptr<StagedBlob>> Resume(std::string_view id) override {
    return Wrap(ForwardingBlobStore::Resume(id));
  }

 private:
  class Source : public ByteSource {
   public:
    Source(std::unique_ptr<ByteSource> source, SlowBlobs& blobs)
        : source_(std::move(source)), blobs_(blobs) {}
    absl::StatusOr<size_t> Read(std::span<char> buffer) override {
      blobs_.on_read(buffer.size());
      return source_->Read(buffer);
    }

   private:
    const std::unique_ptr<ByteSource> source_;
    SlowBlobs& blobs_;
  };

  class Staged : public StagedBlob {
   public:
    Staged(std::unique_ptr<StagedBlob> staged, SlowBlobs& blobs)
        : staged_(std::move(staged)), blobs_(blobs) {}
    int64_t written() const override { return staged_->written(); }
    int64_t durable() const override { return staged_->durable(); }
    uint32_t crc32c() const override { return staged_->crc32c(); }
    absl::Status Append(std::string_view data, uint32_t crc) override {
      return staged_->Append(data, crc);
    }
    absl::Status Sync() override { return staged_->Sync(); }
    absl::StatusOr<std::unique_ptr<ByteSource>> Read(int64_t offset) override {
      ASSIGN_OR_RETURN(auto source, staged_->Read(offset));
      return std::make_unique<Source>(std::move(source), blobs_);
    }
    absl::Status Truncate(int64_t size, uint32_t crc32c) override {
      return staged_->Truncate(size, crc32c);
    }
    absl::Status Publish(std::string_view name) override { return staged_->Publish(name); }
    absl::Status Discard() override { return staged_->Discard(); }

   private:
    const std::unique_ptr<StagedBlob> staged_;
    SlowBlobs& blobs_;
  };

  absl::StatusOr<std::unique_ptr<StagedBlob>> Wrap(
      absl::StatusOr<std::unique_ptr<StagedBlob>> staged) {
    if (!staged.ok()) return staged.status();
    return std::make_unique<Staged>(*std::move(staged), *this);
  }
};

class UploadSessionHashTest : public UploadSessionTest {
 protected:
  // Stores all of `data_` by a session that does not survive the restart.
  void StoreBeforeRestart() {
    auto session = Attached();
    for (int64_t at = 0; at < static_cast<int64_t>(kSize); at += kPiece) {
      ASSERT_TRUE(Append(*session, Chunk(at, data_.substr(static_cast<size_t>(at), kPiece))).ok());
    }
  }

  // Returns the session of the process after the restart, with a stream attached.
  std::shared_ptr<UploadSession> AttachedAfterRestart() {
    upload_ = OpenUpload();
    auto session = Session(upload_, slow_);
    EXPECT_EQ(session->Reopen(upload_, kPeer).value_or(-1), static_cast<int64_t>(kSize));
    Attach(*session);
    return session;
  }

  const std::string data_ = Pattern(kSize);
  SlowBlobs slow_{*blobs_};
};

TEST_F(UploadSessionHashTest, SlowHashDoesNotStallTheStream) {
  StoreBeforeRestart();
  auto session = AttachedAfterRestart();
  slow_.on_read = [&](size_t) {
    clock_.Advance(absl::Seconds(1));
    session->EndStalledStream(absl::Seconds(60));
  };
  const auto begin = clock_.MonotonicNow();
  const auto result = Complete(*session, FinishOf(data_));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(clock_.MonotonicNow() - begin, absl::Seconds(60));
  EXPECT_EQ(result->sha256, DigestBytes(Sha256::Of(data_)));
}

TEST_F(UploadSessionHashTest, TasksOfTheStrandRunBetweenTheStepsOfAHash) {
  StoreBeforeRestart();
  auto session = AttachedAfterRestart();
  size_t read = 0;
  size_t read_before_task = 0;
  slow_.on_read = [&](size_t bytes) {
    if (read == 0) {
      EXPECT_TRUE(session->strand().Post([&] { read_before_task = read; }));
    }
    read += bytes;
  };
  EXPECT_TRUE(Complete(*session, FinishOf(data_)).ok());
  EXPECT_EQ(read, kSize);
  EXPECT_GT(read_before_task, 0u);
  EXPECT_LE(read_before_task, kSize / 2);
}

TEST_F(UploadSessionHashTest, TakeOverEndsTheHashOfACompletion) {
  StoreBeforeRestart();
  auto session = AttachedAfterRestart();
  bool taken_over = false;
  slow_.on_read = [&](size_t) {
    if (!std::exchange(taken_over, true)) {
      EXPECT_TRUE(session->strand().Post([&] {
        upload_ = OpenUpload();
        EXPECT_TRUE(session->Reopen(upload_, kPeer).ok());
      }));
    }
  };
  EXPECT_EQ(ReasonOf(Complete(*session, FinishOf(data_)).status()), "TAKEN_OVER");
  // The next stream continues the hash.
  Attach(*session);
  EXPECT_TRUE(Complete(*session, FinishOf(data_)).ok());
}

TEST_F(UploadSessionHashTest, ReattachedStreamDoesNotHashAgain) {
  const std::string body = data_.substr(0, 3 << 20);
  upload_ = OpenUpload();
  auto session = Session(upload_, slow_);
  ASSERT_TRUE(session->Reopen(upload_, kPeer).ok());
  Attach(*session);
  ASSERT_TRUE(Append(*session, Chunk(0, body.substr(0, kPiece))).ok());
  session->Detach(attachment_);
  size_t read = 0;
  slow_.on_read = [&](size_t bytes) { read += bytes; };
  Attach(*session);
  ASSERT_TRUE(Append(*session, Chunk(kPiece, body.substr(kPiece))).ok());
  EXPECT_TRUE(Complete(*session, FinishOf(body)).ok());
  EXPECT_EQ(read, 0u);
}

TEST_F(UploadSessionHashTest, ChunksAfterARestartAreHashedInOrder) {
  const std::string body = data_ + Pattern(3 << 20, 2);
  StoreBeforeRestart();
  auto session = AttachedAfterRestart();
  for (size_t at = kSize; at < body.size(); at += kPiece) {
    ASSERT_TRUE(Append(*session, Chunk(static_cast<int64_t>(at), body.substr(at, kPiece))).ok());
  }
  const auto result = Complete(*session, FinishOf(body));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->sha256, DigestBytes(Sha256::Of(body)));
}

}  // namespace
}  // namespace muster::testing
