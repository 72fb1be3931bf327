// Columns of text.
#ifndef MUSTER_CLI_OUTPUT_TABLE_H_
#define MUSTER_CLI_OUTPUT_TABLE_H_

#include <string>
#include <vector>

namespace muster::cli {

// A table with a heading. Cells are made printable; columns are as wide as their widest cell, with
// two spaces between. Not thread-safe.
class Table {
 public:
  enum class Align { kLeft, kRight };

  struct Column {
    std::string heading;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Missing cells are empty; there must not be more than columns.
  void AddRow(std::vector<std::string> cells);

  bool empty() const { return rows_.empty(); }

  // Each line ends with a newline and has no space before it. With `width` above 0 the last column
  // is cut so that a line fits.
  std::string Render(int width = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_TABLE_H_
