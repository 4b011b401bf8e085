// An SQLite database that somebody else wrote, read only: its tables, the columns that they have, rows of some of them.
//
// Nothing of the file is run: views, triggers and virtual tables are no tables here. Queries keep the budget of their
// question, values longer than kLongestValue and tables of more than kMostRows rows are refused.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "sim/input/sqlite.h"

namespace ridgeline {

/// First bytes of every database.
inline constexpr std::string_view kSqliteBegin{"SQLite format 3\0", 16};

class ForeignDatabase {
 public:
  static constexpr int kLongestValue = 1 << 20;          ///< bytes
  static constexpr std::int64_t kMostRows = 40'000'000;  ///< of a table

  /// Throws UserError for a file that is no database, or a damaged one.
  explicit ForeignDatabase(const std::string& path);

  [[nodiscard]] bool has(const std::string& table) const { return columns_.contains(table); }
  [[nodiscard]] bool has(const std::string& table, const std::string& column) const;
  /// Names of its tables.
  [[nodiscard]] const std::map<std::string, std::set<std::string>>& tables() const { return columns_; }

  /// Calls `row` for each row of `table` with these columns in this order, those that it lacks as NULL. Throws
  /// UserError where the file is damaged.
  void read(const std::string& table, std::initializer_list<std::string_view> columns,
            const std::function<void(const sqlite::Statement&)>& row);

 private:
  [[noreturn]] void refuse(const sqlite::Error& error) const;

  std::string path_;
  sqlite::Connection connection_;
  std::map<std::string, std::set<std::string>> columns_;  ///< by table
};

}  // namespace ridgeline
