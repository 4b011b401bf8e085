#include "sim/study/sweep/points_file.h"

#include <fmt/format.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <optional>

#include "sim/input/sqlite.h"
#include "sim/output/output_error.h"
#include "sim/study/file_states.h"
#include "sim/study/sweep/sweep_scenario.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

constexpr int kApplicationId = 0x52646753;  // "RdgS"
constexpr int kLayout = 1;                  // PRAGMA user_version
constexpr int kFirstMetric = 3;             // column of `point`
constexpr std::size_t kMostWaiting = 8192;  // points of a transaction
constexpr std::chrono::milliseconds kLongestWait{250};

constexpr const char* kQuestionTable =
    "CREATE TABLE question (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID";
constexpr const char* kFileTable = "CREATE TABLE file (path TEXT PRIMARY KEY, hash TEXT NOT NULL) WITHOUT ROWID";
std::string point_table() {
  std::string sql = "CREATE TABLE point (point INTEGER PRIMARY KEY, fits INTEGER NOT NULL, error TEXT NOT NULL";
  for (std::size_t i = 0; i < kMetrics; ++i) sql += fmt::format(", {} REAL", info_of(i).json_key);
  return sql + ", hash INTEGER NOT NULL)";
}

/// Of all that a row says, and whose it is.
std::int64_t hash_of_row(const SweepPoint& point, std::uint64_t fingerprint) {
  Hash64 hash;
  hash.add(fingerprint);
  hash.add(point.index);
  hash.add(std::uint64_t{point.fits});
  hash.add(std::uint64_t{point.error.size()});
  hash.add(std::string_view(point.error));
  for (const double value : point.metrics)
    hash.add(std::isnan(value) ? std::numeric_limits<std::uint64_t>::max()
             : value == 0.0    ? 0  // of either sign: SQLite keeps none
                               : std::bit_cast<std::uint64_t>(value));
  return std::bit_cast<std::int64_t>(hash.value());
}

std::map<std::string, std::string> question_of(const Sweep& sweep) {
  return {{"sweep", fmt::format("{:016x}", sweep.fingerprint)},
          {"title", sweep.title},
          {"engine", sweep.engine},
          {"points", fmt::format("{}", sweep.grid_size())},
          {"program", hash_of_this_program()}};
}

}  // namespace

class PointsFile::Database {
 public:
  Database(const std::string& path, const Sweep& sweep)
      : path_(path), sweep_(sweep), files_(files_of_sweep(sweep)), connection_(open(path)) {
    try {
      begin();
      if (is_empty()) make();
      else read();
      connection_.run("COMMIT");
      insert_.emplace(connection_, insertion());
    } catch (const sqlite::Error& error) {
      if (error.code == SQLITE_FULL || error.code == SQLITE_IOERR)
        throw OutputError(fmt::format("{}: cannot be written: {}", path_, error.what()));
      throw UserError(reason(error));
    }
  }

  std::vector<SweepPoint> take_known() { return std::move(known_); }

