#include "sim/study/points_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/output/descriptor.h"
#include "sim/output/output_error.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

std::string header_of(const Sweep& sweep) {
  const nlohmann::ordered_json header{
      {"ridgeline_sweep", 1}, {"sweep", fmt::format("{:016x}", sweep.fingerprint)}, {"title", sweep.title}};
  return header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

PointsFile::PointsFile(const std::string& path, const Sweep& sweep) : path_(path) {
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw UserError(fmt::format("{}: {}", path, std::strerror(errno)));
  try {
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0)
      throw UserError(fmt::format("{}: another sweep is writing this file", path));
    read(sweep);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

PointsFile::~PointsFile() { ::close(descriptor_); }

void PointsFile::read(const Sweep& sweep) {
  std::string text;
  char buffer[1 << 16];
  for (ssize_t n; (n = ::read(descriptor_, buffer, sizeof buffer)) != 0;) {
    if (n < 0) throw UserError(fmt::format("{}: {}", path_, std::strerror(errno)));
    text.append(buffer, static_cast<std::size_t>(n));
  }
  std::map<std::uint64_t, SweepPoint> points;
  const std::uint64_t size = sweep.grid_size();
  std::size_t begin = 0, line = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;  // torn: its point is predicted again
    ++line;
    try {
      const auto json = nlohmann::json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                              text.begin() + static_cast<std::ptrdiff_t>(end));
      if (line == 1) {
        if (json.at("ridgeline_sweep") != 1 || json.at("sweep") != fmt::format("{:016x}", sweep.fingerprint))
          throw UserError(
              fmt::format("{}: holds the points of another sweep, or of this one before it was changed; "
                          "name a new file or remove this one",
                          path_));
      } else {
        SweepPoint point = point_from_json(json);
        if (point.index >= size) throw std::out_of_range("no such point");
        points.emplace(point.index, std::move(point));
      }
    } catch (const UserError&) {
      throw;
    } catch (const std::exception&) {
      if (end + 1 == text.size() && line > 1) break;  // the end of a file that a crash wrote
      throw UserError(fmt::format("{}:{}: this is not a line of a points file", path_, line));
    }
    begin = end + 1;
  }
  if (line == 0 && text.size() > 4096) throw UserError(fmt::format("{}: this is not a points file", path_));
  if (line == 0 && !text.empty() && !text.starts_with("{\"ridg"))
    throw UserError(fmt::format("{}: this is not a points file", path_));
  if (::ftruncate(descriptor_, static_cast<off_t>(begin)) != 0 || ::lseek(descriptor_, 0, SEEK_END) < 0)
    throw UserError(fmt::format("{}: {}", path_, std::strerror(errno)));
  if (begin == 0) write(header_of(sweep));
  for (auto& [index, point] : points) known_.push_back(std::move(point));
}

void PointsFile::append(std::span<const SweepPoint> points) {
  std::string text;
  for (const SweepPoint& point : points)
    text += point_json(point).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  write(text);
}

void PointsFile::write(const std::string& text) {
  const off_t whole = ::lseek(descriptor_, 0, SEEK_END);
  const int error = write_all(descriptor_, text);
  if (error == 0) return;
  // What of it was taken goes again, so that the file ends with a whole line.
  if (whole < 0 || ::ftruncate(descriptor_, whole) != 0) {}
  throw OutputError(fmt::format("{}: cannot be written: {}", path_, std::strerror(error)));
}

}  // namespace ridgeline
