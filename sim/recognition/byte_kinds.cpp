// Kinds of files that their first bytes tell.
#include <algorithm>
#include <array>
#include <filesystem>

#include "sim/recognition/recognise.h"
#include "sim/units/utf8.h"

namespace ridgeline::recognition {
namespace {

using namespace std::string_view_literals;

struct Mark {
  std::string_view bytes, kind;
  std::size_t at = 0;
};

// Longer marks in front of shorter ones that they begin with.
constexpr std::array kMarks{
    Mark{"\x7f"
         "ELF"sv,
         "executable"},
    Mark{"MZ"sv, "executable"},
    Mark{"\xcf\xfa\xed\xfe"sv, "executable"},
    Mark{"\xca\xfe\xba\xbe"sv, "executable"},
    Mark{"\xfd"
         "7zXZ\0"sv,
         "xz"},
    Mark{"\x28\xb5\x2f\xfd"sv, "zstd"},
    Mark{"BZh"sv, "bzip2"},
    Mark{"\x04\x22\x4d\x18"sv, "lz4"},
    Mark{"7z\xbc\xaf\x27\x1c"sv, "7z"},
    Mark{"Rar!\x1a\x07"sv, "rar"},
    Mark{"GGUF"sv, "gguf"},
    Mark{"\x89HDF\r\n\x1a\n"sv, "hdf5"},
    Mark{"\x93NUMPY"sv, "arrays"},
    Mark{"PAR1"sv, "parquet"},
    Mark{"ARROW1"sv, "parquet"},
    Mark{"%PDF"sv, "pdf"},
    Mark{"\x89PNG\r\n\x1a\n"sv, "image"},
    Mark{"\xff\xd8\xff"sv, "image"},
    Mark{"GIF8"sv, "image"},
    Mark{"BM"sv, "image"},
    Mark{"II*\0"sv, "image"},
    Mark{"MM\0*"sv, "image"},
    Mark{"WEBP"sv, "image", 8},
    Mark{"WAVE"sv, "sound", 8},
    Mark{"ftyp"sv, "sound", 4},
    Mark{"ID3"sv, "sound"},
    Mark{"OggS"sv, "sound"},
    Mark{"fLaC"sv, "sound"},
    Mark{"\x1a\x45\xdf\xa3"sv, "sound"},
    Mark{"NVR\0"sv, "ncu-report"},
    Mark{"ustar"sv, "tar", 257},
    Mark{"\x0a\x0e\x0a\x05<unk>"sv, "tokenizer"},
    Mark{"\xff\xfe"sv, "utf-16"},
    Mark{"\xfe\xff"sv, "utf-16"},
};

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool holds_segments(std::string_view bytes) {
  return has(bytes, "segments") && (has(bytes, "total_size") || has(bytes, "device_traces"));
}

/// By the names of the files in it.
std::string_view kind_of_zip(const Sample& sample) {
  const auto names = [&](std::string_view part) { return has(sample.head, part) || has(sample.tail, part); };
  if (names("data.pkl")) return holds_segments(sample.head) ? "snapshot" : "checkpoint";
  if (names(".npy")) return "arrays";
  return "zip";
}

/// Text of protocols 0 and 1 begins with a mark or an empty container and the number that it is remembered by.
bool begins_as_old_pickle(std::string_view head) {
  for (const std::string_view begin :
       {"(dp"sv, "(lp"sv, "}q"sv, "]q"sv, "(d\n"sv, "(l\n"sv, "(ip"sv, "ccopy_reg"sv, "(S'"sv, "(V"sv})
    if (head.starts_with(begin)) return true;
  return false;
}

std::string_view kind_of_pickle(std::string_view head) {
  constexpr std::string_view kTorchMagic =
      "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv;  // torch.save before 1.6
  if (has(head.substr(0, 64), kTorchMagic)) return "checkpoint";
  if (holds_segments(head)) return "snapshot";
  return has(head, "torch._utils") || has(head, "torch\n") ? "checkpoint" : "pickle";
}

/// Length of the header, then the header, a JSON object.
bool is_safetensors(std::string_view head) {
  return head.size() > 10 && head[8] == '{' && (head[9] == '"' || head[9] == '}' || head[9] == ' ') &&
         head[6] == '\0' && head[7] == '\0';
}

/// Every second byte is nothing: text of ASCII letters in UTF-16 without a mark.
bool is_unmarked_utf_16(std::string_view head) {
  const std::string_view part = head.substr(0, 512);
  if (part.size() < 8) return false;
  std::array<std::size_t, 2> zeros{};
  for (std::size_t i = 0; i < part.size(); ++i)
    if (part[i] == '\0') ++zeros.at(i % 2);
  const std::size_t most = std::max(zeros[0], zeros[1]), least = std::min(zeros[0], zeros[1]);
  return most * 10 > part.size() / 2 * 9 && least == 0;
}

std::string_view kind_by_ending(const Sample& sample) {
  const std::string name = std::filesystem::path(sample.path).filename().string();
  if (sample.ending == ".nsys-rep" || sample.ending == ".qdrep" || sample.ending == ".qdstrm") return "nsys-report";
  if (sample.ending == ".ncu-rep" || sample.ending == ".nsight-cuprof-report") return "ncu-report";
  if (sample.ending == ".onnx") return "onnx";
  if (sample.ending == ".nvvp" || sample.ending == ".nvprof") return "nvprof";
  if (has(name, "tfevents")) return "tensorboard";
  if (sample.ending == ".msgpack" || sample.ending == ".h5") return "hdf5";
  return "";
}

std::string_view kind_of_sqlite(const Sample& sample) {
  if (has(sample.head, "CUPTI_ACTIVITY_KIND") || has(sample.head, "NVTX_EVENTS") || has(sample.head, "TARGET_INFO_GPU"))
    return "nsys-sqlite";
  if (has(sample.head, "CREATE TABLE point (point INTEGER")) return "points";
  return sample.ending == ".nvvp" || sample.ending == ".nvprof" ? "nvprof" : "sqlite";
}

}  // namespace

std::string_view kind_by_bytes(const Sample& sample) {
  const std::string_view head = sample.head;
  if (head.find_first_not_of(" \t\r\n") == std::string_view::npos) return "empty";
  if (head.starts_with("SQLite format 3")) return kind_of_sqlite(sample);
  if (const std::string_view kind = kind_by_ending(sample); !kind.empty()) return kind;
  if (head.starts_with("PK\x03\x04") || head.starts_with("PK\x05\x06")) return kind_of_zip(sample);
  if (is_safetensors(head)) return "safetensors";
  if (head.size() > 1 && head[0] == '\x80' && head[1] <= 5) return kind_of_pickle(head);
  if (begins_as_old_pickle(head)) return kind_of_pickle(head);
  for (const Mark& mark : kMarks)
    if (head.size() > mark.at && head.substr(mark.at).starts_with(mark.bytes)) {
      const bool short_mark = mark.bytes.size() == 2 && mark.kind != "utf-16";
      if (!short_mark || has(head, "\0"sv)) return mark.kind;  // two letters begin texts, too
    }
  if (is_unmarked_utf_16(head)) return "utf-16";
  if (has(head, "\0"sv)) return "binary";
  return "";
}

}  // namespace ridgeline::recognition
