#include "cli/supervisor/service_files.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "cli/supervisor/home.h"
#include "cli/supervisor/listening_sockets.h"
#include "cli/supervisor/test_folder.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"

namespace muster::supervisor {
namespace {

constexpr char kConfig[] =
    "# Configuration of muster-x.\n"
    "\n"
    "# Where it listens.\n"
    "listen: \"127.0.0.1:1\"\n"
    "\n"
    "# Names.\n"
    "names:\n"
    "  - a\n"
    "  - b\n"
    "# drain: 20s\n";

TEST(WithValuesTest, ExistingKeysAreReplacedInPlace) {
  EXPECT_EQ(
      WithValues(kConfig,
                 {{"listen", "\"[::]:2\""}, {"names", "[\"c\"]"}, {"drain", "1s"}, {"new", "3"}}),
      "# Configuration of muster-x.\n"
      "\n"
      "# Where it listens.\n"
      "listen: \"[::]:2\"\n"
      "\n"
      "# Names.\n"
      "names: [\"c\"]\n"
      "drain: 1s\n"
      "new: 3\n");
  EXPECT_EQ(WithValues(kConfig, {}), kConfig);
}

TEST(WithValuesTest, GroupOfKeysIsReplacedAsAWhole) {
  EXPECT_EQ(WithValues("a: 1\n"
                       "\n"
                       "group:\n"
                       "  # First.\n"
                       "  x: 1\n"
                       "\n"
                       "  # Second.\n"
                       "  y: 2\n"
                       "\n"
                       "# Another.\n"
                       "b: 3\n",
                       {{"group", "{x: 5, y: 6}"}}),
            "a: 1\n"
            "\n"
            "group: {x: 5, y: 6}\n"
            "\n"
            "# Another.\n"
            "b: 3\n");
}

// A home, and a folder with a program "muster-aggregator" that prints a configuration.
class ServiceFilesTest : public ::testing::Test {
 protected:
  ServiceFilesTest() {
    EXPECT_TRUE(MakeHomeFolders(home_).ok());
    const std::string program = folder_ / "muster-aggregator";
    std::ofstream(program) << "#!/bin/sh\n[ \"$1\" = --print-config ] || exit 1\n"
                              "printf '# A comment.\\nlisten: \"127.0.0.1:7440\"\\n'\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    ::setenv("MUSTER_LIBEXEC", (folder_ / ".").c_str(), 1);
  }
  ~ServiceFilesTest() override { ::unsetenv("MUSTER_LIBEXEC"); }

  std::string Config() { return ReadFileBounded(ConfigFile(home_, "aggregator"), 10000).value(); }

  const TestFolder folder_;
  const Home home_{folder_ / "home"};
};

TEST_F(ServiceFilesTest, ExistingFileGetsOnlyTheChosenValues) {
  EXPECT_TRUE(
      WriteConfig(home_, "aggregator", {{"listen", "\"127.0.0.1:9\""}, {"a", "1"}}, {}).ok());
  EXPECT_EQ(Config(), "# A comment.\nlisten: \"127.0.0.1:9\"\na: 1\n");
  EXPECT_TRUE(WriteConfig(home_, "aggregator", {{"listen", "\"127.0.0.1:8\""}}, {}).ok());
  EXPECT_EQ(Config(), "# A comment.\nlisten: \"127.0.0.1:9\"\na: 1\n");
  EXPECT_FALSE(HasConfigValues(home_, "aggregator", {{"a", "2"}}).value());
  EXPECT_TRUE(WriteConfig(home_, "aggregator", {}, {{"a", "2"}}).ok());
  EXPECT_EQ(Config(), "# A comment.\nlisten: \"127.0.0.1:9\"\na: 2\n");
  EXPECT_TRUE(HasConfigValues(home_, "aggregator", {{"a", "2"}}).value());
  EXPECT_EQ(ListenAddress(home_, "aggregator").value(), (HostPort{"127.0.0.1", 9}));
  EXPECT_EQ(ListenAddress(home_, "status").value(), std::nullopt);
}

TEST_F(ServiceFilesTest, InvalidFileIsNamedInTheError) {
  for (const char* text : {"listen: nonsense\n", "listen: [\n", "- a\n"}) {
    ASSERT_TRUE(WriteFileAtomically(ConfigFile(home_, "aggregator"), text).ok());
    const absl::Status status = ListenAddress(home_, "aggregator").status();
    EXPECT_EQ(ReasonOf(status), "INVALID_CONFIG") << text;
    EXPECT_NE(status.message().find("config/aggregator.yaml"), absl::string_view::npos);
  }
  EXPECT_EQ(ReasonOf(ServiceProgram("gateway").status()), "PROGRAM_MISSING");
}

TEST(AddressNameTest, WordsAreJoinedByUnderscores) {
  EXPECT_EQ(AddressName("gateway", "gateway"), "gateway");
  EXPECT_EQ(AddressName("gateway", "status_listener"), "gateway_status_listener");
}

TEST_F(ServiceFilesTest, AddressesFileReturnsItsTexts) {
  EXPECT_TRUE(ReadAddresses(home_, "aggregator").empty());
  ASSERT_TRUE(WriteFileAtomically(AddressesFile(home_, "aggregator"),
                                  R"({"inspection":"127.0.0.1:1","n":1})")
                  .ok());
  EXPECT_EQ(ReadAddresses(home_, "aggregator"),
            (std::map<std::string, std::string>{{"inspection", "127.0.0.1:1"}}));
  EXPECT_EQ(CheckReady("127.0.0.1:1").message(), "the service accepts no connection");
}

TEST(CheckReadyTest, ServiceThatDoesNotAnswerIsNamedInWords) {
  ListeningSockets sockets;
  const auto socket = sockets.Listen("silent", {"127.0.0.1", 0});
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_EQ(CheckReady(absl::StrCat("127.0.0.1:", socket->address.port)).message(),
            "the service accepts connections but does not answer");
}

}  // namespace
}  // namespace muster::supervisor
