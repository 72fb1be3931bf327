#include "cli/output/table.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

Table Example() {
  Table table({{"PLUGIN"}, {"SIZE", Table::Align::kRight}, {"ERROR"}});
  table.AddRow({"hostfacts", "1.5 KiB"});
  table.AddRow({"logs", "20 MiB", "the journal was not found"});
  return table;
}

TEST(TableTest, ColumnIsAsWideAsItsWidestCell) {
  EXPECT_EQ(Example().Render(),
            "PLUGIN        SIZE  ERROR\n"
            "hostfacts  1.5 KiB\n"
            "logs        20 MiB  the journal was not found\n");
}

TEST(TableTest, LastColumnIsWrappedToTheTerminal) {
  Table table({{"NODE"}, {"ERROR"}});
  table.AddRow({"n1", "the journal was not found on this machine"});
  table.AddRow({"n2", "disk full"});
  EXPECT_EQ(table.Render(32),
            "NODE  ERROR\n"
            "n1    the journal was not found\n"
            "      on this machine\n"
            "n2    disk full\n");
}

TEST(TableTest, LastColumnOfANarrowTerminalHasLinesOfItsOwn) {
  EXPECT_EQ(Example().Render(30),
            "PLUGIN        SIZE\n"
            "    ERROR\n"
            "hostfacts  1.5 KiB\n"
            "logs        20 MiB\n"
            "    the journal was not found\n");
}

TEST(TableTest, RowsOfAVeryNarrowTerminalAreStacked) {
  EXPECT_EQ(Example().Render(16),
            "PLUGIN  hostfacts\n"
            "SIZE    1.5 KiB\n"
            "\n"
            "PLUGIN  logs\n"
            "SIZE    20 MiB\n"
            "ERROR   the journal was\n"
            "        not found\n");
}

TEST(TableTest, OnlyTheWordsOfAColoredColumnAreColored) {
  Table table({{"RUN"}, {.heading = "STATE", .colored = true}, {"TITLE"}});
  table.AddRow({"1", "failed", "failed"});
  table.AddRow({"2", "running"});
  EXPECT_EQ(table.Render(0, /*color=*/true),
            "RUN  STATE    TITLE\n"
            "1    \x1b[31mfailed\x1b[0m   failed\n"
            "2    running\n");
  EXPECT_EQ(table.Render(0).find('\x1b'), std::string::npos);
}

TEST(TableTest, ControlCharactersInCellsAreReplaced) {
  Table table({{"NODE"}});
  table.AddRow({"a\x1b[2Jb\nc"});
  EXPECT_EQ(table.Render(), "NODE\na?[2Jb c\n");
}

}  // namespace
}  // namespace muster::cli
