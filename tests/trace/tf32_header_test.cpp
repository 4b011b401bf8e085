// The TF32 switches that the header of an op trace holds, and what a file without them means.
#include <gtest/gtest.h>

#include <fstream>

#include "sim/trace/read_recording.h"
#include "tests/support/temporary_path.h"

namespace ridgeline::tf32_header_test {
namespace {

struct Types {
  DType matmul, convolution;
  bool operator==(const Types&) const = default;
};

/// Types in which a recorded fp32 matmul and an fp32 convolution multiply.
Types types_with(const std::string& header) {
  const std::string path = temporary_path("switches.jsonl");
  std::ofstream(path)
      << R"({"ridgeline":"op-trace","version":1,"parameters":0)" << header << "}\n"
      << "{\"record\":\"step\"}\n"
      << R"({"record":"aten","name":"aten::mm","phase":"forward","in":[{"type":"fp32","sizes":[8,8]},)"
      << R"({"type":"fp32","sizes":[8,8]}],"out":[{"type":"fp32","sizes":[8,8]}]})"
      << "\n"
      << R"({"record":"aten","name":"aten::convolution","phase":"forward","in":[{"type":"fp32",)"
      << R"("sizes":[2,16,8,8]},{"type":"fp32","sizes":[16,16,3,3]},null,[1,1],[1,1],[1,1],false,[0,0],1],)"
      << R"("out":[{"type":"fp32","sizes":[2,16,8,8]}]})"
      << "\n{\"record\":\"end\"}\n";
  const trace::Replayable recorded = trace::read_recording(path, {});
  Types types{};
  for (const Op& op : recorded.recording.trace.ops) {
    if (const auto* matmul = std::get_if<Matmul>(&op)) types.matmul = matmul->type;
    if (const auto* convolution = std::get_if<Convolution>(&op)) types.convolution = convolution->type;
  }
  return types;
}

TEST(Tf32Header, each_switch_reaches_its_own_operations) {
  EXPECT_EQ(types_with(R"(,"matmul_tf32":true,"cudnn_tf32":false)"), (Types{DType::tf32, DType::fp32}));
  EXPECT_EQ(types_with(R"(,"matmul_tf32":false,"cudnn_tf32":true)"), (Types{DType::fp32, DType::tf32}));
  EXPECT_EQ(types_with(R"(,"precision":"tf32","matmul_tf32":false)"), (Types{DType::fp32, DType::tf32}));
}

TEST(Tf32Header, a_file_without_them_means_pytorchs_defaults) {
  EXPECT_EQ(types_with(""), (Types{DType::fp32, DType::tf32}));
  EXPECT_EQ(types_with(R"(,"precision":"fp32")"), (Types{DType::fp32, DType::tf32}));
  EXPECT_EQ(types_with(R"(,"precision":"tf32")"), (Types{DType::tf32, DType::tf32}));
}

}  // namespace
}  // namespace ridgeline::tf32_header_test
