#include "sim/output/write_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/iostreams/device/back_inserter.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/output/descriptor.h"
#include "sim/output/output_error.h"
#include "sim/units/user_error.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, int error) {
  const std::string message = fmt::format("{}: cannot be written: {}", path, std::strerror(error));
  switch (error) {  // the name is at fault
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EACCES:
    case EPERM:
    case EROFS:
    case ENAMETOOLONG:
    case ELOOP:
    case ENXIO:
    case ETXTBSY: throw UserError(message);
    default: throw OutputError(message);
  }
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int number() const { return number_; }
  /// 0 or an errno: some file systems say only here that the disk is full.
  int close() {
    const int number = std::exchange(number_, -1);
    return number >= 0 && ::close(number) != 0 && errno != EINTR ? errno : 0;
  }

 private:
  int number_;
};

/// The descriptor of this process that a name such as /dev/stdout or /proc/self/fd/3 stands for.
std::optional<int> own_descriptor(const fs::path& path) {
  fs::path at = path;
  for (int links = 0; links < 40; ++links) {
    std::error_code error;
    const fs::path folder = fs::canonical(at.has_parent_path() ? at.parent_path() : fs::path("."), error);
    if (error) return std::nullopt;
    if (folder == fs::path("/proc") / std::to_string(::getpid()) / "fd") {
      const std::string name = at.filename().string();
      char* end = nullptr;
      const long number = std::strtol(name.c_str(), &end, 10);
      return !name.empty() && *end == '\0' ? std::optional(static_cast<int>(number)) : std::nullopt;
    }
    const fs::path next = fs::read_symlink(at, error);
    if (error) return std::nullopt;
    at = next.is_absolute() ? next : folder / next;
  }
  return std::nullopt;
}

void write_through_descriptor(const std::string& path, int number, const std::string& text) {
  std::fflush(nullptr);  // what was printed before comes before
  if (const int error = write_all(number, text); error != 0) fail(path, error);
}

/// Opens what is there and writes into it.
void write_through(const std::string& path, const std::string& text) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY));
  if (file.number() < 0) fail(path, errno);
  int error = write_all(file.number(), text);
  if (error == 0) error = file.close();
  if (error != 0) fail(path, error);
}

constexpr std::string_view kUnfinished = ".ridgeline-";  // a file that is being written is locked (flock)

/// Removes from the folder of `target` unfinished files that nobody writes any more: their process was killed.
void remove_unfinished(const fs::path& target) {
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (!entry.path().filename().string().starts_with(kUnfinished)) continue;
    const Descriptor file(::open(entry.path().c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat state {};
    if (file.number() < 0 || ::fstat(file.number(), &state) != 0 || !S_ISREG(state.st_mode)) continue;
    if (::flock(file.number(), LOCK_EX | LOCK_NB) != 0) continue;
    // Its writer may have renamed it since, and begun another file of that name.
    struct stat named {};
    if (::stat(entry.path().c_str(), &named) == 0 && named.st_ino == state.st_ino) ::unlink(entry.path().c_str());
  }
}

/// A new, empty, locked file in the folder of `target`; its descriptor, or -1 with errno set.
int open_beside(const fs::path& target, std::string& name) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    name = (target.parent_path() / fmt::format("{}{}-{}", kUnfinished, ::getpid(), attempt)).string();
    const int number = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (number < 0 && errno != EEXIST) return number;
    if (number < 0) continue;
    // Another process may have taken the file for an unfinished one before the lock: then its name is gone.
    struct stat state {};
    if (::flock(number, LOCK_EX) != 0 || ::fstat(number, &state) != 0 || state.st_nlink > 0) return number;
    ::close(number);
  }
  return -1;  // all names are taken, as errno says
}

/// `before`: what the target is now, where it is anything.
void write_beside(const std::string& path, const fs::path& target, const std::string& text, const struct stat* before) {
  remove_unfinished(target);
  std::string name;
  Descriptor file(open_beside(target, name));
  if (file.number() < 0) {
    const bool folder_refuses = errno == EACCES || errno == EPERM || errno == EROFS;
    if (before != nullptr && folder_refuses) return write_through(target.string(), text);
    fail(path, errno);
  }
  int error = write_all(file.number(), text);
  if (error == 0 && before != nullptr) {
    // Another owner's file stays theirs where that is allowed; the mode last, as a change of owner may drop bits.
    if ((before->st_uid != ::geteuid() || before->st_gid != ::getegid()) &&
        ::fchown(file.number(), before->st_uid, before->st_gid) != 0)
      error = errno == EPERM ? 0 : errno;
    if (error == 0 && ::fchmod(file.number(), before->st_mode & 07777) != 0) error = errno;
  }
  const Descriptor lock(::dup(file.number()));  // holds the lock until the file has its name
  if (const int closed = file.close(); error == 0) error = closed;
  if (error == 0 && ::rename(name.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(name.c_str());
  fail(path, error);
}

std::string compressed(const std::string& text) {
  namespace io = boost::iostreams;
  std::string result;
  io::filtering_ostream out;
  out.push(io::gzip_compressor(io::gzip_params(6)));
  out.push(io::back_inserter(result));
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.reset();
  return result;
}

void write_bytes(const std::string& path, const std::string& bytes) {
  if (const auto number = own_descriptor(path)) return write_through_descriptor(path, *number, bytes);
  struct stat now {};
  if (::stat(path.c_str(), &now) != 0) {
    if (errno != ENOENT) fail(path, errno);
    return write_beside(path, written_file(path), bytes, nullptr);  // a link to nothing: the file appears there
  }
  if (S_ISDIR(now.st_mode)) fail(path, EISDIR);
  if (!S_ISREG(now.st_mode) || now.st_nlink > 1) return write_through(path, bytes);
  if (::access(path.c_str(), W_OK) != 0) fail(path, errno);  // renaming over it would need no permission
  std::error_code error;
  const fs::path target = fs::canonical(path, error);
  if (error) fail(path, error.value());
  write_beside(path, target, bytes, &now);
}

}  // namespace

fs::path written_file(const fs::path& path_or_link) {
  fs::path path = path_or_link;
  std::error_code error;
  for (int links = 0; links < 40 && fs::is_symlink(fs::symlink_status(path, error)); ++links) {
    const fs::path next = fs::read_symlink(path, error);
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  return path;
}

void write_file(const std::string& path, const std::string& text) {
  if (path.empty()) throw UserError("a file to write needs a name");
  if (path.ends_with(".gz")) write_bytes(path, compressed(text));
  else write_bytes(path, text);
}

}  // namespace ridgeline