  void append(std::span<const SweepPoint> points) {
    if (points.empty()) return;  // of a stretch that was stopped: no transaction without a row
    writing([&] {
      if (!waiting_) {
        connection_.run("BEGIN");
        began_ = Clock::now();
      }
      for (const SweepPoint& point : points) insert(point);
      waiting_ += points.size();
      if (waiting_ >= kMostWaiting || Clock::now() - began_ >= kLongestWait) commit();
    });
  }
  void flush() {
    writing([&] {
      if (waiting_) commit();
    });
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// SQLite takes a file of a few bytes for an empty database.
  static sqlite::Connection open(const std::string& path) {
    constexpr std::string_view kMagic = "SQLite format 3";
    std::string head(kMagic.size(), ' ');
    std::ifstream file(path, std::ios::binary);
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    if (file.gcount() > 0 && head != kMagic)
      throw UserError(fmt::format("{}: this is not a points file (an SQLite database that a sweep wrote)", path));
    try {
      return sqlite::Connection(path);
    } catch (const sqlite::Error& error) {
      throw UserError(fmt::format("{}: {}", path, error.what()));
    }
  }
  [[nodiscard]] std::string reason(const sqlite::Error& error) const {
    switch (error.code) {
      case SQLITE_BUSY:
      case SQLITE_LOCKED: return fmt::format("{}: another sweep is writing this file", path_);
      case SQLITE_NOTADB: return not_ours();
      case SQLITE_ERROR:  // a table or column that is not there
      case SQLITE_CORRUPT: return damaged();
      default: return fmt::format("{}: {}", path_, error.what());
    }
  }
  [[nodiscard]] std::string not_ours() const {
    return fmt::format("{}: this is not a points file (an SQLite database that a sweep wrote)", path_);
  }
  [[nodiscard]] std::string damaged() const {
    return fmt::format("{}: this points file is damaged; name a new one or remove it", path_);
  }
  [[nodiscard]] std::string other(std::string_view why) const {
    return fmt::format("{}: {}; name a new file or remove this one", path_, why);
  }

  /// One writer at a time, to the end of the process: its lock goes with it however it ends.
  void begin() {
    connection_.run("PRAGMA locking_mode = EXCLUSIVE");
    connection_.run("PRAGMA trusted_schema = OFF");
    connection_.run("PRAGMA cell_size_check = ON");
    connection_.run("PRAGMA synchronous = NORMAL");
    connection_.run("BEGIN EXCLUSIVE");
  }
  std::int64_t number(std::string_view sql) {
    sqlite::Statement statement(connection_, sql);
    return statement.step() ? statement.integer(0) : 0;
  }
  bool is_empty() {
    const bool empty = number("SELECT count(*) FROM sqlite_master") == 0;
    if (!(empty && number("PRAGMA application_id") == 0) && number("PRAGMA application_id") != kApplicationId)
      throw UserError(not_ours());
    return empty;
  }

  void make() {
    connection_.run(fmt::format("PRAGMA application_id = {}", kApplicationId));
    connection_.run(fmt::format("PRAGMA user_version = {}", kLayout));
    connection_.run(kQuestionTable);
    connection_.run(kFileTable);
    connection_.run(point_table());
    const auto add = [&](const char* table, const std::string& key, const std::string& value) {
      sqlite::Statement(connection_, fmt::format("INSERT INTO {} VALUES (?, ?)", table))
          .bind(1, key)
          .bind(2, value)
          .step();
    };
    for (const auto& [key, value] : question_of(sweep_)) add("question", key, value);
    for (const auto& file : files_.files()) add("file", file.path, file.hash);
  }

  void read() {
    check_layout();
    check_question();
    check_files();
    read_points();
  }
  void check_layout() {
    if (number("PRAGMA user_version") != kLayout) throw UserError(other("another version of this program wrote it"));
    sqlite::Statement integrity(connection_, "PRAGMA integrity_check(1)");
    if (!integrity.step() || integrity.text(0) != "ok") throw UserError(damaged());
  }
  void check_question() {
    std::map<std::string, std::string> asked;
    sqlite::Statement rows(connection_, "SELECT key, value FROM question");
    while (rows.step()) asked[rows.text(0)] = rows.text(1);
    const auto now = question_of(sweep_);
    for (const auto& [key, value] : now)
      if (!asked.contains(key)) throw UserError(damaged());
    if (asked["sweep"] != now.at("sweep") || asked["engine"] != now.at("engine") || asked["points"] != now.at("points"))
      throw UserError(other("holds the points of another sweep, or of this one before it was changed"));
    if (asked["program"] != now.at("program")) throw UserError(other("holds points of another build of this program"));
    // The layout last: a program of other metrics is another one.
    sqlite::Statement tables(connection_, "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL");
    int ours = 0;
    while (tables.step()) {
      const std::string sql = tables.text(0);
      ours += sql == kQuestionTable || sql == kFileTable || sql == point_table() ? 1 : 100;
    }
    if (ours != 3) throw UserError(damaged());
  }
  /// Points of two states of a description are never mixed.
  void check_files() {
    std::map<std::string, std::string> then;
    sqlite::Statement rows(connection_, "SELECT path, hash FROM file");
    while (rows.step()) then[rows.text(0)] = rows.text(1);
    for (const auto& file : files_.files()) {
      const auto found = then.find(file.path);
      if (found == then.end())
        throw UserError(other(fmt::format("{} was not read when its points were predicted", file.path)));
      if (found->second != file.hash)
        throw UserError(other(fmt::format("{} has changed since its points were predicted", file.path)));
    }
    for (const auto& [path, hash] : then)
      if (files_.hash_of(path).empty())
        throw UserError(other(fmt::format("{} was read when its points were predicted and is not now", path)));
  }
  void read_points() {
    std::string columns = "point, fits, error";
    for (std::size_t i = 0; i < kMetrics; ++i) columns += fmt::format(", {}", info_of(i).json_key);
    sqlite::Statement rows(connection_, fmt::format("SELECT {}, hash FROM point ORDER BY point", columns));
    const std::uint64_t size = sweep_.grid_size();
    while (rows.step()) {
      SweepPoint point;
      point.index = static_cast<std::uint64_t>(rows.integer(0));
      point.fits = rows.integer(1) != 0;
      point.error = rows.text(2);
      for (std::size_t i = 0; i < kMetrics; ++i) {
        const int column = kFirstMetric + static_cast<int>(i);
        point.metrics[i] =
            rows.type(column) == SQLITE_NULL ? std::numeric_limits<double>::quiet_NaN() : rows.real(column);
      }
      const bool whole =
          rows.integer(kFirstMetric + static_cast<int>(kMetrics)) == hash_of_row(point, sweep_.fingerprint);
      if (!whole || point.index >= size) throw UserError(damaged());
      known_.push_back(std::move(point));
    }
  }

  static std::string insertion() {
    std::string sql = "INSERT OR REPLACE INTO point VALUES (?";
    for (int i = 0; i < kFirstMetric + static_cast<int>(kMetrics); ++i) sql += ", ?";
    return sql + ")";
  }
  void insert(const SweepPoint& point) {
    sqlite::Statement& row = *insert_;
    row.bind(1, static_cast<std::int64_t>(point.index)).bind(2, std::int64_t{point.fits}).bind(3, point.error);
    int place = kFirstMetric;
    for (const double value : point.metrics) {
      ++place;
      if (std::isnan(value)) row.bind_null(place);
      else row.bind(place, value);
    }
    row.bind(place + 1, hash_of_row(point, sweep_.fingerprint));
    row.step();
    row.reset();
  }
  void commit() {
    if (const auto changed = files_.changed()) {
      connection_.run("ROLLBACK");
      waiting_ = 0;
      throw UserError(
          fmt::format("{} was changed while the sweep ran; {} holds the points predicted before", *changed, path_));
    }
    connection_.run("COMMIT");
    waiting_ = 0;
  }
  template <typename Write>
  void writing(const Write& write) {
    try {
      write();
    } catch (const sqlite::Error& error) {
      sqlite3_exec(connection_.get(), "ROLLBACK", nullptr, nullptr, nullptr);  // what was written before stays
      waiting_ = 0;
      throw OutputError(fmt::format("{}: cannot be written: {}", path_, error.what()));
    }
  }

  std::string path_;
  const Sweep& sweep_;
  FileStates files_;
  sqlite::Connection connection_;
  std::optional<sqlite::Statement> insert_;
  std::vector<SweepPoint> known_;
  std::size_t waiting_ = 0;  ///< points of the transaction that is open
  Clock::time_point began_;
};

PointsFile::PointsFile(const std::string& path, const Sweep& sweep)
    : path_(path), database_(std::make_unique<Database>(path, sweep)), known_(database_->take_known()) {}

PointsFile::~PointsFile() {
  try {
    if (database_) database_->flush();
  } catch (const std::exception&) {  // who wants to know calls flush
    database_.reset();
  }
}

void PointsFile::append(std::span<const SweepPoint> points) { database_->append(points); }
void PointsFile::flush() { database_->flush(); }

}  // namespace ridgeline
