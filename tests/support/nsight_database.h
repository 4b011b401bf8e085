// An export of Nsight Systems as small as a test needs it, with the columns that its schema had in a year.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "sim/input/sqlite.h"
#include "tests/support/temporary_path.h"

namespace ridgeline {

class NsightDatabase {
 public:
  enum class Year : std::uint8_t { y2020, y2024 };

  explicit NsightDatabase(const std::string& name, Year year = Year::y2024)
      : path_(fresh(name)), connection_(path_), new_(year == Year::y2024) {
    const std::string work =
        "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER, contextId INTEGER, streamId INTEGER, "
        "correlationId INTEGER, globalPid INTEGER";
    run("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)");
    run(fmt::format("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({}, {}, gridX INTEGER, gridY INTEGER, gridZ INTEGER{})",
                    work, "demangledName INTEGER, shortName INTEGER", new_ ? ", graphNodeId INTEGER" : ""));
    run(
        fmt::format("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY ({}, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, "
                    "dstKind INTEGER)",
                    work));
    run(fmt::format("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET ({}, value INTEGER, bytes INTEGER)", work));
    run("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, "
        "correlationId INTEGER, nameId INTEGER, returnValue INTEGER)");
    run("CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, textId "
        "INTEGER)");
    if (!new_) return;
    run(fmt::format("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE ({}, graphId INTEGER)", work));
    run("CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, totalMemory INTEGER, smCount INTEGER, computeMajor "
        "INTEGER, "
        "computeMinor INTEGER)");
    run("CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER, numMultiprocessors "
        "INTEGER)");
  }

  /// Later rows are of this process and GPU. Times are microseconds.
  void of(std::int64_t process, std::int64_t device) { process_ = process, device_ = device; }

  int call(const std::string& name, double begin, double microseconds) {
    run(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, 0, {}, {}, {}, 0)", at(begin),
                    at(begin + microseconds), (process_ << 24) + 1, ++correlation_, id_of(name)));
    return correlation_;
  }
  void kernel(int correlation, double begin, double microseconds, const std::string& name, int stream = 7) {
    run(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({}, {}, {}, 4, 2, 1{})",
                    work(correlation, begin, microseconds, stream), id_of(name), id_of("short"), new_ ? ", NULL" : ""));
  }
  void copy(int correlation, double begin, double microseconds, std::int64_t bytes, int stream = 7) {
    run(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES ({}, {}, 1, 2, 3)",
                    work(correlation, begin, microseconds, stream), bytes));
  }
  void set(int correlation, double begin, double microseconds, std::int64_t bytes) {
    run(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES ({}, 0, {})",
                    work(correlation, begin, microseconds, 7), bytes));
  }
  void graph(int correlation, double begin, double microseconds, int number) {
    run(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES ({}, {})",
                    work(correlation, begin, microseconds, 7), number));
  }
  void range(const std::string& text, double begin, double end, bool as_string_id = false) {
    run(fmt::format("INSERT INTO NVTX_EVENTS VALUES ({}, {}, 59, {}, {}, {})", at(begin), at(end),
                    as_string_id ? "NULL" : "'" + text + "'", (process_ << 24) + 1,
                    as_string_id ? fmt::format("{}", id_of(text)) : "NULL"));
  }
  void gpu(const std::string& name, std::int64_t memory, int sms, int major, int minor) {
    run(fmt::format("INSERT INTO TARGET_INFO_GPU VALUES ({}, '{}', {}, {}, {}, {})", device_, name, memory, sms, major,
                    minor));
    run(fmt::format("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES ({0}, {0}, {1}, {2})", device_, process_, sms));
  }
  void run(const std::string& sql) { connection_.run(sql); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  static std::string fresh(const std::string& name) {
    std::string path = temporary_path(name);
    std::filesystem::remove(path);
    return path;
  }
  static std::int64_t at(double microseconds) { return 5'000'000'000 + static_cast<std::int64_t>(microseconds * 1e3); }
  [[nodiscard]] std::string work(int correlation, double begin, double microseconds, int stream) const {
    return fmt::format("{}, {}, {}, 1, {}, {}, {}", at(begin), at(begin + microseconds), device_, stream, correlation,
                       process_ << 24);
  }
  int id_of(const std::string& text) {
    const auto [id, is_new] = ids_.try_emplace(text, static_cast<int>(ids_.size()) + 1);
    if (is_new) run(fmt::format("INSERT INTO StringIds VALUES ({}, '{}')", id->second, text));
    return id->second;
  }

  std::string path_;
  sqlite::Connection connection_;
  bool new_;
  std::int64_t process_ = 1000, device_ = 0;
  int correlation_ = 0;
  std::map<std::string, int> ids_;
};

}  // namespace ridgeline
