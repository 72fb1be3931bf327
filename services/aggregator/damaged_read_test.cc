// Reads that prove damage of stored bytes: the API over mutual TLS.
#include <grpcpp/client_context.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/archives.grpc.pb.h"
#include "muster/v1/audit.grpc.pb.h"
#include "muster/v1/results.grpc.pb.h"
#include "muster/v1/runs.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/rpc/status.h"
#include "testing/fixtures/test_call.h"
#include "testing/fixtures/test_fleet.h"

namespace muster {
namespace {

using testing::TestFleet;
using testing::TestIdentity;

// A stream of a file.
class Reading {
 public:
  Reading(const std::shared_ptr<grpc::Channel>& channel, const v1::ReadResultRequest& request)
      : stream_(v1::ResultService::NewStub(channel)->ReadResult(&context_, request)) {}
  Reading(const std::shared_ptr<grpc::Channel>& channel, const v1::ReadArchiveRequest& request)
      : stream_(v1::ArchiveService::NewStub(channel)->ReadArchive(&context_, request)) {}

  bool Next() {
    v1::FileChunk chunk;
    return stream_->Read(&chunk);
  }

  // Reads to the end. Returns the reason of the error; empty: none.
  std::string End() {
    while (Next()) continue;
    return ReasonOf(FromGrpc(stream_->Finish()));
  }

  // Returns the code with which a cancelled stream ends.
  grpc::StatusCode Cancel() {
    context_.TryCancel();
    while (Next()) continue;
    return stream_->Finish().error_code();
  }

 private:
  grpc::ClientContext context_;
  const std::unique_ptr<grpc::ClientReader<v1::FileChunk>> stream_;
};

class DamagedReadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fleet_.Stop();
    fleet_.config.verify_rate = 0;  // only reads find damage
    fleet_.Start();
    run_ = fleet_.CreateRun({"hostfacts"}, {"n1", "n2"}).id();
  }

  // Delivers noise that is larger than the buffers of a connection.
  void Deliver(const std::string& node) {
    uint32_t state = 1;
    std::string noise(16 << 20, '\0');
    for (char& c : noise) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
    const auto uploaded = testing::UploadAll(
        fleet_.Connect(fleet_.Credential(run_, "hostfacts", node)), run_, "hostfacts", node, noise);
    ASSERT_TRUE(uploaded.ok()) << uploaded.status();
  }

  // Returns the only stored file in a folder of the run: "results" or "archive".
  std::string StoredFile(const std::string& folder) {
    const std::string blobs = absl::StrCat(fleet_.config.state_folder, "/blobs/blobs");
    for (const auto& entry : std::filesystem::recursive_directory_iterator(blobs)) {
      const std::string path = entry.path();
      if (entry.is_regular_file() && absl::StrContains(path, absl::StrCat("/", folder, "/"))) {
        return path;
      }
    }
    return "";
  }

  void Flip(const std::string& path) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(5'000'000);
    const auto byte = static_cast<char>(file.get());
    file.seekp(5'000'000);
    file.put(static_cast<char>(byte ^ 1));
    ASSERT_TRUE(file.good());
  }

  v1::ReadResultRequest ResultOf(const std::string& node, int64_t offset = 0) {
    v1::ReadResultRequest request;
    request.mutable_key()->set_run(run_);
    request.mutable_key()->set_plugin("hostfacts");
    request.mutable_key()->set_node(node);
    request.set_offset(offset);
    return request;
  }

  v1::ReadArchiveRequest Archive() {
    v1::ReadArchiveRequest request;
    request.set_run(run_);
    return request;
  }

  template <typename Request>
  std::string Read(const Request& request) {
    return Reading(fleet_.Connect(fleet_.admin()), request).End();
  }

  v1::Run Run() {
    v1::GetRunRequest request;
    request.set_run(run_);
    return *testing::CallUnary<v1::RunService>(fleet_.Connect(fleet_.admin()),
                                               &v1::RunService::Stub::GetRun, request);
  }

  std::string DamageOf(const std::string& node) {
    v1::GetResultRequest request;
    *request.mutable_key() = ResultOf(node).key();
    return testing::CallUnary<v1::ResultService>(fleet_.Connect(fleet_.admin()),
                                                 &v1::ResultService::Stub::GetResult, request)
        ->damage();
  }

  v1::ListAuditRecordsResponse Audit() {
    v1::ListAuditRecordsRequest request;
    request.set_run(run_);
    request.add_kinds(v1::AUDIT_KIND_DAMAGE);
    return *testing::CallUnary<v1::AuditService>(
        fleet_.Connect(fleet_.admin()), &v1::AuditService::Stub::ListAuditRecords, request);
  }

  TestFleet fleet_;
  std::string run_;
};

