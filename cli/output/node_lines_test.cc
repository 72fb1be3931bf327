#include "cli/output/node_lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::cli {
namespace {

v1::JobRecord::Output Output(const std::string& data,
                             v1::JobStream stream = v1::JOB_STREAM_STDOUT) {
  v1::JobRecord::Output output;
  output.set_stream(stream);
  output.set_data(data);
  return output;
}

class NodeLinesTest : public ::testing::Test {
 protected:
  std::vector<std::string> lines_seen_;
  NodeLines lines_{[this](const std::string& node, v1::JobStream stream, std::string_view line) {
    lines_seen_.push_back(node + (stream == v1::JOB_STREAM_STDERR ? "! " : ": ") +
                          std::string(line));
  }};
};

TEST_F(NodeLinesTest, PiecesOfManyNodesAreJoinedPerNode) {
  lines_.Add("n1", Output("one "));
  lines_.Add("n2", Output("two\nthr"));
  lines_.Add("n1", Output("err\n", v1::JOB_STREAM_STDERR));
  lines_.Add("n1", Output("line\n\n"));
  lines_.Add("n2", Output("ee"));
  EXPECT_EQ(lines_seen_, (std::vector<std::string>{"n2: two", "n1! err", "n1: one line", "n1: "}));
  lines_.Finish("n2");
  lines_.Finish("n1");
  EXPECT_EQ(lines_seen_.back(), "n2: three");
}

TEST_F(NodeLinesTest, OverlongLineIsSplit) {
  lines_.Add("n1", Output(std::string(70'000, 'x')));
  ASSERT_EQ(lines_seen_.size(), 1U);
  EXPECT_EQ(lines_seen_[0].size(), 4U + 65'536U);
  lines_.Finish("n1");
  EXPECT_EQ(lines_seen_.back().size(), 4U + 70'000U - 65'536U);
}

}  // namespace
}  // namespace muster::cli
