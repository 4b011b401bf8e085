// Adafactor in a loop over the tensors: everything it allocates, runs and waits for.
#include <gtest/gtest.h>

#include "tests/support/optimizer_session.h"

namespace ridgeline {
namespace {

using testing_support::OptimizerSession;

std::unique_ptr<optimizers::Optimizer> adafactor() {
  TrainingDescription t;
  t.optimizer = {OptimizerKind::adafactor, OptimizerImplementation::for_loop};
  return optimizers::make_optimizer(t);
}

// torch/optim/_adafactor.py: a matrix has a state of a number a row and one of a number a column, whose product over
// the mean of the first is the variance; a vector has a state of its own size. Norms of the value and of the update
// are read by the host.
TEST(Adafactor, FactorsMatricesAndNotVectors) {
  OptimizerSession session;
  const auto optimizer = adafactor();
  EXPECT_EQ("\n" + session.step_of(*optimizer), R"(
new 1: 12 optimizer_state
fill 3x1 fp32: -> 1 12
new 2: 20 optimizer_state
fill 1x5 fp32: -> 2 20
new 3: 28 optimizer_state
fill 1x7 fp32: -> 3 28
host optimizer_op 16
new 4: 4 temporaries
linalg_vector_norm 1x15 fp32: w 60 -> 4 4
copy_to_host 1x1 fp32: 4 4
the host waits for the GPU
free 4
new 5: 12 temporaries
sum 3x5 fp32: dw 60 -> 5 12
pow 3x1 fp32: 5 12 -> 5 12
div 3x1 fp32: 5 12 -> 5 12
pointwise 3x1 fp32,fp32->fp32: 1 12, 5 12 -> 1 12
new 6: 20 temporaries
sum 3x5 fp32: dw 60 -> 6 20
pow 1x5 fp32: 6 20 -> 6 20
div 1x5 fp32: 6 20 -> 6 20
pointwise 1x5 fp32,fp32->fp32: 2 20, 6 20 -> 2 20
new 7: 60 temporaries
mm 3x5x1 nn fp32: 1 12, 2 20 -> 7 60
new 8: 4 temporaries
mean 1x3 fp32: 1 12 -> 8 4
clamp 1x1 fp32: 8 4 -> 8 4
div 15x1 fp32,fp32->fp32 by row: 7 60, 8 4 -> 7 60
free 8
clamp 3x5 fp32: 7 60 -> 7 60
sqrt 3x5 fp32: 7 60 -> 7 60
mul 3x5 fp32,fp32->fp32: 7 60, dw 60 -> 7 60
new 9: 4 temporaries
linalg_vector_norm 1x15 fp32: 7 60 -> 9 4
copy_to_host 1x1 fp32: 9 4
the host waits for the GPU
free 9
add_ 3x5 fp32,fp32->fp32: w 60, 7 60 -> w 60
host optimizer_op 16
new 10: 4 temporaries
linalg_vector_norm 1x7 fp32: b 28 -> 10 4
copy_to_host 1x1 fp32: 10 4
the host waits for the GPU
free 10
new 11: 28 temporaries
mul 1x7 fp32,fp32->fp32: db 28, db 28 -> 11 28
pointwise 1x7 fp32,fp32->fp32: 3 28, 11 28 -> 3 28
new 12: 28 temporaries
copy 1x7 fp32: 3 28 -> 12 28
clamp 1x7 fp32: 12 28 -> 12 28
sqrt 1x7 fp32: 12 28 -> 12 28
free 7
mul 1x7 fp32,fp32->fp32: 12 28, db 28 -> 12 28
new 13: 4 temporaries
linalg_vector_norm 1x7 fp32: 12 28 -> 13 4
copy_to_host 1x1 fp32: 13 4
the host waits for the GPU
free 13
add_ 1x7 fp32,fp32->fp32: b 28, 12 28 -> b 28
free 5
free 6
free 11
free 12
)");
  session.name_states();
  const std::string second = session.step_of(*optimizer);  // the same, but for the states, which are there
  EXPECT_EQ(second.substr(0, second.find('\n')), "host optimizer_op 16");
  EXPECT_EQ(second.find("optimizer_state"), second.npos);
}

// The last two dimensions are matrices: 2 experts of 3 x 5.
TEST(Adafactor, TakesSeveralMatricesAtOnce) {
  OptimizerSession session(DType::bf16, {{2, 3, 5}});
  const auto optimizer = adafactor();
  EXPECT_EQ("\n" + session.step_of(*optimizer), R"(
new 1: 12 optimizer_state
fill 6x1 bf16: -> 1 12
new 2: 20 optimizer_state
fill 2x5 bf16: -> 2 20
host optimizer_op 16
new 3: 2 temporaries
linalg_vector_norm 1x30 bf16: w 60 -> 3 2
copy_to_host 1x1 bf16: 3 2
the host waits for the GPU
free 3
new 4: 12 temporaries
sum 6x5 bf16: dw 60 -> 4 12
pow 6x1 bf16: 4 12 -> 4 12
div 6x1 bf16: 4 12 -> 4 12
pointwise 6x1 bf16,bf16->bf16: 1 12, 4 12 -> 1 12
new 5: 20 temporaries
sum 3x10 bf16: dw 60 -> 5 20
pow 2x5 bf16: 5 20 -> 5 20
div 2x5 bf16: 5 20 -> 5 20
pointwise 2x5 bf16,bf16->bf16: 2 20, 5 20 -> 2 20
new 6: 60 temporaries
bmm 2x 3x5x1 nn bf16: 1 12, 2 20 -> 6 60
new 7: 4 temporaries
mean 2x3 bf16: 1 12 -> 7 4
clamp 2x1 bf16: 7 4 -> 7 4
div 6x5 bf16,bf16->bf16 broadcast: 6 60, 7 4 -> 6 60
free 7
clamp 6x5 bf16: 6 60 -> 6 60
sqrt 6x5 bf16: 6 60 -> 6 60
mul 6x5 bf16,bf16->bf16: 6 60, dw 60 -> 6 60
new 8: 2 temporaries
linalg_vector_norm 1x30 bf16: 6 60 -> 8 2
copy_to_host 1x1 bf16: 8 2
the host waits for the GPU
free 8
add_ 6x5 bf16,bf16->bf16: w 60, 6 60 -> w 60
free 4
free 5
free 6
)");
}

// 2 x 3 pairs of channels, kernels of 5 x 7.
TEST(Adafactor, SeesAConvolutionAsManyMatrices) {
  OptimizerSession session(DType::fp32, {{2, 3, 5, 7}});
  const auto optimizer = adafactor();
  EXPECT_EQ("\n" + session.step_of(*optimizer), R"(
new 1: 120 optimizer_state
fill 30x1 fp32: -> 1 120
new 2: 168 optimizer_state
fill 6x7 fp32: -> 2 168
host optimizer_op 16
new 3: 4 temporaries
linalg_vector_norm 1x210 fp32: w 840 -> 3 4
copy_to_host 1x1 fp32: 3 4
the host waits for the GPU
free 3
new 4: 120 temporaries
sum 30x7 fp32: dw 840 -> 4 120
pow 30x1 fp32: 4 120 -> 4 120
div 30x1 fp32: 4 120 -> 4 120
pointwise 30x1 fp32,fp32->fp32: 1 120, 4 120 -> 1 120
new 5: 168 temporaries
sum 5x42 fp32: dw 840 -> 5 168
pow 6x7 fp32: 5 168 -> 5 168
div 6x7 fp32: 5 168 -> 5 168
pointwise 6x7 fp32,fp32->fp32: 2 168, 5 168 -> 2 168
new 6: 840 temporaries
bmm 6x 5x7x1 nn fp32: 1 120, 2 168 -> 6 840
new 7: 24 temporaries
mean 6x5 fp32: 1 120 -> 7 24
clamp 6x1 fp32: 7 24 -> 7 24
div 30x7 fp32,fp32->fp32 broadcast: 6 840, 7 24 -> 6 840
free 7
clamp 30x7 fp32: 6 840 -> 6 840
sqrt 30x7 fp32: 6 840 -> 6 840
mul 30x7 fp32,fp32->fp32: 6 840, dw 840 -> 6 840
new 8: 4 temporaries
linalg_vector_norm 1x210 fp32: 6 840 -> 8 4
copy_to_host 1x1 fp32: 8 4
the host waits for the GPU
free 8
add_ 30x7 fp32,fp32->fp32: w 840, 6 840 -> w 840
free 4
free 5
free 6
)");
}

}  // namespace
}  // namespace ridgeline
