// Which parts of a report have which colour on a terminal, line by line.
#include "sim/report/text/colours.h"

#include <gtest/gtest.h>

namespace ridgeline {
namespace {

/// The line below a title, as it is shown. `<c`, `<r`, `<y`, `<g` and `>` stand for the sequences.
std::string shown_line(const std::string& line) {
  std::string shown = coloured("t\n" + line);
  const std::string title = "\x1b[1mt\x1b[0m\n";
  EXPECT_TRUE(shown.starts_with(title)) << shown;
  shown.erase(0, title.size());
  const std::pair<const char*, const char*> marks[] = {
      {"\x1b[36m", "<c "}, {"\x1b[1;31m", "<r "}, {"\x1b[33m", "<y "}, {"\x1b[32m", "<g "}, {"\x1b[0m", ">"}};
  for (const auto& [sequence, mark] : marks)
    for (std::size_t at = 0; (at = shown.find(sequence)) != shown.npos;)
      shown.replace(at, std::string(sequence).size(), mark);
  return shown;
}

// A label begins in the third column with a letter, and the text that it labels in the seventeenth.
TEST(ColouredLine, ALabelIsAWordAtTheMarginWithTextInItsColumn) {
  EXPECT_EQ(shown_line("  step time     3 ms"), "  <c step time>     3 ms");
  for (const char* first : {"a", "m", "z", "A", "M", "Z"})
    EXPECT_EQ(shown_line(std::string("  ") + first + "             x"),
              std::string("  <c ") + first + ">             x");
  for (const char* first : {"`", "{", "@", "[", "1", "-", "("})
    EXPECT_EQ(shown_line(std::string("  ") + first + "             x"), std::string("  ") + first + "             x");
  EXPECT_EQ(shown_line("  as long a one x"), "  <c as long a one> x") << "one blank is left";
  EXPECT_EQ(shown_line("  as long a one2x"), "  as long a one2x") << "none is left";
  EXPECT_EQ(shown_line("  two  words    x"), "  two  words    x") << "columns of a table";
  EXPECT_EQ(shown_line("  label          x"), "  label          x") << "nothing in its column";
  EXPECT_EQ(shown_line("  label         "), "  label         ") << "nothing at all";
  EXPECT_EQ(shown_line("  label         x"), "  <c label>         x") << "the shortest";
  EXPECT_EQ(shown_line("                x"), "                x");
  EXPECT_EQ(shown_line(" label          x"), " label          x");
  EXPECT_EQ(shown_line("x label         x"), "x label         x");
  EXPECT_EQ(shown_line(""), "");
}

TEST(ColouredLine, WordsThatWarnAreMarkedWhereTheyStand) {
  EXPECT_EQ(shown_line("it DOES NOT FIT here"), "it <r DOES NOT FIT> here");
  EXPECT_EQ(shown_line("it MAY NOT FIT here"), "it <y MAY NOT FIT> here");
  EXPECT_EQ(shown_line("fits NO yes"), "fits<r  NO >yes");
  EXPECT_EQ(shown_line("cannot run"), "<r cannot run>");
  EXPECT_EQ(shown_line("(estimated)"), "(<y estimated>)");
  EXPECT_EQ(shown_line("note: a"), "<y note:> a");
  EXPECT_EQ(shown_line("host not measured"), "<y host not measured>");
  EXPECT_EQ(shown_line("note: DOES NOT FIT, cannot run, note: end"),
            "<y note:> <r DOES NOT FIT>, <r cannot run>, <y note:> end");
  EXPECT_EQ(shown_line("NOTHING NOTEWORTHY"), "NOTHING NOTEWORTHY");
  EXPECT_EQ(shown_line("  memory        DOES NOT FIT"), "  <c memory>        <r DOES NOT FIT>");
}

TEST(ColouredLine, ChangesThatCanBeTypedEndWithTheLine) {
  EXPECT_EQ(shown_line("--set a=b --set c=d"), "<g --set a=b --set c=d>");
  EXPECT_EQ(shown_line("note: try --set note:=1"), "<y note:> try <g --set note:=1>");
  EXPECT_EQ(shown_line("--setting"), "--setting");
  EXPECT_EQ(shown_line("--set a=b\nplain"), "<g --set a=b>\nplain");
}

TEST(ColouredReport, TheFirstLineIsItsTitleAndLinesStayLines) {
  EXPECT_EQ(coloured(""), "");
  EXPECT_EQ(coloured("note: --set a=b"), "\x1b[1mnote: --set a=b\x1b[0m");
  EXPECT_EQ(coloured("t\n"), "\x1b[1mt\x1b[0m\n");
  EXPECT_EQ(coloured("\n\nt\n\n"), "\n\nt\n\n") << "an empty line has no colour, and is the first";
}

}  // namespace
}  // namespace ridgeline
