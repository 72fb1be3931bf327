// A plugin's tree of results, built while its files pass by.
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
  int64_t max_bytes = ItemBudget::kDefaultBytes;  // of the tree in memory; see item_budget.h
};

// Nodes come one after another: BeginNode, its files and error, EndNode. Not thread-safe.
class ResultsTree {
 public:
  explicit ResultsTree(ResultsTreeOptions options);

  void BeginNode(std::string_view node);

  // A reader for the file at `path` (relative to the plugin's folder: "results/n1/a.xml"), or
  // nullptr if this plugin's files are not read for that name. Hand it back to AddFile.
  std::unique_ptr<ResultReader> ReaderFor(std::string_view path);
  void AddFile(std::unique_ptr<ResultReader> reader);

  // A file of which something is known to be wrong, whatever it holds.
  void AddDamagedFile(std::string_view path, std::string_view why);

  // What stands in place of a result: `error_json` is the object in the file at `path`. The item is
  // named after its "error"; with the word "timeout" in it, it is a time-out.
  void AddError(std::string_view path, const nlohmann::ordered_json& error_json);

  void EndNode();

  // The whole tree, rolled up. Once.
  ResultItem Finish();

 private:
  const ResultsTreeOptions options_;
  ItemBudget budget_;
  std::string node_;
  std::vector<ResultItem> node_files_;
  std::vector<ResultItem> node_errors_;
  BoundedItems results_;
  BoundedItems errors_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_RESULTS_TREE_H_
