#include "services/aggregator/uploads/upload_quota.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/metrics.h"
#include "services/common/rpc/limits.h"

namespace muster {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// A disk with free space, and nothing else.
class FreeSpace final : public BlobStore {
 public:
  absl::StatusOr<int64_t> Available() override { return available; }

  absl::StatusOr<std::unique_ptr<StagedBlob>> Stage(std::string_view, int64_t) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::unique_ptr<StagedBlob>> Resume(std::string_view) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<int64_t> StagedSize(std::string_view) override {
    return absl::UnimplementedError("");
  }
  absl::Status DiscardStaged(std::string_view) override { return absl::UnimplementedError(""); }
  absl::StatusOr<std::unique_ptr<ByteSource>> Open(std::string_view, int64_t) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<int64_t> Size(std::string_view) override { return absl::UnimplementedError(""); }
  absl::Status SyncName(std::string_view) override { return absl::UnimplementedError(""); }
  absl::Status Remove(std::string_view) override { return absl::UnimplementedError(""); }
  absl::Status RemoveAll(std::string_view) override { return absl::UnimplementedError(""); }
  absl::StatusOr<std::vector<std::string>> ListStaged() override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::vector<std::string>> ListBelow(std::string_view) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::vector<std::string>> ListFolders(std::string_view) override {
    return absl::UnimplementedError("");
  }

  int64_t available = 0;
};

Identity Node(const std::string& name) { return {"f.muster", NodeIdentity{name}}; }
const Identity kRelay = {"f.muster", ServiceIdentity{ServiceRole::kRelay, "r1"}};

UploadRecord Upload(const std::string& id, const std::string& uri, const std::string& run = "r") {
  UploadRecord upload;
  upload.id = id;
  upload.key.run = run;
  upload.delivery.uri = uri;
  return upload;
}

class UploadQuotaTest : public ::testing::Test {
 protected:
  // Charges as bytes come: each step is then gone from the disk.
  absl::Status Write(const std::string& id, int64_t from, int64_t to) {
    for (int64_t size = from + kMiB; size <= to; size += kMiB) {
      const absl::Status grown = quota_.Grow(id, size);
      if (!grown.ok()) return grown;
      blobs_.available -= kMiB;
    }
    return absl::OkStatus();
  }

