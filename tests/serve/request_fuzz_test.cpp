// Fixed random changes of requests, read already and as bytes, through the fuzz targets.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "sim/config/data_folder.h"
#include "sim/units/readable_files.h"
#include "tests/serve/fuzz_bytes.h"
#include "tests/serve/request_fuzz.h"

namespace ridgeline {
namespace {

std::string changed(std::string input, const std::string& other, std::mt19937_64& random) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random() % n); };
  for (std::size_t left = 1 + below(4); left > 0 && !input.empty(); --left) {
    const std::size_t at = below(input.size()), length = 1 + below(std::min<std::size_t>(32, input.size() - at));
    switch (random() % 6) {
      case 0: input[at] = static_cast<char>(random()); break;
      case 1: input[at] = static_cast<char>(input[at] ^ (1 << below(8))); break;
      case 2: input.insert(at, input.substr(at, length)); break;
      case 3: input.erase(at, length); break;
      case 4: input.insert(at, other.substr(below(other.size()), length)); break;
      default: input.resize(at); break;
    }
  }
  return input;
}

TEST(RequestFuzz, changed_requests_break_no_promise) {
  const std::vector<std::string> corpus{
      "GET /api/schema/scenario localhost:8137\n",
      "GET /api/hardware/nvidia-t4?set=dram.bandwidth%3D640+GB%2Fs&datasheet=1 127.0.0.1:8137 http://127.0.0.1:8137\n",
      "GET /api/models/gpt2?token=0123 [::1]:8137\n",
      "GET /api/memory?file=/etc/passwd&settings=expandable_segments:True&capacity=24%20GiB localhost\n",
      "POST /api/kernels?hardware=nvidia-t4&engine=roofline localhost\n"
      "{\"op\":\"mm\",\"dtype\":\"fp32\",\"params\":{\"m\":64,\"n\":64,\"k\":64,\"layout\":\"nt\"}}\n",
      "POST /api/compare localhost\n{\"sides\": [{\"scenario\": {\"hardware\": \"nvidia-t4\"}, \"set\": [\"a=b\"]}, "
      "{\"label\": \"x\"}]}",
      "POST /api/sweep localhost\n{\"scenario\": {\"hardware\": \"nvidia-t4\"}, \"axes\": {\"training.micro_batch\": "
      "[1, 2]}}",
      "DELETE / localhost.evil.example null\n"};
  const std::vector<std::string> quick{"GET /lab.css?set=hardware.dram.bandwidth%3D640+GB%2Fs&a=%25&b localhost:8137\n",
                                       "HEAD /%2e%2e/lab.js?token=%41&=&x=+ [::1]:8137 http://[::1]:8137\n"};
  read_only_below({config::data_folder("hw").parent_path()});
  std::mt19937_64 random(20260101);
  const auto run = [](const std::string& input) {
    return fuzz_request(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  };
  for (const std::string& input : corpus) EXPECT_EQ(run(input), "") << input;
  for (int i = 0; i < 5000; ++i) {
    const std::vector<std::string>& from = i < 250 ? corpus : quick;
    const std::string input = changed(from[random() % from.size()], from[random() % from.size()], random);
    ASSERT_EQ(run(input), "") << i << ": " << input;
  }
  read_only_below({});
}

TEST(RequestFuzz, changed_bytes_break_no_promise) {
  std::vector<std::string> paths, corpus;
  for (const auto& entry : std::filesystem::directory_iterator(RIDGELINE_SOURCE_DIR "/tests/fuzz/corpus/requests"))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  ASSERT_GE(corpus.size(), 8u);
  std::mt19937_64 random(20261126);
  const auto run = [](const std::string& input) {
    return fuzz_bytes(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  };
  for (const std::string& input : corpus) EXPECT_EQ(run(input), "") << input;
  for (int i = 0; i < 20000; ++i) {
    const std::string input = changed(corpus[random() % corpus.size()], corpus[random() % corpus.size()], random);
    ASSERT_EQ(run(input), "") << i << ": " << input;
  }
}

}  // namespace
}  // namespace ridgeline
