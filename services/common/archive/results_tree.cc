#include "services/common/archive/results_tree.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace muster {
namespace {

// Sixteenths of the remaining memory: what the files of one node and their leaves may take. A node
// with very many leaves keeps its files, and leaves most of the memory to the nodes after it.
constexpr int kLeafShare = 3;
constexpr int kNodeShare = 4;

// The order of a walk over the unpacked archive, folder by folder.
bool WalksBefore(const ResultItem& a, const ResultItem& b) {
  const auto less = [](char x, char y) {
    const auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c) + 1; };
    return rank(x) < rank(y);
  };
  const std::string& left = a.meta.at(kMetaFile);
  const std::string& right = b.meta.at(kMetaFile);
  return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end(), less);
}

std::string TextOf(const nlohmann::ordered_json& value) {
  using Json = nlohmann::ordered_json;
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

ResultsTree::ResultsTree(ResultsTreeOptions options)
    : options_(std::move(options)),
      budget_(options_.max_bytes, options_.max_cpu, options_.max_cpu_of_node),
      results_(budget_),
      errors_(budget_) {}

void ResultsTree::BeginNode(std::string_view node) {
  node_ = std::string(node);
  budget_.BeginNode();
  left_before_node_ = budget_.left();
  if (options_.per_node) budget_.KeepFree(left_before_node_ - left_before_node_ * kLeafShare / 16);
}

std::unique_ptr<ResultReader> ResultsTree::ReaderFor(std::string_view path) {
  if (!IsResultFile(options_.format, options_.result_files, path)) return nullptr;
  return MakeResultReader(options_.format, path, budget_);
}

void ResultsTree::AddFile(std::unique_ptr<ResultReader> reader) {
  node_files_.push_back(reader->Finish());
}

void ResultsTree::AddDamagedFile(std::string_view path, std::string_view why) {
  node_files_.push_back(UnknownFileItem(path, why));
}

void ResultsTree::AddError(std::string_view path, const nlohmann::ordered_json& error_json) {
  constexpr size_t kMaxName = 4096;
  ResultItem item = FileItem(path, kFailed);
  item.details = nlohmann::ordered_json::object();
  for (const auto& [key, value] : error_json.items()) item.details[key] = TextOf(value);
  if (const auto error = item.details.find("error"); error != item.details.end()) {
    const std::string text = TextOf(*error);
    if (!text.empty()) item.name = CutText(text, kMaxName);
    if (text.find(kTimeout) != std::string::npos) item.status = std::string(kTimeout);
  }
  node_errors_.push_back(std::move(item));
}

void ResultsTree::EndNode() {
  if (options_.per_node) budget_.KeepFree(left_before_node_ - left_before_node_ * kNodeShare / 16);
  std::sort(node_files_.begin(), node_files_.end(), WalksBefore);
  std::vector<std::pair<BoundedItems*, ResultItem>> nodes;
  const auto settle = [this, &nodes](std::vector<ResultItem>& found, bool keep_empty,
                                     BoundedItems& into) {
    if (!options_.per_node) {
      for (ResultItem& item : found) into.Add(std::move(item));
    } else if (!found.empty() || keep_empty) {
      BoundedItems children(budget_);
      for (ResultItem& item : found) children.Add(std::move(item));
      ResultItem node{.name = node_, .items = children.Finish()};
      node.meta[kMetaType] = std::string(kTypeNode);
      nodes.emplace_back(&into, std::move(node));
    }
    found.clear();
  };
  // A node without readable files is in the tree as unknown.
  settle(node_files_, node_errors_.empty(), results_);
  settle(node_errors_, false, errors_);
  budget_.KeepFree(0);
  for (auto& [into, node] : nodes) into->Add(std::move(node));
}

ResultItem ResultsTree::Finish() {
  ResultItem root{.name = options_.plugin};
  root.meta[kMetaType] = std::string(kTypeSummary);
  root.items = results_.Finish();
  std::vector<ResultItem> errors = errors_.Finish();
  std::move(errors.begin(), errors.end(), std::back_inserter(root.items));
  RollUp(root);
  return root;
}

}  // namespace muster
