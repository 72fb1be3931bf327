#include "cli/commands/nodes_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::cli {
namespace {

using ::testing::ElementsAre;

TEST(NodesFileTest, EachLineIsANameAndEmptyLinesAndCommentsAreOmitted) {
  const auto nodes = ParseNodesFile("n1\n\n# rack b\n  n2 \r\nn1\nn3", "nodes.txt");
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  EXPECT_THAT(*nodes, ElementsAre("n1", "n2", "n3"));
}

TEST(NodesFileTest, LineThatIsNotANameFailsWithItsNumber) {
  const auto nodes = ParseNodesFile("n1\nn2 n3\n", "nodes.txt");
  EXPECT_TRUE(absl::IsInvalidArgument(nodes.status()));
  EXPECT_EQ(nodes.status().message(),
            "nodes.txt:2: invalid name \"n2 n3\" of node: it contains characters other than A-Z "
            "a-z 0-9 . _ -");
}

TEST(NodesFileTest, FileWithoutNamesFails) {
  EXPECT_EQ(ParseNodesFile("# none\n", "nodes.txt").status().message(),
            "nodes.txt contains no name of a node");
}

TEST(NodesFileTest, NamesThatAreGivenAlreadyAreNotRepeated) {
  std::vector<std::string> nodes = {"n2"};
  EXPECT_TRUE(AddNodesOfFile("", &nodes).ok());
  EXPECT_THAT(nodes, ElementsAre("n2"));
  EXPECT_EQ(AddNodesOfFile("/nonexistent/nodes", &nodes).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace muster::cli
