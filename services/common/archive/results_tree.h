// Builds the tree of a plugin's results while its files are streamed.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_RESULTS_TREE_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_RESULTS_TREE_H_

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/archive/item_budget.h"
#include "services/common/archive/result_item.h"
#include "services/common/archive/result_reader.h"

namespace muster {

struct ResultsTreeOptions {
  std::string plugin;
  bool per_node = false;  // a DaemonSet: a branch for each node
  ResultFormat format = ResultFormat::kRaw;
  std::vector<std::string> result_files;
  // The limits of the tree: see item_budget.h.
  int64_t max_bytes = ItemBudget::kDefaultBytes;
  absl::Duration max_cpu = ItemBudget::kDefaultCpu;
  absl::Duration max_cpu_of_node = ItemBudget::kDefaultCpuOfNode;
};

// Nodes follow one another: BeginNode, files and error of the node, EndNode. Not thread-safe.
class ResultsTree {
 public:
  explicit ResultsTree(ResultsTreeOptions options);

  void BeginNode(std::string_view node);

  // Returns a reader for the file at `path` (relative to the plugin's folder: "results/n1/a.xml"),
  // or nullptr if files of this name are not read. Pass it to AddFile afterwards.
  std::unique_ptr<ResultReader> ReaderFor(std::string_view path);
  void AddFile(std::unique_ptr<ResultReader> reader);

  // Adds a file with a known fault, whatever its content.
  void AddDamagedFile(std::string_view path, std::string_view why);

  // Adds an error result: `error_json` is the object in the file at `path`. The item is named after
  // its "error"; the word "timeout" in it makes it a time-out.
  void AddError(std::string_view path, const nlohmann::ordered_json& error_json);

  void EndNode();

  // Returns the whole tree, rolled up. Call it once.
  ResultItem Finish();

 private:
  const ResultsTreeOptions options_;
  ItemBudget budget_;
  std::string node_;
  int64_t left_before_node_ = 0;  // of the budget
  std::vector<ResultItem> node_files_;
  std::vector<ResultItem> node_errors_;
  BoundedItems results_;
  BoundedItems errors_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_RESULTS_TREE_H_
