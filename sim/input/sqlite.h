// SQLite's handles as values that end themselves, and its errors as ours.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ridgeline::sqlite {

/// What SQLite says; `code` is its primary result code.
struct Error : std::runtime_error {
  Error(int its_code, const std::string& message) : std::runtime_error(message), code(its_code & 0xff) {}
  int code;
};

class Connection {
 public:
  /// Opens the database or makes an empty one.
  explicit Connection(const std::string& path) : Connection(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) {}
  Connection(const std::string& path, int flags) {
    sqlite3* handle = nullptr;
    const int result = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
    handle_.reset(handle);
    check(result);
  }
  void check(int result) const {
    if (result == SQLITE_OK || result == SQLITE_ROW || result == SQLITE_DONE) return;
    throw Error(result, handle_ ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(result));
  }
  void run(const std::string& sql) { check(sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr)); }
  [[nodiscard]] sqlite3* get() const { return handle_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  std::unique_ptr<sqlite3, Close> handle_;
};

class Statement {
 public:
  Statement(Connection& connection, std::string_view sql) : connection_(&connection) {
    sqlite3_stmt* handle = nullptr;
    const int result = sqlite3_prepare_v2(connection.get(), sql.data(), static_cast<int>(sql.size()), &handle, nullptr);
    handle_.reset(handle);
    connection.check(result);
  }
  Statement& bind(int place, std::int64_t value) { return bound(sqlite3_bind_int64(handle_.get(), place, value)); }
  Statement& bind(int place, double value) { return bound(sqlite3_bind_double(handle_.get(), place, value)); }
  Statement& bind(int place, std::string_view value) {
    return bound(
        sqlite3_bind_text(handle_.get(), place, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT));
  }
  Statement& bind_null(int place) { return bound(sqlite3_bind_null(handle_.get(), place)); }
  /// True where there is a row.
  bool step() {
    const int result = sqlite3_step(handle_.get());
    connection_->check(result);
    return result == SQLITE_ROW;
  }
  /// To be run again, with what is bound.
  void reset() { connection_->check(sqlite3_reset(handle_.get())); }

  [[nodiscard]] int type(int column) const { return sqlite3_column_type(handle_.get(), column); }
  [[nodiscard]] std::int64_t integer(int column) const { return sqlite3_column_int64(handle_.get(), column); }
  [[nodiscard]] double real(int column) const { return sqlite3_column_double(handle_.get(), column); }
  [[nodiscard]] std::string text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column));
    return bytes == nullptr ? ""
                            : std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(handle_.get(), column)));
  }

 private:
  Statement& bound(int result) {
    connection_->check(result);
    return *this;
  }
  struct Finalize {
    void operator()(sqlite3_stmt* handle) const { sqlite3_finalize(handle); }
  };
  Connection* connection_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

}  // namespace ridgeline::sqlite
