#include "services/common/joining/member_file.h"

#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"

namespace muster {
namespace {

class MemberFileTest : public ::testing::Test {
 protected:
  MemberFileTest() { std::filesystem::create_directories(folder_); }
  ~MemberFileTest() override { std::filesystem::remove_all(folder_); }

  std::string ReasonFor(const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(folder_ + "/node.json", text).ok());
    return ReasonOf(ReadMemberFile(folder_).status());
  }

  const std::string folder_ = ::testing::TempDir() + "member_" +
                              ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(MemberFileTest, WrittenFileIsReadAgain) {
  EXPECT_EQ(ReasonOf(ReadMemberFile(folder_).status()), "NOT_JOINED");
  for (const bool is_relay : {true, false}) {
    const MemberFile member = {"f.muster", "n1",    is_relay,      {"a:1"},
                               {"s:1"},    {"j:1"}, {"r:1", "r:2"}};
    ASSERT_TRUE(WriteMemberFile(folder_, member).ok());
    const auto read = ReadMemberFile(folder_);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->fleet, member.fleet);
    EXPECT_EQ(read->name, member.name);
    EXPECT_EQ(read->is_relay, is_relay);
    EXPECT_EQ(read->aggregator_targets, member.aggregator_targets);
    EXPECT_EQ(read->status_targets, member.status_targets);
    EXPECT_EQ(read->join_targets, member.join_targets);
    EXPECT_EQ(read->relay_targets, member.relay_targets);
  }
}

TEST_F(MemberFileTest, FileWithoutRelaysIsAccepted) {
  EXPECT_EQ(ReasonFor(R"({"fleet": "f", "node": "n", "aggregator_targets": [],
                          "status_targets": [], "join_targets": ["j:1"]})"),
            "");
}

TEST_F(MemberFileTest, InvalidFileIsRefused) {
  for (const char* text : {"", "[]", "{}", R"({"fleet": "f", "node": 1})"}) {
    EXPECT_EQ(ReasonFor(text), "INVALID_MEMBER_FILE") << text;
  }
}

TEST(TargetsByLinkTest, LinkPermitsTunnelsAfterTheOthersOnlyOrNone) {
  const std::vector<std::string> targets = {"wss://g:1", "a:1", "wss://g:2", "b:1"};
  EXPECT_EQ(TargetsByLink(targets, ""),
            (std::vector<std::string>{"a:1", "b:1", "wss://g:1", "wss://g:2"}));
  EXPECT_EQ(TargetsByLink(targets, "auto"), TargetsByLink(targets, ""));
  EXPECT_EQ(TargetsByLink(targets, "direct"), (std::vector<std::string>{"a:1", "b:1"}));
  EXPECT_EQ(TargetsByLink(targets, "wss://edge:443"), (std::vector<std::string>{"wss://edge:443"}));
}

TEST(TargetsByLinkTest, OtherLinksAreRefused) {
  for (const char* link : {"", "auto", "direct", "wss://gateway.example:443", "wss://[::1]:443"}) {
    EXPECT_TRUE(CheckLink(link).ok()) << link;
  }
  for (const char* link : {"websocket", "https://g:1", "wss://g", "wss://g:", "wss://g:0",
                           "wss://g:1/path", "wss://"}) {
    EXPECT_EQ(ReasonOf(CheckLink(link)), "INVALID_LINK") << link;
  }
}

}  // namespace
}  // namespace muster
