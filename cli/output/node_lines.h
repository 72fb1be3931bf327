// What many nodes print, as whole lines that say whose they are.
#ifndef MUSTER_CLI_OUTPUT_NODE_LINES_H_
#define MUSTER_CLI_OUTPUT_NODE_LINES_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "muster/v1/jobs.pb.h"

namespace muster::cli {

// Puts the pieces of each (node, stream) together again. Not thread-safe.
class NodeLines {
 public:
  using Line =
      std::function<void(const std::string& node, v1::JobStream stream, std::string_view line)>;

  explicit NodeLines(Line line) : line_(std::move(line)) {}

  // A line longer than 64 KiB is broken there.
  void Add(const std::string& node, const v1::JobRecord::Output& output);
  // What is left of a node without a newline at its end.
  void Finish(const std::string& node);

 private:
  const Line line_;
  std::map<std::pair<std::string, v1::JobStream>, std::string> open_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_NODE_LINES_H_
