#include "sim/allocator/memory_texts.h"

#include <gtest/gtest.h>

#include <string>

namespace ridgeline {
namespace {

constexpr double kTextMebi = 1 << 20, kTextGibi = 1 << 30;

std::int64_t text_mib(double value) { return static_cast<std::int64_t>(value * kTextMebi + 0.5); }
std::int64_t text_gib(double value) { return static_cast<std::int64_t>(value * kTextGibi + 0.5); }

OutOfMemoryText only_error(const std::string& text) {
  const std::vector<OutOfMemoryText> all = out_of_memory_texts(text);
  EXPECT_EQ(all.size(), 1u) << text;
  return all.empty() ? OutOfMemoryText{} : all.front();
}

// PyTorch 1.0 to 1.3, 1.4 to 1.9, 1.10 to 2.0: figures in brackets.
TEST(OutOfMemoryTexts, OfPyTorch1HaveTheirFiguresInBrackets) {
  for (const char* held :
       {"102.40 MiB cached)", "9.84 GiB reserved in total by PyTorch)",
        "9.84 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting "
        "max_split_size_mb to avoid fragmentation."}) {
    const OutOfMemoryText one = only_error(
        "Traceback\n  File \"a.py\"\nRuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 10.76 GiB "
        "total "
        "capacity; 9.74 GiB already allocated; 2.38 MiB free; " +
        std::string(held));
    EXPECT_EQ(one.line, 3u);
    EXPECT_EQ(one.backend, "CUDA");
    EXPECT_EQ(one.gpu, 1);
    EXPECT_EQ(one.requested, text_mib(20));
    EXPECT_EQ(one.capacity, text_gib(10.76));
    EXPECT_EQ(one.allocated, text_gib(9.74));
    EXPECT_EQ(one.free, text_mib(2.38));
    EXPECT_NEAR(static_cast<double>(one.reserved().value_or(0)), 9.84 * kTextGibi, kTextMebi);
  }
  const OutOfMemoryText limited = only_error(
      "CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 8.00 GiB total capacity; 3.00 GiB already allocated; "
      "4.00 "
      "GiB free; 3.50 GiB allowed; 3.20 GiB reserved in total by PyTorch)");
  EXPECT_EQ(limited.allowed, text_gib(3.5));
  EXPECT_EQ(limited.free, text_gib(4));
}

// PyTorch 2.1 on: sentences, with other processes, graphs' pools and a limit where there are.
TEST(OutOfMemoryTexts, OfPyTorch2AreSentences) {
  for (const char* word : {"capacity", "capacty"}) {
    const OutOfMemoryText one = only_error(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.50 GiB. GPU 3 has a total " +
        std::string(word) +
        " of 23.69 GiB of which 3.19 GiB is free. Process 2006998 has 256.00 MiB memory in use. Including non-PyTorch "
        "memory, this process has 20.23 GiB memory in use. 22.00 GiB allowed; Of the allocated memory 19.90 GiB is "
        "allocated by PyTorch, with 1.50 GiB allocated in private pools (e.g., CUDA Graphs), and 32.75 MiB is reserved "
        "by "
        "PyTorch but unallocated. If reserved but unallocated memory is large try setting expandable_segments:True");
    EXPECT_EQ(one.gpu, 3);
    EXPECT_EQ(one.requested, text_gib(4.5));
    EXPECT_EQ(one.capacity, text_gib(23.69));
    EXPECT_EQ(one.free, text_gib(3.19));
    EXPECT_EQ(one.other_processes, text_mib(256));
    EXPECT_EQ(one.in_use, text_gib(20.23));
    EXPECT_EQ(one.allowed, text_gib(22));
    EXPECT_EQ(one.allocated, text_gib(19.9));
    EXPECT_EQ(one.unallocated, text_mib(32.75));
    EXPECT_EQ(one.private_pools, text_gib(1.5));
  }
}

TEST(OutOfMemoryTexts, AreFoundHoweverTheyWereCopied) {
  const std::string sentence =
      "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 31.36 GiB of which 18.12 MiB is "
      "free. Of the allocated memory 27.89 GiB is allocated by PyTorch, and 2.84 GiB is reserved by PyTorch but "
      "unallocated.";
  std::string wrapped = sentence, continued = sentence, coloured = "\x1b[31m" + sentence + "\x1b[0m";
  for (std::size_t at = 30; at < wrapped.size(); ++at)
    if (wrapped[at] == ' ') wrapped[at] = '\n';
  for (std::size_t at = continued.find(' ', 40); at != std::string::npos; at = continued.find(' ', at + 60))
    continued.insert(at + 1, "\\\n");
  for (const std::string& text : {sentence, wrapped, continued, coloured}) {
    const OutOfMemoryText one = only_error("step 7\n" + text + "\nstep 8\n");
    EXPECT_EQ(one.requested, text_mib(20)) << text;
    EXPECT_EQ(one.free, text_mib(18.12)) << text;
    EXPECT_EQ(one.unallocated, text_gib(2.84)) << text;
  }
}

TEST(OutOfMemoryTexts, OfSeveralGpusAreToldApartAndRepeatedOnesAreCountedOnce) {
  const auto of = [](int gpu) {
    return "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU " + std::to_string(gpu) +
           "; 8.00 GiB total capacity; 6.00 GiB already allocated; 1.00 GiB free; 6.50 GiB reserved in total by "
           "PyTorch)\n";
  };
  EXPECT_EQ(out_of_memory_texts(of(0) + of(1) + of(0)).size(), 2u);
  EXPECT_TRUE(out_of_memory_texts("CUDA out of memory, says somebody").empty());
  EXPECT_TRUE(out_of_memory_texts("").empty());
}

TEST(OutOfMemoryTexts, OfOtherBackendsAreRead) {
  const OutOfMemoryText apple = only_error(
      "RuntimeError: MPS backend out of memory (MPS allocated: 8.00 GB, other allocations: 512.00 MB, max allowed: "
      "9.07 "
      "GB). Tried to allocate 1.00 GB on private pool.");
  EXPECT_EQ(apple.backend, "MPS");
  EXPECT_EQ(apple.requested, text_gib(1));
  EXPECT_EQ(apple.allocated, text_gib(8));
  EXPECT_EQ(apple.capacity, text_gib(9.07));
  EXPECT_EQ(only_error(
                "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 256 bytes. GPU 0 has a total capacity of "
                "63.98 GiB of which 0 bytes is free.")
                .backend,
            "HIP");
}

// A part of a text may be missing anywhere: what is there is still read.
TEST(OutOfMemoryTexts, ThatAreCutOffAreReadAsFarAsTheyGo) {
  const std::string whole =
      "CUDA out of memory. Tried to allocate 22.00 MiB. GPU 0 has a total capacity of 23.65 GiB of which 11.06 MiB is "
      "free.";
  for (std::size_t length = 0; length <= whole.size(); ++length)
    for (const OutOfMemoryText& one : out_of_memory_texts(whole.substr(0, length)))
      EXPECT_LE(one.requested, text_mib(22));
}

TEST(MemorySummaries, HaveTheirRows) {
  const std::vector<AllocatorTotals> all = memory_summaries(
      "|                  PyTorch CUDA memory summary, device ID 2                 |\n"
      "|            CUDA OOMs: 1            |        cudaMalloc retries: 3         |\n"
      "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n"
      "| Allocated memory      | 682537 KiB |  65430 MiB |   3115 GiB |   3114 GiB |\n"
      "|       from large pool | 600000 KiB |  65000 MiB |   3115 GiB |   3114 GiB |\n"
      "| GPU reserved memory   |  66984 MiB |  66984 MiB |  67132 MiB | 151552 KiB |\n"
      "| Non-releasable memory |   1024 B   |  66984 MiB |  67132 MiB | 151552 KiB |\n");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].device, 2);
  EXPECT_EQ(all[0].out_of_memory, 1);
  EXPECT_EQ(all[0].retries, 3);
  EXPECT_EQ(all[0].allocated, 682537 * 1024LL);
  EXPECT_EQ(all[0].peak_allocated, text_mib(65430));
  EXPECT_EQ(all[0].peak_reserved, text_mib(66984));
  EXPECT_EQ(all[0].inactive_split, 1024);
}

