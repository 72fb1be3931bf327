#include "cli/output/table.h"

#include <algorithm>

#include "cli/output/format.h"

namespace muster::cli {
namespace {

constexpr int kGap = 2;
constexpr int kMinLastWidth = 8;  // of the last column, on any terminal

std::string Pad(const std::string& cell, int width, Table::Align align) {
  const std::string spaces(std::max(width - DisplayWidth(cell), 0), ' ');
  return align == Table::Align::kRight ? spaces + cell : cell + spaces;
}

}  // namespace

void Table::AddRow(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = Printable(cell);
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::Render(int width) const {
  std::vector<int> widths;
  int before_last = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    int widest = DisplayWidth(columns_[i].heading);
    for (const auto& row : rows_) widest = std::max(widest, DisplayWidth(row[i]));
    widths.push_back(widest);
    if (i + 1 < columns_.size()) before_last += widest + kGap;
  }
  if (width > 0) {
    widths.back() = std::min(widths.back(), std::max(width - before_last, kMinLastWidth));
  }

  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) line.append(kGap, ' ');
      line += Pad(Clip(cell_of(i), widths[i]), widths[i], columns_[i].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_line([&](size_t i) { return columns_[i].heading; });
  for (const auto& row : rows_) add_line([&](size_t i) { return row[i]; });
  return text;
}

}  // namespace muster::cli