TEST_F(DamagedReadTest, ReadOfADamagedResultRecordsTheDamageOnce) {
  Deliver("n1");
  Flip(StoredFile("results"));
  Reading first(fleet_.Connect(fleet_.admin()), ResultOf("n1"));
  Reading second(fleet_.Connect(fleet_.Issue(NodeIdentity{"n1"})), ResultOf("n1"));
  ASSERT_TRUE(first.Next());
  ASSERT_TRUE(second.Next());
  EXPECT_EQ(first.End(), "RESULT_DAMAGED");
  EXPECT_EQ(DamageOf("n1"), "the CRC32C differs");
  EXPECT_EQ(Run().damaged_results(), 1);
  EXPECT_EQ(second.End(), "RESULT_DAMAGED");
  EXPECT_EQ(Read(ResultOf("n1")), "RESULT_DAMAGED");
  ASSERT_EQ(Audit().records_size(), 1);
  const v1::AuditRecord record = Audit().records(0);
  EXPECT_EQ(record.count(), 1);
  EXPECT_TRUE(absl::EndsWith(record.actor(), "/user/tester")) << record.actor();
  EXPECT_EQ(record.key().node(), "n1");
  EXPECT_EQ(record.text(), "generation 1 is damaged: the CRC32C differs");
}

TEST_F(DamagedReadTest, NodeThatReadsItsDamagedResultRecordsTheDamage) {
  Deliver("n1");
  std::filesystem::remove(StoredFile("results"));
  Reading reading(fleet_.Connect(fleet_.Issue(NodeIdentity{"n1"})), ResultOf("n1", 7));
  EXPECT_EQ(reading.End(), "RESULT_DAMAGED");
  EXPECT_EQ(DamageOf("n1"), "the stored file is missing");
}

TEST_F(DamagedReadTest, ReadOfADamagedArchiveRecordsTheDamage) {
  Deliver("n1");
  Deliver("n2");
  ASSERT_EQ(fleet_.WaitForEnd(run_).state(), v1::RUN_STATE_COMPLETE);
  Flip(StoredFile("archive"));
  EXPECT_EQ(Read(Archive()), "ARCHIVE_DAMAGED");
  EXPECT_EQ(Run().damaged_results(), 1);
  EXPECT_EQ(Read(Archive()), "ARCHIVE_DAMAGED");
  ASSERT_EQ(Audit().records_size(), 1);
  EXPECT_EQ(Audit().records(0).text(), "the stored archive is damaged: the SHA-256 differs");
  EXPECT_EQ(Read(ResultOf("n1")), "");
}

TEST_F(DamagedReadTest, ReaderThatFailsRecordsNoDamage) {
  Deliver("n1");
  EXPECT_EQ(Read(ResultOf("n1", (16 << 20) + 1)), "OFFSET_TOO_HIGH");
  Flip(StoredFile("results"));
  Reading reading(fleet_.Connect(fleet_.admin()), ResultOf("n1"));
  ASSERT_TRUE(reading.Next());
  EXPECT_EQ(reading.Cancel(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(Read(ResultOf("n1", 7)), "");  // the checksum is of the whole
  EXPECT_EQ(DamageOf("n1"), "");
  EXPECT_EQ(Audit().records_size(), 0);
}

}  // namespace
}  // namespace muster
