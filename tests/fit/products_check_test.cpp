// The committed table of products is what the fit makes of the committed measurements, and another number is not.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/temporary_path.h"

namespace ridgeline::fit {
namespace {

/// Checks one class of the table, in which `from` was replaced by `to`.
int check_products_with(const std::string& from, const std::string& to) {
  const std::filesystem::path folder = temporary_path("laws_of_products");
  std::filesystem::create_directories(folder);
  std::stringstream text;
  text << std::ifstream(RIDGELINE_SOURCE_DIR "/data/laws/products.yaml").rdbuf();
  std::string table = text.str();
  const std::size_t at = table.find(from, table.find("  mma_half_align4:"));
  EXPECT_NE(at, std::string::npos);
  table.replace(at, from.size(), to);
  std::ofstream(folder / "products.yaml") << table;
  const std::string command =
      RIDGELINE_FIT_BINARY " --check products --class mma_half_align4 --laws " + folder.string() + " >/dev/null";
  const int status = std::system(command.c_str());
  std::filesystem::remove_all(folder);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(RefitOfProducts, is_checked_on_the_committed_table) {
  EXPECT_EQ(check_products_with("fixed_cycles: {value: ", "fixed_cycles: {value: "), 0);
  EXPECT_EQ(check_products_with("fixed_cycles: {value: ", "fixed_cycles: {value: 1"), 1);
  EXPECT_EQ(check_products_with("data: x", "data: xf"), 1);
}

}  // namespace
}  // namespace ridgeline::fit