TEST(MemoryStats, AreReadAsJsonAndAsPythonPrintsThem) {
  for (
      const char* text :
      {R"({"allocated_bytes.all.current": 10, "allocated_bytes.all.peak": 20, "reserved_bytes.all.peak": 30, "num_ooms": 1})",
       "OrderedDict([('allocated_bytes.all.current', 10), ('allocated_bytes.all.peak', 20), ('num_ooms', 1), "
       "('reserved_bytes.all.peak', 30)])",
       "{'allocated_bytes.all.current': 10,\n 'allocated_bytes.all.peak': 20,\n 'num_ooms': 1,\n "
       "'reserved_bytes.all.peak': "
       "30}",
       R"({"num_ooms": 1, "allocated_bytes": {"all": {"current": 10, "peak": 20}}, "reserved_bytes": {"all": {"peak": 30}}})"}) {
    const std::optional<AllocatorTotals> totals = memory_stats(text);
    ASSERT_TRUE(totals) << text;
    EXPECT_EQ(totals->allocated, 10) << text;
    EXPECT_EQ(totals->peak_allocated, 20) << text;
    EXPECT_EQ(totals->peak_reserved, 30) << text;
    EXPECT_EQ(totals->out_of_memory, 1) << text;
  }
  EXPECT_FALSE(memory_stats("{}"));
}

}  // namespace
}  // namespace ridgeline
