#include "cli/output/node_lines.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxLine = 64 * 1024;

}  // namespace

void NodeLines::Add(const std::string& node, const v1::JobRecord::Output& output) {
  std::string& open = open_[{node, output.stream()}];
  open += output.data();
  size_t begin = 0;
  while (begin < open.size()) {
    const size_t end = open.find('\n', begin);
    if (end == std::string::npos) {
      if (open.size() - begin < kMaxLine) break;
      line_(node, output.stream(), std::string_view(open).substr(begin, kMaxLine));
      begin += kMaxLine;
      continue;
    }
    line_(node, output.stream(), std::string_view(open).substr(begin, end - begin));
    begin = end + 1;
  }
  open.erase(0, begin);
}

void NodeLines::Finish(const std::string& node) {
  for (const v1::JobStream stream : {v1::JOB_STREAM_STDOUT, v1::JOB_STREAM_STDERR}) {
    const auto open = open_.find({node, stream});
    if (open == open_.end()) continue;
    if (!open->second.empty()) line_(node, stream, open->second);
    open_.erase(open);
  }
}

}  // namespace muster::cli
