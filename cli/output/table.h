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
    bool colored = false;  // by its words (color.h)
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Adds a row. Missing cells are empty. The row must not have more cells than columns.
  void AddRow(std::vector<std::string> cells);

  bool empty() const { return rows_.empty(); }

  // Returns the table. Lines end with a newline, without spaces before it. If `width` is above 0
  // and the last column does not fit, wraps its cells; in a narrow terminal they have lines of
  // their own. If the other columns do not fit either, each cell has separate lines.
  std::string Render(int width = 0, bool color = false) const;

 private:
  std::string RenderStacked(int width, bool color) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_TABLE_H_
