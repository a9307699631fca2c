#include <Poco/AutoPtr.h>
#include <Poco/DOM/DOMParser.h>
#include <Poco/DOM/Document.h>
#include <Poco/DOM/Element.h>
#include <Poco/DOM/NodeList.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "flash_sale_table.h"
#include "process.h"
#include "temp_folder.h"

namespace lockkeeper::test {
namespace {

using Poco::XML::Element;

const std::string red = "#c0392b";

Finished draw(const std::string& input) {
  const TempFolder folder;
  writeFile(folder / "input", input);
  return runToEnd({FLASH_SALE_DRAW}, {.standardInput = folder / "input"});
}

std::vector<const Element*> elementsOf(const Element& parent, const std::string& name) {
  const Poco::AutoPtr<Poco::XML::NodeList> nodes = parent.getElementsByTagName(name);
  std::vector<const Element*> elements;
  for (unsigned long i = 0; i < nodes->length(); ++i) {
    elements.push_back(static_cast<const Element*>(nodes->item(i)));
  }
  return elements;
}

std::vector<std::string> textsOf(const Element& parent) {
  std::vector<std::string> texts;
  for (const Element* text : elementsOf(parent, "text")) texts.push_back(text->innerText());
  return texts;
}

TEST(FlashSalePicture, ShowsEachWayWithTheNumbersOfTheRun) {
  const Finished demo = runToEnd({FLASH_SALE, "--stock=50", "--orders=300", "--customers=8"});
  ASSERT_EQ(demo.exitCode, 0) << demo.output << demo.errors;
  const Finished picture = draw("[1/1] something | before\n" + demo.output + "something | behind\n");
  ASSERT_EQ(picture.exitCode, 0) << picture.errors;

  Poco::XML::DOMParser parser;
  const Poco::AutoPtr<Poco::XML::Document> svg = parser.parseString(picture.output);
  const Element& root = *svg->documentElement();
  EXPECT_EQ(root.nodeName(), "svg");
  EXPECT_EQ(textsOf(root).at(0), "50 pieces, 300 orders from 8 customers at once");
  EXPECT_EQ(textsOf(root).at(1), "locks in memory:, stock in SQLite");
  const auto table = readFlashSale(demo.output);
  const auto rows = elementsOf(root, "g");
  ASSERT_EQ(rows.size(), table.size());
  const int fastest = std::ranges::max(table, {}, &FlashSaleRow::perSecond).perSecond;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const FlashSaleRow& row = table[i];
    EXPECT_EQ(textsOf(*rows[i]), (std::vector<std::string>{row.way, std::to_string(row.oversold),
                                                           std::to_string(row.perSecond)}));
    const auto bars = elementsOf(*rows[i], "rect");
    ASSERT_EQ(bars.size(), row.oversold > 0 ? 2U : 1U) << row.way;
    EXPECT_EQ(bars.front()->getAttribute("fill") == red, row.oversold > 0) << row.way;
    EXPECT_NEAR(std::stod(bars.back()->getAttribute("width")), 200.0 * row.perSecond / fastest, 1) << row.way;
  }
}

TEST(FlashSalePicture, IsNotDrawnOfSomethingElse) {
  const Finished picture = draw("flash_sale: lockkeeper.store is missing\n");
  EXPECT_EQ(picture.exitCode, 1);
  EXPECT_EQ(picture.output, "");
  EXPECT_EQ(picture.errors, "draw: the demo's table is not in the input\n");
}

}  // namespace
}  // namespace lockkeeper::test
