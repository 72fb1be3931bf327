// Uploads to a jobs service that the test plays, over TLS.
#include "cli/rpc/content_client.h"

#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "gtest/gtest.h"
#include "muster/v1/contents.grpc.pb.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/mutex.h"
#include "services/common/base/sha256.h"
#include "services/common/errors/contents.h"
#include "services/common/identity/secret.h"
#include "services/common/rpc/status.h"
#include "testing/fixtures/test_fleet.h"

namespace muster::cli {
namespace {

// Appends parts as the jobs service does, without its checks.
class FakeContents final : public v1::ContentService::Service {
 public:
  explicit FakeContents(const testing::TestFleet& fleet) {
    const auto jobs = fleet.Issue(ServiceIdentity{ServiceRole::kJobs, "jobs"});
    grpc::SslServerCredentialsOptions tls;
    tls.pem_key_cert_pairs.push_back({jobs.key_pem, jobs.chain_pem});
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  std::string target() const { return absl::StrCat("127.0.0.1:", port_); }

  // An earlier upload has these bytes.
  void Begin(const std::string& sha256, const std::string& bytes) {
    const MutexLock lock(mutex_);
    bytes_[sha256] = bytes;
  }
  std::string BytesOf(const std::string& sha256) {
    const MutexLock lock(mutex_);
    return bytes_[sha256];
  }
  std::vector<int64_t> offsets() const {
    const MutexLock lock(mutex_);
    return offsets_;
  }

 private:
  grpc::Status FindContents(grpc::ServerContext*, const v1::FindContentsRequest* request,
                            v1::FindContentsResponse* response) override {
    const MutexLock lock(mutex_);
    for (const std::string& sha256 : request->sha256()) {
      if (!bytes_.contains(sha256)) response->add_missing(sha256);
    }
    return grpc::Status::OK;
  }

  grpc::Status UploadContent(grpc::ServerContext*, const v1::UploadContentRequest* request,
                             v1::UploadContentResponse* response) override {
    const MutexLock lock(mutex_);
    EXPECT_EQ(request->crc32c(), Crc32c(request->data()));
    if (!request->data().empty()) offsets_.push_back(request->offset());
    std::string& bytes = bytes_[request->sha256()];
    const auto stored = static_cast<int64_t>(bytes.size());
    if (request->offset() == stored) bytes += request->data();
    response->set_offset(static_cast<int64_t>(bytes.size()));
    response->set_stored(response->offset() == request->size());
    if (response->stored() && DigestBytes(Sha256::Of(bytes)) != request->sha256()) {
      bytes_.erase(request->sha256());
      return ToGrpc(errors::ContentDigestMismatch(ToHex(request->sha256())));
    }
    return grpc::Status::OK;
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  mutable Mutex mutex_;
  std::map<std::string, std::string> bytes_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> offsets_ ABSL_GUARDED_BY(mutex_);
};

class ContentClientTest : public ::testing::Test {
 protected:
  ContentClientTest() {
    context_.fleet = fleet_.name();
    context_.fleet_ca_pem = fleet_.fleet_ca_pem();
    context_.certificate_chain_pem = fleet_.admin().chain_pem;
    context_.private_key_pem = Secret(fleet_.admin().key_pem);
    context_.jobs_targets = {contents_.target()};
  }
  ~ContentClientTest() override { std::filesystem::remove(path_); }

  LocalContent File(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return {DigestBytes(Sha256::Of(bytes)), static_cast<int64_t>(bytes.size()), path_};
  }
  absl::Status Upload(const LocalContent& content) {
    return ContentClient(context_).Upload(content,
                                          [this](int64_t bytes) { progress_.push_back(bytes); });
  }

  const std::string path_ = ::testing::TempDir() + "/content";
  testing::TestFleet fleet_;
  FakeContents contents_{fleet_};
  OperatorContext context_;
  std::vector<int64_t> progress_;
};

TEST_F(ContentClientTest, SmallContentTakesOneCall) {
  const LocalContent content = File("small");
  ASSERT_TRUE(Upload(content).ok());
  EXPECT_EQ(contents_.BytesOf(content.sha256), "small");
  EXPECT_EQ(progress_, std::vector<int64_t>{5});
}

TEST_F(ContentClientTest, UploadContinuesWhereAnEarlierOneEnded) {
  const std::string bytes(1'500'000, 'x');
  const LocalContent content = File(bytes);
  contents_.Begin(content.sha256, bytes.substr(0, 700'000));
  ASSERT_TRUE(Upload(content).ok());
  EXPECT_EQ(contents_.BytesOf(content.sha256), bytes);
  EXPECT_EQ(contents_.offsets(), (std::vector<int64_t>{700'000, 700'000 + (512 << 10)}));
  EXPECT_EQ(progress_.front(), 700'000);
  EXPECT_EQ(progress_.back(), 1'500'000);
}

TEST_F(ContentClientTest, FileThatHasChangedIsAUsageError) {
  LocalContent content = File("bytes");
  content.sha256 = DigestBytes(Sha256::Of("other"));
  EXPECT_EQ(ExitCodeOf(Upload(content)), kExitUsage);
  content.size = 6;
  EXPECT_EQ(ExitCodeOf(Upload(content)), kExitUsage);
}

TEST_F(ContentClientTest, MissingContentsAreFoundOnce) {
  const LocalContent stored = {std::string(32, 'a'), 1, "a"};
  const LocalContent missing = {std::string(32, 'b'), 1, "b"};
  contents_.Begin(stored.sha256, "a");
  ContentClient client(context_);
  const auto found = client.FindMissing({stored, missing, {missing.sha256, 1, "copy"}});
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().source, "b");
}

}  // namespace
}  // namespace muster::cli
