// The output of many nodes, as whole lines with the name of the node.
#ifndef MUSTER_CLI_OUTPUT_NODE_LINES_H_
#define MUSTER_CLI_OUTPUT_NODE_LINES_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "muster/v1/jobs.pb.h"

namespace muster::cli {

// Joins the pieces of output of each (node, stream) into lines. Not thread-safe.
class NodeLines {
 public:
  using Line =
      std::function<void(const std::string& node, v1::JobStream stream, std::string_view line)>;

  explicit NodeLines(Line line) : line_(std::move(line)) {}

  // Splits a line at 64 KiB.
  void Add(const std::string& node, const v1::JobRecord::Output& output);
  // Emits the last line of a node if it has no newline.
  void Finish(const std::string& node);

 private:
  const Line line_;
  std::map<std::pair<std::string, v1::JobStream>, std::string> open_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_NODE_LINES_H_
