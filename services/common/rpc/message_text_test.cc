#include "services/common/rpc/message_text.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "muster/v1/archives.pb.h"
#include "muster/v1/attachment.pb.h"
#include "muster/v1/audit.pb.h"
#include "muster/v1/changes.pb.h"
#include "muster/v1/deployments.pb.h"
#include "muster/v1/enrollment.pb.h"
#include "muster/v1/errors.pb.h"
#include "muster/v1/heartbeats.pb.h"
#include "muster/v1/identities.pb.h"
#include "muster/v1/jobs.pb.h"
#include "muster/v1/join.pb.h"
#include "muster/v1/listeners.pb.h"
#include "muster/v1/results.grpc.pb.h"
#include "muster/v1/runs.pb.h"
#include "muster/v1/shares.pb.h"
#include "muster/v1/status.pb.h"
#include "muster/v1/templates.pb.h"
#include "muster/v1/types.pb.h"
#include "muster/v1/verdicts.pb.h"
#include "muster/v1/verification.pb.h"
#include "services/common/rpc/testing/rpc_walk.h"

namespace muster {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageFactory;

constexpr char kBad[] = "caf\xe9";
constexpr char kClean[] = "caf\xef\xbf\xbd";

// Every type of message of every file of the API.
std::vector<const Descriptor*> Types() {
  std::vector<const Descriptor*> types;
  for (const FileDescriptor* file : {v1::Archive::descriptor()->file(),
                                     v1::AttachRequest::descriptor()->file(),
                                     v1::RecordShareRemovalRequest::descriptor()->file(),
                                     v1::FollowChangesRequest::descriptor()->file(),
                                     v1::JoinToken::descriptor()->file(),
                                     v1::ErrorDetail::descriptor()->file(),
                                     v1::StreamHeartbeatsRequest::descriptor()->file(),
                                     v1::Operator::descriptor()->file(),
                                     v1::Command::descriptor()->file(),
                                     v1::JoinRequest::descriptor()->file(),
                                     v1::ReportListenerRequest::descriptor()->file(),
                                     v1::SubmitResultRequest::descriptor()->file(),
                                     v1::Run::descriptor()->file(),
                                     v1::SharedFile::descriptor()->file(),
                                     v1::RunStatus::descriptor()->file(),
                                     v1::ResultKey::descriptor()->file(),
                                     v1::Verdict::descriptor()->file(),
                                     v1::TemplateType::descriptor()->file(),
                                     v1::Deployment::descriptor()->file(),
                                     v1::DamagedResult::descriptor()->file()}) {
    for (int i = 0; i < file->message_type_count(); ++i) types.push_back(file->message_type(i));
  }
  return types;
}

std::string Flat(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  EXPECT_TRUE(buffer.DumpToSingleSlice(&slice).ok());
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

grpc::ByteBuffer Buffer(const std::string& bytes) {
  // As it may come: in more pieces than one.
  const grpc::Slice slices[] = {grpc::Slice(bytes.substr(0, bytes.size() / 2)),
                                grpc::Slice(bytes.substr(bytes.size() / 2))};
  return {slices, 2};
}

TEST(MessageTextTest, EveryStringOfEveryMessageIsCleanedWhenItIsReceived) {
  size_t texts = 0;
  for (const Descriptor* type : Types()) {
    for (const testing::BadText& bad : testing::BadTextsOf(*type)) {
      SCOPED_TRACE(absl::StrCat(type->full_name(), " ", bad.field));
      const std::unique_ptr<Message> message(
          MessageFactory::generated_factory()->GetPrototype(type)->New());
      grpc::ByteBuffer buffer = Buffer(bad.bytes);
      EXPECT_TRUE(grpc::SerializationTraits<Message>::Deserialize(&buffer, message.get()).ok());
      const std::string received = message->SerializeAsString();
      EXPECT_NE(received.find(kClean), std::string::npos);
      EXPECT_EQ(received.find(kBad), std::string::npos);
      ++texts;
    }
  }
  EXPECT_GT(texts, 500U);
}

// The setters take any bytes: so does whatever fills a message from a store or a file.
TEST(MessageTextTest, SentTextIsCleaned) {
  v1::Result result;
  result.mutable_key()->set_node(kBad);
  result.set_error(absl::StrCat(kBad, " and ", kBad));
  result.set_file_name("plain");
  result.set_sha256(kBad);
  result.set_size(7);
  grpc::ByteBuffer buffer;
  bool own = false;
  ASSERT_TRUE(grpc::SerializationTraits<v1::Result>::Serialize(result, &buffer, &own).ok());
  v1::Result read;
  ASSERT_TRUE(read.ParseFromString(Flat(buffer)));
  EXPECT_EQ(read.key().node(), kClean);
  EXPECT_EQ(read.error(), absl::StrCat(kClean, " and ", kClean));
  EXPECT_EQ(read.file_name(), "plain");
  EXPECT_EQ(read.sha256(), kBad) << "no text";
  EXPECT_EQ(read.size(), 7);
}

// Stubs of unary calls know their messages by the base class alone.
TEST(MessageTextTest, TheBaseClassIsCleanedAsWell) {
  v1::Result result;
  result.set_error(kBad);
  grpc::ByteBuffer buffer;
  bool own = false;
  using Lite = google::protobuf::MessageLite;
  ASSERT_TRUE(grpc::SerializationTraits<Lite>::Serialize(result, &buffer, &own).ok());
  v1::Result read;
  EXPECT_TRUE(read.ParseFromString(Flat(buffer)));
  buffer = Buffer(absl::StrReplaceAll(read.SerializeAsString(), {{kClean, "caf\xe9\xe9\xe9"}}));
  EXPECT_TRUE(grpc::SerializationTraits<Lite>::Deserialize(&buffer, &read).ok());
  EXPECT_EQ(read.error(), "caf\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(MessageTextTest, TextThatIsUtf8StaysAsItIs) {
  v1::SubmitResultRequest request;
  request.mutable_description()->set_file_name("caf\xc3\xa9.txt");
  request.set_body(std::string(3 << 20, '\xff'));
  EXPECT_FALSE(CleanMessage(*request.GetDescriptor(), request.SerializeAsString()).has_value());
  grpc::ByteBuffer buffer;
  bool own = false;
  ASSERT_TRUE(
      grpc::SerializationTraits<v1::SubmitResultRequest>::Serialize(request, &buffer, &own).ok());
  EXPECT_EQ(Flat(buffer), request.SerializeAsString());
  v1::SubmitResultRequest read;
  ASSERT_TRUE(grpc::SerializationTraits<v1::SubmitResultRequest>::Deserialize(&buffer, &read).ok());
  EXPECT_EQ(read.body(), request.body());
}

// A field of a later version is kept, also if it looks like text of ours.
TEST(MessageTextTest, UnknownFieldsAndGroupsStayAsTheyAre) {
  const std::string unknown = std::string("\xfa\x7f\x02\xe9\xe9", 5);        // field 2047
  const std::string group = std::string("\xfb\x7f\x0a\x01\xe9\xfc\x7f", 7);  // holds a field 1
  const std::string bad = testing::BadTextsOf(*v1::ResultKey::descriptor()).front().bytes;
  const auto clean = CleanMessage(*v1::ResultKey::descriptor(), unknown + group + bad + unknown);
  ASSERT_TRUE(clean.has_value());
  EXPECT_EQ(*clean, absl::StrCat(unknown, group, "\x0a\x06", kClean, unknown));
}

TEST(MessageTextTest, BytesThatAreNoMessageAreRefused) {
  for (const std::string& bytes :
       {std::string("\x0a\x7f"), std::string("\xff"), std::string("\x0a\x01\xe9\x0a\x7f"),
        std::string("\x0f"), std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        std::string(11, '\xff')}) {
    v1::ResultKey key;
    EXPECT_FALSE(ParseCleaned(bytes, &key));
    grpc::ByteBuffer buffer = Buffer(bytes);
    EXPECT_FALSE(grpc::SerializationTraits<v1::ResultKey>::Deserialize(&buffer, &key).ok());
  }
}

TEST(MessageTextTest, StoredMessagesAreParsed) {
  v1::ResultKey key;
  EXPECT_TRUE(
      ParseCleaned("\x0a\x04"
                   "caf\xe9",
                   &key));
  EXPECT_EQ(key.run(), kClean);
  EXPECT_TRUE(ParseCleaned("\x0a\x01x", &key));
  EXPECT_EQ(key.run(), "x");
}

}  // namespace
}  // namespace muster
