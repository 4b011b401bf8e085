#include "sim/output/write_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/iostreams/device/back_inserter.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
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

}  // namespace

namespace file_writer {

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

}  // namespace file_writer

namespace {

using file_writer::Descriptor;

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

/// Names of the unfinished files of this process, for a signal handler: a file that finds no place here is removed on
/// the next run.
std::array<std::atomic<const char*>, 16> own_unfinished{};

void remember_unfinished(const std::string& name) {
  for (std::atomic<const char*>& place : own_unfinished)
    if (const char* none = nullptr; place.compare_exchange_strong(none, name.c_str())) return;
}
void forget_unfinished(const std::string& name) {
  for (std::atomic<const char*>& place : own_unfinished)
    if (const char* its = name.c_str(); place.compare_exchange_strong(its, nullptr)) return;
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

}  // namespace

namespace file_writer {

/// Pieces of a text go into `file` until finish(), as they are or compressed.
class Pieces {
 public:
  explicit Pieces(bool compressed) {
    namespace io = boost::iostreams;
    if (!compressed) return;
    gzip_ = std::make_unique<io::filtering_ostream>();
    gzip_->push(io::gzip_compressor(io::gzip_params(6)));
    gzip_->push(io::back_inserter(packed_));
  }
  /// An errno, or 0.
  int add(int file, std::string_view text) {
    if (!gzip_) return write_all(file, text);
    gzip_->write(text.data(), static_cast<std::streamsize>(text.size()));
    return write_packed(file);
  }
  int end(int file) {
    if (!gzip_) return 0;
    gzip_->reset();
    return write_packed(file);
  }

 private:
  int write_packed(int file) {
    const int error = write_all(file, packed_);
    packed_.clear();
    return error;
  }

  std::string packed_;  // outlives the stream, which writes into it as it goes
  std::unique_ptr<boost::iostreams::filtering_ostream> gzip_;
};

}  // namespace file_writer

namespace {

/// An unnamed file; in memory where no folder takes it.
int open_unnamed() {
  if (std::FILE* const file = std::tmpfile()) {
    const int number = ::fcntl(::fileno(file), F_DUPFD_CLOEXEC, 3);
    std::fclose(file);
    return number;
  }
#ifdef MFD_CLOEXEC
  return ::memfd_create("ridgeline", MFD_CLOEXEC);
#else
  return -1;
#endif
}

/// All of the file `from`, into `to`; an errno, or 0.
int copy_all(int from, int to) {
  std::string piece(std::size_t{1} << 20, '\0');
  if (::lseek(from, 0, SEEK_SET) < 0) return errno;
  for (;;) {
    const ssize_t got = ::read(from, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return 0;
    if (const int error = write_all(to, {piece.data(), static_cast<std::size_t>(got)}); error != 0) return error;
  }
}

}  // namespace

struct FileWriter::State {
  explicit State(const std::string& name) : path(name), pieces(name.ends_with(".gz")) {}

  std::string path;
  file_writer::Pieces pieces;
  std::unique_ptr<Descriptor> file;  ///< that is written until finish()
  std::string beside;                ///< its name, where it becomes the target; else it is copied
  std::optional<int> own;            ///< descriptor of this process that is the target
  fs::path target;
  std::optional<struct stat> before;  ///< what the target was
  std::uint64_t bytes = 0;

  void open_beside_target(const fs::path& where) {
    target = where;
    remove_unfinished(target);
    file = std::make_unique<Descriptor>(open_beside(target, beside));
    if (file->number() >= 0) return remember_unfinished(beside);
    beside.clear();
    const bool folder_refuses = errno == EACCES || errno == EPERM || errno == EROFS;
    if (!before || !folder_refuses) fail(path, errno);
    open_for_copy();
  }
  void open_for_copy() {
    file = std::make_unique<Descriptor>(open_unnamed());
    if (file->number() < 0) fail(path, errno);
  }
  void open() {
    own = own_descriptor(path);
    if (own) return open_for_copy();
    struct stat now {};
    if (::stat(path.c_str(), &now) != 0) {
      if (errno != ENOENT) fail(path, errno);
      return open_beside_target(written_file(path));  // a link to nothing: the file appears there
    }
    if (S_ISDIR(now.st_mode)) fail(path, EISDIR);
    target = path;
    if (!S_ISREG(now.st_mode)) return open_for_copy();
    if (::access(path.c_str(), W_OK) != 0) fail(path, errno);  // renaming over it would need no permission
    if (now.st_nlink > 1) return open_for_copy();
    std::error_code error;
    const fs::path whole = fs::canonical(path, error);
    if (error) fail(path, error.value());
    before = now;
    open_beside_target(whole);
  }

  /// Into what is there: an errno, or 0.
  [[nodiscard]] int copy() const {
    if (own) {
      std::fflush(nullptr);  // what was printed before comes before
      return copy_all(file->number(), *own);
    }
    Descriptor to(::open(target.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY));
    if (to.number() < 0) return errno;
    const int error = copy_all(file->number(), to.number());
    return error != 0 ? error : to.close();
  }
  /// The unfinished file gets the name of the target: an errno, or 0.
  int rename() {
    // Another owner's file stays theirs where that is allowed; the mode last, as a change of owner may drop bits.
    if (before && (before->st_uid != ::geteuid() || before->st_gid != ::getegid()) &&
        ::fchown(file->number(), before->st_uid, before->st_gid) != 0 && errno != EPERM)
      return errno;
    if (before && ::fchmod(file->number(), before->st_mode & 07777) != 0) return errno;
    const Descriptor lock(::dup(file->number()));  // holds the lock until the file has its name
    if (const int closed = file->close(); closed != 0) return closed;
    return ::rename(beside.c_str(), target.c_str()) != 0 ? errno : 0;
  }
};

FileWriter::FileWriter(const std::string& path) {
  if (path.empty()) throw UserError("a file to write needs a name");
  state_ = std::make_unique<State>(path);
  state_->open();
}

FileWriter::~FileWriter() {
  if (state_->beside.empty()) return;
  ::unlink(state_->beside.c_str());
  forget_unfinished(state_->beside);
}

void FileWriter::add(std::string_view text) {
  state_->bytes += text.size();
  if (const int error = state_->pieces.add(state_->file->number(), text); error != 0) fail(state_->path, error);
}

std::uint64_t FileWriter::finish() {
  int error = state_->pieces.end(state_->file->number());
  if (error == 0) error = state_->beside.empty() ? state_->copy() : state_->rename();
  if (error != 0) fail(state_->path, error);
  if (!state_->beside.empty()) forget_unfinished(state_->beside);
  state_->beside.clear();
  return state_->bytes;
}

void remove_own_unfinished() noexcept {
  for (const std::atomic<const char*>& place : own_unfinished)
    if (const char* name = place.load()) ::unlink(name);
}

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
  FileWriter file(path);
  file.add(text);
  file.finish();
}

}  // namespace ridgeline
