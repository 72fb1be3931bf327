// A table of text columns.
#ifndef MUSTER_CLI_OUTPUT_TABLE_H_
#define MUSTER_CLI_OUTPUT_TABLE_H_

#include <string>
#include <vector>

namespace muster::cli {

// A table with a heading. Control characters in cells are replaced. Each column is as wide as its
// widest cell; two spaces separate columns. Not thread-safe.
class Table {
 public:
  enum class Align { kLeft, kRight };

  struct Column {
    std::string heading;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Adds a row. Missing cells are empty. The row must not have more cells than columns.
  void AddRow(std::vector<std::string> cells);

  bool empty() const { return rows_.empty(); }

  // Returns the table. Lines end with a newline, without spaces before it. If `width` is above 0
  // and the last column does not fit, wraps its cells; in a narrow terminal they have lines of
  // their own.
  std::string Render(int width = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_TABLE_H_