  FreeSpace blobs_;
  Metrics metrics_;
  OpenStreams streams_{metrics_};
  UploadQuota quota_{blobs_,
                     streams_,
                     {.max_uploads = 1000, .max_streams = 100, .max_result_bytes = 10'000 * kMiB}};
};

TEST_F(UploadQuotaTest, OneIdentityStagesAtMostItsShareOfTheDisk) {
  blobs_.available = 1000 * kMiB;
  quota_.Add(Upload("u1", "a"));
  quota_.Add(Upload("u2", "a"));
  EXPECT_TRUE(Write("u1", 0, 300 * kMiB).ok());
  const absl::Status refused = Write("u2", 0, 300 * kMiB);
  EXPECT_EQ(ReasonOf(refused), "TOO_MANY_STAGED_BYTES");
  EXPECT_NE(NextStepOf(refused).find("limits.identity_disk_percent"), std::string::npos);
  EXPECT_LE(quota_.staged(), 500 * kMiB);
  EXPECT_GE(quota_.staged(), 480 * kMiB);
  // The others have the rest.
  quota_.Add(Upload("u3", "b"));
  EXPECT_TRUE(Write("u3", 0, 250 * kMiB).ok());
  // The end of an upload gives its share back.
  blobs_.available += 300 * kMiB;
  quota_.Remove("u1");
  EXPECT_TRUE(quota_.Grow("u2", 300 * kMiB).ok());
}

TEST_F(UploadQuotaTest, OneRunStagesAtMostItsShareOfTheDisk) {
  blobs_.available = 1000 * kMiB;
  for (const std::string id : {"u1", "u2", "u3"}) {
    quota_.Add(Upload(id, absl::StrCat("of ", id), "r1"));
  }
  EXPECT_TRUE(Write("u1", 0, 390 * kMiB).ok());
  EXPECT_TRUE(Write("u2", 0, 370 * kMiB).ok());
  EXPECT_EQ(ReasonOf(Write("u3", 0, 100 * kMiB)), "TOO_MANY_STAGED_BYTES");
  quota_.Add(Upload("v1", "of v1", "r2"));
  EXPECT_TRUE(Write("v1", 0, 100 * kMiB).ok());
}

TEST_F(UploadQuotaTest, LaterSenderIsChargedForTheUploadItTookOver) {
  blobs_.available = 1000 * kMiB;
  quota_.Add(Upload("u1", "a"));
  EXPECT_TRUE(Write("u1", 0, 480 * kMiB).ok());
  quota_.Add(Upload("u1", "b"));
  quota_.Add(Upload("u2", "a"));
  EXPECT_TRUE(Write("u2", 0, 200 * kMiB).ok());
}

TEST_F(UploadQuotaTest, ClearedUploadIsChargedAnew) {
  blobs_.available = 1000 * kMiB;
  quota_.Add(Upload("u1", "a"));
  EXPECT_TRUE(quota_.Grow("u1", kMiB).ok());
  quota_.Clear("u1");
  EXPECT_EQ(quota_.staged(), 0);
  EXPECT_TRUE(quota_.Grow("u1", 5).ok());
  EXPECT_EQ(quota_.staged(), 5);
  EXPECT_EQ(ReasonOf(quota_.Grow("u9", 5)), "UPLOAD_NOT_FOUND");
}

TEST_F(UploadQuotaTest, ChargeDoesNotGrowBeyondTheAnnouncedSize) {
  blobs_.available = 200 * kMiB;
  const int64_t size = kMiB * 3 / 2;
  for (int i = 0; i < 61; ++i) {
    UploadRecord upload = Upload(absl::StrCat("u", i), "a");
    upload.size = size;
    quota_.Add(upload);
    ASSERT_TRUE(quota_.Grow(upload.id, kMiB).ok()) << i;
    ASSERT_TRUE(quota_.Grow(upload.id, size).ok()) << i;
  }
  EXPECT_EQ(quota_.staged(), 61 * size);
  // The session refuses the excess when the upload is completed.
  EXPECT_TRUE(quota_.Grow("u0", size + 1).ok());
  EXPECT_EQ(quota_.staged(), 61 * size + 1);
}

TEST_F(UploadQuotaTest, TrimmedUploadIsChargedForItsBytes) {
  blobs_.available = 1000 * kMiB;
  quota_.Add(Upload("u1", "a"));
  EXPECT_TRUE(Write("u1", 0, 3 * kMiB).ok());
  EXPECT_EQ(quota_.staged(), 17 * kMiB);
  quota_.Trim("u1");
  EXPECT_EQ(quota_.staged(), 3 * kMiB);
  quota_.Trim("u9");
  EXPECT_TRUE(quota_.Grow("u1", 4 * kMiB).ok());
}

TEST_F(UploadQuotaTest, RestoredBytesCountForTheirSenderAndRun) {
  blobs_.available = 1000 * kMiB;
  quota_.Restore(Upload("u1", "a"), 1100 * kMiB);
  EXPECT_EQ(quota_.staged(), 1100 * kMiB);
  quota_.Add(Upload("u2", "a", "other"));
  EXPECT_EQ(ReasonOf(quota_.Grow("u2", 5)), "TOO_MANY_STAGED_BYTES");
  EXPECT_EQ(quota_.OfRun("r"), std::vector<std::string>{"u1"});
  quota_.Remove("u1");
  EXPECT_TRUE(quota_.Grow("u2", 5).ok());
}

TEST_F(UploadQuotaTest, ResultThatIsTooLargeFails) {
  EXPECT_TRUE(quota_.CheckSize(10'000 * kMiB).ok());
  EXPECT_TRUE(quota_.CheckSize(-1).ok());
  const absl::Status refused = quota_.CheckSize(10'000 * kMiB + 1);
  EXPECT_EQ(ReasonOf(refused), "RESULT_TOO_LARGE");
  EXPECT_NE(refused.message().find(absl::StrCat(10'000 * kMiB)), std::string::npos) << refused;
}

TEST_F(UploadQuotaTest, SessionsOfOneNodeAreLimited) {
  std::vector<UploadQuota::SessionTicket> tickets;
  for (int64_t i = 0; i < kUploadsOfNode; ++i) {
    tickets.push_back(*quota_.ReserveSession(Node("n1"), "r"));
  }
  EXPECT_EQ(ReasonOf(quota_.ReserveSession(Node("n1"), "r").status()), "TOO_MANY_UPLOADS");
  EXPECT_TRUE(quota_.ReserveSession(Node("n2"), "r").ok());
  tickets.pop_back();
  EXPECT_TRUE(quota_.ReserveSession(Node("n1"), "r").ok());
}

TEST_F(UploadQuotaTest, SessionsOfOneIdentityAndOneRunAreLimited) {
  std::vector<UploadQuota::SessionTicket> tickets;
  for (int i = 0; i < 500; ++i) tickets.push_back(*quota_.ReserveSession(kRelay, "r1"));
  EXPECT_EQ(ReasonOf(quota_.ReserveSession(kRelay, "r1").status()), "TOO_MANY_UPLOADS");
  for (int i = 0; i < 250; ++i) {
    tickets.push_back(*quota_.ReserveSession(Node(absl::StrCat("n", i)), "r1"));
  }
  const auto refused = quota_.ReserveSession(Node("x"), "r1");
  EXPECT_EQ(ReasonOf(refused.status()), "TOO_MANY_UPLOADS");
  EXPECT_NE(refused.status().message().find("run r1"), std::string::npos) << refused.status();
  EXPECT_TRUE(quota_.ReserveSession(Node("x"), "r2").ok());
}

TEST_F(UploadQuotaTest, StreamsOfOneIdentityAndOneRunAreLimited) {
  std::vector<UploadTicket> tickets;
  const auto count = [&](const Identity& caller, const std::string& run) {
    auto ticket = quota_.CountStream(caller, run);
    if (ticket.ok()) tickets.push_back(*std::move(ticket));
    return ReasonOf(ticket.status());
  };
  for (int i = 0; i < kUploadStreamsOfNode; ++i) EXPECT_EQ(count(Node("n1"), "r1"), "");
  EXPECT_EQ(count(Node("n1"), "r1"), "TOO_MANY_STREAMS_OF_CALLER");
  // Many machines share the identity of a relay: it may use half of all.
  for (int i = 0; i < 50; ++i) EXPECT_EQ(count(kRelay, "r1"), "");
  EXPECT_EQ(count(kRelay, "r1"), "TOO_MANY_STREAMS_OF_CALLER");
  for (int i = 0; i < 9; ++i) EXPECT_EQ(count(Node(absl::StrCat("m", i)), "r1"), "");
  EXPECT_EQ(count(Node("other"), "r1"), "TOO_MANY_UPLOADS");
  for (int i = 0; i < 25; ++i) EXPECT_EQ(count(Node(absl::StrCat("o", i)), "r2"), "");
  EXPECT_EQ(count(Node("other"), "r2"), "TOO_MANY_STREAMS");
  tickets.pop_back();
  EXPECT_EQ(count(Node("other"), "r2"), "");
}

}  // namespace
}  // namespace muster
