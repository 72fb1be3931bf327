#include "cli/output/table.h"

#include <algorithm>
#include <functional>

#include "cli/output/color.h"
#include "cli/output/format.h"

namespace muster::cli {
namespace {

constexpr int kGap = 2;
constexpr int kIndent = 4;         // of cells with separate lines
constexpr int kMinLastWidth = 24;  // of the last column beside the others
constexpr int kMinStacked = 16;    // of a cell beside its heading

std::string Pad(const std::string& cell, int width, Table::Align align) {
  const std::string spaces(std::max(width - DisplayWidth(cell), 0), ' ');
  return align == Table::Align::kRight ? spaces + cell : cell + spaces;
}

std::string Trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

void Table::AddRow(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = Printable(cell);
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::RenderStacked(int width, bool color) const {
  int heading_width = 0;
  for (const Column& column : columns_) {
    heading_width = std::max(heading_width, DisplayWidth(column.heading));
  }
  const int indent = heading_width + kGap;
  std::string text;
  for (const auto& row : rows_) {
    if (!text.empty()) text += "\n";
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (row[i].empty()) continue;
      std::string heading = Pad(columns_[i].heading, indent, Align::kLeft);
      for (const std::string& line : WrapLines(row[i], std::max(width - indent, kMinStacked))) {
        const bool colored = color && columns_[i].colored;
        text += heading + (colored ? Colored(line, ColorOfWord(row[i])) : line) + "\n";
        heading = std::string(indent, ' ');
      }
    }
  }
  return text;
}

std::string Table::Render(int width, bool color) const {
  std::vector<int> widths;
  int before_last = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    int widest = DisplayWidth(columns_[i].heading);
    for (const auto& row : rows_) widest = std::max(widest, DisplayWidth(row[i]));
    widths.push_back(widest);
    if (i + 1 < columns_.size()) before_last += widest + kGap;
  }
  if (width > 0 && before_last - kGap > width && columns_.size() > 1) {
    return RenderStacked(width, color);
  }
  const bool wraps = width > 0 && before_last + widths.back() > width;
  const bool own_lines = wraps && width - before_last < kMinLastWidth && columns_.size() > 1;
  const int last_indent = own_lines ? kIndent : before_last;
  const int last_width = !wraps ? 0 : std::max(width - last_indent, kMinLastWidth);

  std::string text;
  const auto add_row = [&](const std::function<const std::string&(size_t)>& cell_of) {
    std::string line;
    for (size_t i = 0; i + 1 < columns_.size(); ++i) {
      const std::string& cell = cell_of(i);
      std::string padded = Pad(cell, widths[i], columns_[i].align);
      if (color && columns_[i].colored && !cell.empty()) {
        padded.replace(padded.find(cell), cell.size(), Colored(cell, ColorOfWord(cell)));
      }
      line += padded + std::string(kGap, ' ');
    }
    const size_t last = columns_.size() - 1;
    std::vector<std::string> lines = WrapLines(cell_of(last), last_width);
    if (!own_lines) {
      const bool padded = !wraps && columns_[last].align == Align::kRight;
      line += padded ? Pad(lines.front(), widths[last], Align::kRight) : lines.front();
      lines.erase(lines.begin());
    }
    text += Trimmed(line) + "\n";
    for (const std::string& more : lines) {
      if (!more.empty()) text += Trimmed(std::string(last_indent, ' ') + more) + "\n";
    }
  };
  add_row([&](size_t i) -> const std::string& { return columns_[i].heading; });
  for (const auto& row : rows_) add_row([&](size_t i) -> const std::string& { return row[i]; });
  return text;
}

}  // namespace muster::cli
