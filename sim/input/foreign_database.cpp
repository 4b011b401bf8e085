#include "sim/input/foreign_database.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "sim/units/budget.h"
#include "sim/units/readable_files.h"
#include "sim/units/user_error.h"
#include "sim/units/utf8.h"

namespace ridgeline {
namespace {

constexpr const char* kReading = "reading a database";

/// The path as a URI that says that nobody writes the file, so that it is read where it cannot be locked.
std::string uri_of(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '/' || c == '.' || c == '-' || c == '_') uri += c;
    else uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri + "?immutable=1";
}

/// Bytes that a database's header says it has; 0 where it does not say.
std::uint64_t stated_size(std::string_view header) {
  constexpr std::size_t kPageSize = 16, kChanges = 24, kPages = 28, kPagesAsOf = 92;  // SQLite's file format, 1.3
  const auto number = [&](std::size_t at, std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<unsigned char>(header[at + i]);
    return value;
  };
  if (number(kChanges, 4) != number(kPagesAsOf, 4)) return 0;  // written by an old SQLite
  const std::uint64_t page = number(kPageSize, 2);
  return number(kPages, 4) * (page == 1 ? 65536 : page);
}

sqlite::Connection opened(const std::string& path) {
  constexpr std::size_t kHeader = 100;
  check_readable(path);
  std::array<char, kHeader> first{};
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError(fmt::format("{}: no such file, or it cannot be read", path));
  file.read(first.data(), static_cast<std::streamsize>(first.size()));
  const std::string_view header(first.data(), static_cast<std::size_t>(file.gcount()));
  if (!header.starts_with(kSqliteBegin)) throw UserError(fmt::format("{}: not an SQLite database", path));
  std::error_code ignored;
  const std::uint64_t size = std::filesystem::file_size(path, ignored);
  if (header.size() < kHeader || (!ignored && size < stated_size(header)))
    throw UserError(fmt::format("{}: a damaged SQLite database (cut off after {} bytes)", path, size));
  return {uri_of(path), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI};
}

std::string identifier(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

/// The exception that a query threw inside SQLite, which knows no exceptions.
thread_local std::exception_ptr interrupted;

int keep_budget_of_query(void*) {
  try {
    keep_budget(kReading);
    return 0;
  } catch (...) {
    interrupted = std::current_exception();
    return 1;
  }
}

}  // namespace

ForeignDatabase::ForeignDatabase(const std::string& path) try : path_(path), connection_(opened(path)) {
  constexpr int kInstructions = 20'000;  // of SQLite's machine, between looks at the budget
  constexpr int kMostColumns = 200;
  sqlite3* handle = connection_.get();
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kLongestValue);
  sqlite3_limit(handle, SQLITE_LIMIT_COLUMN, kMostColumns);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  connection_.run("PRAGMA cell_size_check=ON");
  sqlite3_progress_handler(handle, kInstructions, keep_budget_of_query, nullptr);
  std::vector<std::string> names;
  sqlite::Statement tables(connection_, "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0");
  constexpr std::size_t kMostTables = 2000;
  while (tables.step() && names.size() < kMostTables) names.push_back(tables.text(0));
  for (const std::string& name : names) {
    sqlite::Statement columns(connection_, fmt::format("PRAGMA table_info({})", identifier(name)));
    std::set<std::string>& own = columns_[name];
    while (columns.step()) own.insert(columns.text(1));
  }
} catch (const sqlite::Error& error) {
  if (interrupted) std::rethrow_exception(std::exchange(interrupted, nullptr));
  throw UserError(fmt::format("{}: a damaged SQLite database ({})", path, as_utf8(error.what())));
}

bool ForeignDatabase::has(const std::string& table, const std::string& column) const {
  const auto found = columns_.find(table);
  return found != columns_.end() && found->second.contains(column);
}

void ForeignDatabase::refuse(const sqlite::Error& error) const {
  if (interrupted) std::rethrow_exception(std::exchange(interrupted, nullptr));
  if (error.code == SQLITE_TOOBIG)
    throw UserError(fmt::format("{}: a value of more than {} KiB", path_, kLongestValue >> 10));
  throw UserError(fmt::format("{}: a damaged SQLite database ({})", path_, as_utf8(error.what())));
}

void ForeignDatabase::read(const std::string& table, std::initializer_list<std::string_view> columns,
                           const std::function<void(const sqlite::Statement&)>& row) {
  const auto known = columns_.find(table);
  if (known == columns_.end()) return;
  std::string sql = "SELECT ";
  for (const std::string_view column : columns) {
    if (sql.size() > 7) sql += ", ";
    sql += known->second.contains(std::string(column)) ? identifier(column) : "NULL";
  }
  sql += " FROM " + identifier(table);
  try {
    sqlite::Statement statement(connection_, sql);
    for (std::int64_t rows = 0; statement.step(); ++rows) {
      keep_budget_often(kReading);
      if (rows == kMostRows) throw UserError(fmt::format("{}: {} has more than {} rows", path_, table, kMostRows));
      row(statement);
    }
  } catch (const sqlite::Error& error) {
    refuse(error);
  }
}

}  // namespace ridgeline
