// Shared files over one real relay with real TLS.
#include <grpcpp/client_context.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/shares.grpc.pb.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/string_source.h"
#include "services/common/blob/blob_test_util.h"
#include "services/common/rpc/status.h"
#include "services/relay/files/share_errors.h"
#include "services/relay/testing/relay_fixture.h"

namespace muster {
namespace {

using testing::RelayTestFleet;
using testing::TestNode;
using testing::TestRelay;

class OneRelayTest : public ::testing::Test {
 protected:
  OneRelayTest() : relay_(fleet_, "root", nullptr), n1_(fleet_, "n1"), n2_(fleet_, "n2") {
    n1_.Attach(relay_);
    n2_.Attach(relay_);
  }

  // Returns the reason of the rejection; empty if the file is accepted.
  std::string Refusal(const TestNode& node, const v1::SharedFile& file,
                      const std::string& body = "abc") {
    const auto sent = node.Relay().Send(
        file, false, [&](int64_t offset) -> absl::StatusOr<std::unique_ptr<ByteSource>> {
          return std::make_unique<StringSource>(body, static_cast<size_t>(offset));
        });
    return sent.ok() ? "" : ReasonOf(sent.status());
  }

  RelayTestFleet fleet_;
  TestRelay relay_;
  TestNode n1_;
  TestNode n2_;
};

TEST_F(OneRelayTest, TargetReadsTheSharedFile) {
  const std::string body = Pattern(3'000'000);
  const auto shared = n1_.Share("n2", "facts.json", body);
  ASSERT_TRUE(shared.ok()) << shared.status();
  ASSERT_TRUE(n2_.Await("n1", "n2", "facts.json", "delivered at root"));
  EXPECT_EQ(n2_.Read("n1", "facts.json"), body);
  v1::ListSharesRequest list;
  EXPECT_EQ(n2_.Relay().List(list)->shares_size(), 1);
  EXPECT_FALSE(n2_.Relay().List(list)->shares(0).file().has_expire_time());
  // The same content is not sent again.
  const auto again = n1_.Relay().Send(n1_.File("n2", "facts.json", body), false,
                                      [](int64_t) -> absl::StatusOr<std::unique_ptr<ByteSource>> {
                                        return absl::InternalError("it was asked for");
                                      });
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->bytes, 0);
  EXPECT_EQ(again->share.state(), v1::SHARE_STATE_DELIVERED);
}

TEST_F(OneRelayTest, OtherNodesDoNotSeeTheFile) {
  TestNode n3(fleet_, "n3");
  n3.Attach(relay_);
  const v1::SharedFile file = n1_.File("n2", "f", "abc");
  ASSERT_TRUE(n1_.Share("n2", "f", "abc").ok());
  EXPECT_EQ(ReasonOf(n3.Relay().Get(file.key()).status()), "NOT_YOURS");
  char buffer[8];
  EXPECT_EQ(ReasonOf(n3.Relay().Open(file, 0)->Read(buffer).status()), "NOT_YOURS");
  EXPECT_EQ(ReasonOf(n3.Relay().Remove(file.key())), "NOT_YOURS");
  EXPECT_EQ(n3.Relay().List({})->shares_size(), 0);
  // A file in the name of another node.
  EXPECT_EQ(Refusal(n3, file), "NOT_YOURS");
  // The source may get and remove the file, but not read it.
  EXPECT_EQ(ReasonOf(n1_.Relay().Open(file, 0)->Read(buffer).status()), "NOT_YOURS");
  EXPECT_TRUE(n1_.Relay().Remove(file.key()).ok());
  EXPECT_EQ(n2_.Outcome("n1", "n2", "f"), "removed");
}

TEST_F(OneRelayTest, IdsWithPathsAreRejected) {
  for (const std::string& id :
       {std::string(), std::string("."), std::string(".."), std::string("../../etc/passwd"),
        std::string("a/b"), std::string("%2e%2e%2f"), std::string("-x"), std::string(4096, 'a'),
        std::string("a\nb"), std::string(".metadata")}) {
    EXPECT_EQ(Refusal(n1_, n1_.File("n2", id, "abc")), "INVALID_SHARE") << id;
  }
  EXPECT_EQ(Refusal(n1_, n1_.File("../n2", "f", "abc")), "INVALID_SHARE");
}

TEST_F(OneRelayTest, ContentThatWasNotSignedIsRejected) {
  v1::SharedFile file = n1_.File("n2", "f", "abc");
  file.set_size(4);
  EXPECT_EQ(Refusal(n1_, file), "INVALID_SIGNATURE");
  // A valid signature over other bytes than the received ones.
  EXPECT_EQ(Refusal(n1_, n1_.File("n2", "f", "abd")), "DIGEST_MISMATCH");
  EXPECT_EQ(Refusal(n1_, n1_.File("n2", "f", "abcd")), "SIZE_MISMATCH");
  EXPECT_EQ(Refusal(n1_, n1_.File("n2", "f", "ab")), "SIZE_MISMATCH");
  v1::SharedFile old = n1_.File("n2", "f", "abc");
  old.mutable_sign_time()->set_seconds(old.sign_time().seconds() - 7200);
  ASSERT_TRUE(n1_.Sign(&old).ok());
  EXPECT_EQ(Refusal(n1_, old), "INVALID_SIGNATURE");
  EXPECT_EQ(n1_.Outcome("n1", "n2", "f"), "SHARE_NOT_FOUND");
}

TEST_F(OneRelayTest, ExpiredFileIsNotServed) {
  v1::SharedFile late = n1_.File("n2", "late", "abc");
  late.mutable_expire_time()->set_seconds(late.sign_time().seconds() - 1);
  ASSERT_TRUE(n1_.Sign(&late).ok());
  EXPECT_EQ(Refusal(n1_, late), "SHARE_EXPIRED");
  ASSERT_TRUE(n1_.Share("n2", "f", "abc", absl::Seconds(2)).ok());
  ASSERT_TRUE(n1_.Await("n1", "n2", "f", "expired"));
  char buffer[8];
  const auto read = n2_.Relay().Open(n1_.File("n2", "f", "abc"), 0)->Read(buffer);
  EXPECT_EQ(ReasonOf(read.status()), "SHARE_NOT_FOUND");
}

TEST_F(OneRelayTest, NodeThatIsNotAttachedCannotShare) {
  n1_.Detach();
  std::string refusal;
  for (int i = 0; i < 500 && refusal != "NOT_ATTACHED"; ++i) {
    refusal = Refusal(n1_, n1_.File("n2", absl::StrCat("f", i), "abc"));
  }
  EXPECT_EQ(refusal, "NOT_ATTACHED");
}

TEST_F(OneRelayTest, FileBeyondTheQuotaIsRejected) {
  relay_.Stop();
  relay_.config.shares.quota = 1 << 20;
  relay_.Start();
  n1_.Attach(relay_);
  EXPECT_EQ(Refusal(n1_, n1_.File("n2", "f", std::string((1 << 20) + 1, 'x'))), "SHARE_QUOTA");
}

TEST_F(OneRelayTest, SourceSeesThatTheTargetIsUnknown) {
  // After its start the root relay waits for nodes to attach again.
  const auto shared = n1_.Share("nobody", "f", "abc");
  if (shared.ok()) {
    EXPECT_TRUE(n1_.Await("n1", "nobody", "f", "refused at root: TARGET_UNKNOWN"));
  }
  EXPECT_EQ(Refusal(n1_, n1_.File("nobody", "g", "abc")), "TARGET_UNKNOWN");
}

TEST_F(OneRelayTest, InvalidFilesAreRejectedWithTheirReason) {
  v1::SharedFile file = n1_.File("n2", "f", "abc");
  const auto refusal = [&](const std::function<void(v1::SharedFile&)>& change) {
    v1::SharedFile changed = file;
    change(changed);
    EXPECT_TRUE(n1_.Sign(&changed).ok());
    return Refusal(n1_, changed);
  };
  // A hash as text in capitals; an invalid expiry.
  EXPECT_EQ(refusal([](auto& f) { f.set_sha256(std::string(64, 'A')); }), "INVALID_SHARE");
  EXPECT_EQ(refusal([](auto& f) { f.clear_sha256(); }), "INVALID_SHARE");
  EXPECT_EQ(refusal([](auto& f) { f.mutable_expire_time()->set_seconds(-1); }), "INVALID_SHARE");
  EXPECT_EQ(refusal([](auto& f) { f.mutable_expire_time()->set_nanos(1); }), "INVALID_SHARE");
  EXPECT_EQ(refusal([](auto& f) { f.mutable_expire_time()->set_seconds(int64_t{1} << 62); }),
            "INVALID_SHARE");
  EXPECT_EQ(refusal([](auto& f) { f.set_size(-1); }), "INVALID_SHARE");
  EXPECT_EQ(refusal([](auto& f) { f.clear_sign_time(); }), "INVALID_SHARE");
  EXPECT_EQ(refusal([](auto& f) { f.mutable_key()->clear_target(); }), "INVALID_SHARE");
  file.set_certificate_chain_pem(std::string(17 * 1024, 'x'));
  EXPECT_EQ(Refusal(n1_, file), "INVALID_SHARE");
  EXPECT_EQ(n1_.Outcome("n1", "n2", "f"), "SHARE_NOT_FOUND");
}

TEST_F(OneRelayTest, LaterUploadOfAnIdTakesOver) {
  const auto stub = v1::ShareService::NewStub(n1_.channel());
  const v1::SharedFile file = n1_.File("n2", "f", "abc");
  const auto open = [&] {
    grpc::ClientContext context;
    v1::OpenShareRequest request;
    *request.mutable_file() = file;
    v1::OpenShareResponse opened;
    EXPECT_TRUE(stub->OpenShare(&context, request, &opened).ok());
    return opened;
  };
  const v1::OpenShareResponse first = open();
  const v1::OpenShareResponse second = open();
  EXPECT_EQ(first.upload_id(), second.upload_id());
  const auto send = [&](const v1::OpenShareResponse& opened, const std::string& data) {
    grpc::ClientContext context;
    v1::Share share;
    const auto stream = stub->UploadShare(&context, &share);
    v1::UploadShareRequest request;
    request.mutable_start()->set_upload_id(opened.upload_id());
    request.mutable_start()->set_epoch(opened.epoch());
    stream->Write(request);
    request.mutable_chunk()->set_data(data);
    request.mutable_chunk()->set_crc32c(Crc32c(data));
    stream->Write(request);
    request.mutable_finish();
    stream->Write(request);
    stream->WritesDone();
    return ReasonOf(FromGrpc(stream->Finish()));
  };
  EXPECT_EQ(send(first, "abc"), "TAKEN_OVER");
  EXPECT_EQ(send(second, std::string((1 << 20) + 1, 'x')), "CHUNK_TOO_LARGE");
  EXPECT_EQ(send(second, "abc"), "");
  EXPECT_EQ(send(second, "abc"), "UPLOAD_NOT_FOUND");
  EXPECT_EQ(n2_.Read("n1", "f"), "abc");
}

TEST_F(OneRelayTest, FileOverTheLimitIsRejectedBeforeItIsSent) {
  relay_.Stop();
  relay_.config.shares.max_size = 10;
  relay_.Start();
  n1_.Attach(relay_);
  const auto sent = n1_.Relay().Send(n1_.File("n2", "f", std::string(11, 'x')), false,
                                     [](int64_t) -> absl::StatusOr<std::unique_ptr<ByteSource>> {
                                       return absl::InternalError("it was asked for");
                                     });
  EXPECT_EQ(ReasonOf(sent.status()), "SHARE_TOO_LARGE");
}

// An error about the calling relay or the transfer is no verdict on the file.
TEST(RefusalTest, IsAboutTheFileAlone) {
  const auto is_refusal = [](absl::StatusCode code, const char* reason) {
    return IsRefusal(MakeError(code, reason, "what", "do"));
  };
  using Code = absl::StatusCode;
  EXPECT_TRUE(is_refusal(Code::kNotFound, "TARGET_UNKNOWN"));
  EXPECT_TRUE(is_refusal(Code::kInvalidArgument, "SHARE_TOO_LARGE"));
  EXPECT_TRUE(is_refusal(Code::kUnauthenticated, "INVALID_SIGNATURE"));
  EXPECT_FALSE(is_refusal(Code::kPermissionDenied, "NOT_YOURS"));
  EXPECT_FALSE(is_refusal(Code::kPermissionDenied, "ROLE_NOT_ALLOWED"));
  EXPECT_FALSE(is_refusal(Code::kNotFound, "UPLOAD_NOT_FOUND"));
  EXPECT_FALSE(is_refusal(Code::kResourceExhausted, "SHARE_QUOTA"));
  EXPECT_FALSE(IsRefusal(absl::NotFoundError("of something between")));
}

}  // namespace
}  // namespace muster
