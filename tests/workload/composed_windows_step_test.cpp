// Windows of an image in stages, and distances of patches.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::changes_by_keys;
using testing_support::odd_composition;

constexpr char kComposedWindowsStepListing1[] = R"(
[forward embeddings]
convolution +1152t conv2d 3x5x8x8 to 12, 2x2 bf16 (1920 480 > 1152)
    add_ 144x4 bf16,bf16->bf16 broadcast (1152 24 > 1152)
view
[forward layers.0]
transpose +1152 copy 48x12 bf16 transposed (1152 > 1152)
layer_norm_module +1152t +192 +192 native_layer_norm 48x12 bf16 (1152 24 24 > 1152 192 192)
view
contiguous +1152t copy 1x576 bf16 (1152 > 1152)
view; transpose
contiguous +1152 copy 24x24 bf16 permuted (1152 > 1152) -1152
view
[forward layers.0.attention]
linear +1152 addmm 48x12x12 nt bf16 (1152 288 24 > 1152)
view; transpose
linear +1152 addmm 48x12x12 nt bf16 (1152 288 24 > 1152)
view; transpose
linear +1152 addmm 48x12x12 nt bf16 (1152 288 24 > 1152)
view; transpose
pointwise x2 +128 arange 1x16 int64 (> 128) +64t index 16x2 bf16,int64->bf16 broadcast (36 128 > 64)
view
contiguous +64t copy 8x4 bf16 transposed (64 > 64) -64 +128 fill 8x8 bf16 (> 128) copy 8x4 bf16 permuted (64 > 128)
attention_fused +1152 +3072 efficient_attention 12x2x4x6 masked bf16 (1152 1152 1152 128 > 1152 3072)
transpose; view; view
linear +1152t addmm 48x12x12 nt bf16 (1152 288 24 > 1152) -64
view; transpose
[forward layers.0]
contiguous +1152t copy 24x24 bf16 permuted (1152 > 1152) -1152
view
view -1152
dropout_off
pointwise +1152t add 48x12 bf16,bf16->bf16 strided (1152 1152 > 1152) -1152 +1152
    copy 48x12 bf16 transposed (1152 > 1152)
layer_norm_module +1152 +192 +192 native_layer_norm 48x12 bf16 (1152 24 24 > 1152 192 192)
[forward layers.0.feed_forward]
linear +1920 addmm 48x20x12 nt bf16 (1152 480 40 > 1920)
pointwise +1920 gelu 48x20 bf16 (1920 > 1920)
linear +1152t addmm 48x12x20 nt bf16 (1920 480 24 > 1152)
dropout_off
[forward layers.0]
pointwise +1152t add 48x12 bf16,bf16->bf16 strided (1152 1152 > 1152) -1152 -1152 +1152
    copy 48x12 bf16 transposed (1152 > 1152)
[forward layers.1]
layer_norm_module +1152t +192 +192 native_layer_norm 48x12 bf16 (1152 24 24 > 1152 192 192)
view
contiguous +1152t copy 1x576 bf16 (1152 > 1152)
pointwise x2 +1152t roll 48x12 bf16 (1152 > 1152) +1152t roll 48x12 bf16 (1152 > 1152) -1152 -1152
view; transpose
contiguous +1152 copy 24x24 bf16 permuted (1152 > 1152) -1152
view
[forward layers.1.attention]
pointwise x24 +32t arange 1x4 int64 (> 32) +4t eq 1x4 int64->bool (32 > 4) +32t cast 1x4 bool->int64 (4 > 32) -4 +4t
    eq 1x4 int64->bool (32 > 4) +32t cast 1x4 bool->int64 (4 > 32) +32t add 1x4 int64,int64->int64 (32 32 > 32) -32
    -32 -4 +4t eq 1x4 int64->bool (32 > 4) +32t cast 1x4 bool->int64 (4 > 32) -4 +4t eq 1x4 int64->bool (32 > 4) +32t
    cast 1x4 bool->int64 (4 > 32) +32t add 1x4 int64,int64->int64 (32 32 > 32) -32 -32 -4 -32 +32t
    cast 16x1 int64->bf16 broadcast (32 > 32) +32t copy 16x1 bf16 permuted (32 > 32) +128t
    add 16x4 bf16 broadcast (32 > 128) +64t eq 16x4 bf16->bool (128 > 64) +128t
    masked_fill 16x4 bf16,bool->bf16 (128 64 > 128) -128 -64 +64t eq 16x4 bf16->bool (128 > 64) +128t
    masked_fill 16x4 bf16,bool->bf16 (128 64 > 128) -128 -64 +384t copy 12x16 bf16 permuted (128 > 384) -128 -32 -32
    -32 -32
linear +1152 addmm 48x12x12 nt bf16 (1152 288 24 > 1152)
view; transpose
linear +1152 addmm 48x12x12 nt bf16 (1152 288 24 > 1152)
view; transpose
linear +1152 addmm 48x12x12 nt bf16 (1152 288 24 > 1152)
view; transpose
pointwise x2 +128 arange 1x16 int64 (> 128) +64t index 16x2 bf16,int64->bf16 broadcast (36 128 > 64)
view
contiguous +64t copy 8x4 bf16 transposed (64 > 64) -64
pointwise +768t add 12x32 bf16,bf16->bf16 broadcast (64 384 > 768) -64 +1536 fill 96x8 bf16 (> 1536)
    copy 96x4 bf16 permuted (768 > 1536)
attention_fused +1152 +3072 efficient_attention 12x2x4x6 masked bf16 (1152 1152 1152 768 > 1152 3072)
transpose; view; view
linear +1152t addmm 48x12x12 nt bf16 (1152 288 24 > 1152) -384 -768
view; transpose
[forward layers.1]
contiguous +1152t copy 24x24 bf16 permuted (1152 > 1152) -1152
view
pointwise x2 +1152t roll 48x12 bf16 (1152 > 1152) +1152t roll 48x12 bf16 (1152 > 1152) -1152 -1152
view -1152
dropout_off
pointwise +1152t add 48x12 bf16,bf16->bf16 strided (1152 1152 > 1152) -1152 +1152
    copy 48x12 bf16 transposed (1152 > 1152)
layer_norm_module +1152 +192 +192 native_layer_norm 48x12 bf16 (1152 24 24 > 1152 192 192)
[forward layers.1.feed_forward]
linear +1920 addmm 48x20x12 nt bf16 (1152 480 40 > 1920)
pointwise +1920 gelu 48x20 bf16 (1920 > 1920)
linear +1152t addmm 48x12x20 nt bf16 (1920 480 24 > 1152)
dropout_off
[forward layers.1]
pointwise +1152t add 48x12 bf16,bf16->bf16 strided (1152 1152 > 1152) -1152 -1152 -1152 -1152
view x8
[forward merging]
concatenate +1152 copy 48x12 bf16 permuted (1152 > 1152)
layer_norm_module +1152 +48 +48 native_layer_norm 12x48 bf16 (1152 96 96 > 1152 48 48)
linear +576 mm 12x24x48 nt bf16 (1152 2304 > 576) -1152
[forward]
contiguous +576t copy 72x4 bf16 transposed (576 > 576) -576
[forward layers.0]
layer_norm_module +576t +48 +48 native_layer_norm 12x24 bf16 (576 48 48 > 576 48 48)
view
contiguous +576 copy 1x288 bf16 (576 > 576)
view; transpose; view; view
[forward layers.0.attention]
linear +576 addmm 12x24x24 nt bf16 (576 1152 48 > 576)
view; transpose
linear +576 addmm 12x24x24 nt bf16 (576 1152 48 > 576)
view; transpose
linear +576 addmm 12x24x24 nt bf16 (576 1152 48 > 576)
view; transpose
pointwise x2 +128 arange 1x16 int64 (> 128) +96t index 16x3 bf16,int64->bf16 broadcast (54 128 > 96)
view
contiguous +96t copy 12x4 bf16 transposed (96 > 96) -96 +192 fill 12x8 bf16 (> 192)
    copy 12x4 bf16 permuted (96 > 192)
attention_fused +576 +1152 efficient_attention 3x3x4x8 masked bf16 (576 576 576 192 > 576 1152)
transpose; view; view
linear +576t addmm 12x24x24 nt bf16 (576 1152 48 > 576) -96
view; transpose; view; view
view -576
dropout_off
[forward layers.0]
pointwise +576 add 12x24 bf16,bf16->bf16 (576 576 > 576) -576
layer_norm_module +576 +48 +48 native_layer_norm 12x24 bf16 (576 48 48 > 576 48 48)
[forward layers.0.feed_forward]
linear +960 addmm 12x40x24 nt bf16 (576 1920 80 > 960)
pointwise +960 gelu 12x40 bf16 (960 > 960)
linear +576t addmm 12x24x40 nt bf16 (960 1920 48 > 576)
dropout_off
[forward layers.0]
pointwise +576 add 12x24 bf16,bf16->bf16 (576 576 > 576) -576
[forward]
contiguous +576t copy 72x4 bf16 transposed (576 > 576) -576
[forward final_norm]
layer_norm_module +576t +48 +48 native_layer_norm 12x24 bf16 (576 48 48 > 576 48 48)
[forward head]
pointwise +144 sum 12x24 bf16 rows (576 > 144)
linear +24t addmm 3x4x24 nt bf16 (144 192 8 > 24)
view; view
[forward head.loss]
cross_entropy +24 log_softmax 3x4 bf16 (24 > 24) +2t +2 nll_loss 3x4 bf16 (24 24 > 2) -24 -576
[forward]
loss_division +2 div 1x1 bf16 (2 > 2) -2
[backward]
backward_call +2t fill 1x1 bf16 (> 2)
backward_first x40
pointwise_backward +2t div 1x1 bf16 (2 > 2)
[backward head.loss]
nll_backward +24t nll_loss_backward 3x4 bf16 (2 24 > 24) -2 -2
log_softmax_backward +24t log_softmax_backward 3x4 bf16 (24 24 > 24) -24 -24
view_backward
[backward head]
addmm_backward +144t mm 3x24x4 nn bf16 (24 192 > 144) +192g mm 4x24x3 tn bf16 (24 144 > 192) +8g
    sum 3x4 bf16 rows (24 > 8) -24 -144
accumulate_grad; view_backward; accumulate_grad
view_backward +576t div 12x24 bf16 strided (144 > 576) -144
[backward final_norm]
layer_norm_backward +576t +48g +48g native_layer_norm_backward 12x24 bf16 (576 576 48 48 48 > 576 48 48) -576 -576
    -48 -48
accumulate_grad; accumulate_grad; add_backward; view_backward
[backward layers.0.feed_forward]
addmm_backward +960t mm 12x40x24 nn bf16 (576 1920 > 960) +1920g mm 24x40x12 tn bf16 (576 960 > 1920) +48g
    sum 12x24 bf16 rows (576 > 48) -960
accumulate_grad; view_backward; accumulate_grad; view_backward
pointwise_backward +960t gelu_backward 12x40 bf16,bf16->bf16 (960 960 > 960) -960 -960
view_backward
addmm_backward +576t mm 12x24x40 nn bf16 (960 1920 > 576) +1920g mm 40x24x12 tn bf16 (960 576 > 1920) +80g
    sum 12x40 bf16 rows (960 > 80) -960 -576
accumulate_grad; view_backward; accumulate_grad; view_backward
[backward layers.0]
layer_norm_backward +576t +48g +48g native_layer_norm_backward 12x24 bf16 (576 576 48 48 48 > 576 48 48) -576 -576
    -48 -48
fan_in_add add_ 12x24 bf16,bf16->bf16 (576 576 > 576) -576
accumulate_grad; accumulate_grad; add_backward; view_backward; view_backward; view_backward; view_backward;
    view_backward
[backward layers.0.attention]
addmm_backward +576t mm 12x24x24 nn bf16 (576 1152 > 576) +1152g mm 24x24x12 tn bf16 (576 576 > 1152) +48g
    sum 12x24 bf16 rows (576 > 48)
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward
attention_fused_backward +576t +576t +576t +576t
    efficient_attention_backward 3x3x4x8 masked bf16 (576 576 576 576 576 1152 192 > 576 576 576) -576 -576 -576 -576
    -1152 -576 -192
view_backward +96t sum 3x48 bf16 rows (288 > 96) -576
pointwise_backward +192t fill 12x8 bf16 (> 192) copy 12x4 bf16 permuted (96 > 192) -96
pointwise_backward +192t copy 1x96 bf16 (192 > 192) +192t sum 1x96 bf16 rows (192 > 192) -192 -192
view_backward; view_backward_copy; view_backward; view_backward; view_backward
pointwise_backward +54g fill 9x3 bf16 (> 54) +128t +128t sort 1x16 int64 (128 > 128 128)
    index_put 16 of 9x3 bf16 added (96 128 > 54) -128 -128 -192 -128
accumulate_grad; view_backward; view_backward; view_backward
addmm_backward +576t mm 12x24x24 nn bf16 (576 1152 > 576) +1152g mm 24x24x12 tn bf16 (576 576 > 1152) +48g
    sum 12x24 bf16 rows (576 > 48) -576
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward; view_backward
addmm_backward +576t mm 12x24x24 nn bf16 (576 1152 > 576) +1152g mm 24x24x12 tn bf16 (576 576 > 1152) +48g
    sum 12x24 bf16 rows (576 > 48) -576
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add +576t add 12x24 bf16,bf16->bf16 (576 576 > 576) -576 -576
view_backward; view_backward; view_backward
addmm_backward +576t mm 12x24x24 nn bf16 (576 1152 > 576) +1152g mm 24x24x12 tn bf16 (576 576 > 1152) +48g
    sum 12x24 bf16 rows (576 > 48) -576 -576
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add add_ 12x24 bf16,bf16->bf16 (576 576 > 576) -576
view_backward; view_backward; view_backward
[backward layers.0]
pointwise_backward +576t copy 1x288 bf16 (576 > 576) -576
view_backward
layer_norm_backward +576t +48g +48g native_layer_norm_backward 12x24 bf16 (576 576 48 48 48 > 576 48 48) -576 -576
    -48 -48
fan_in_add add_ 12x24 bf16,bf16->bf16 (576 576 > 576) -576
accumulate_grad; accumulate_grad; view_backward
[backward merging]
mm_backward +2304g mm 24x48x12 tn bf16 (576 1152 > 2304) +1152t mm 12x48x24 nn bf16 (576 2304 > 1152) -576 -1152
view_backward; view_backward; accumulate_grad
layer_norm_backward +1152t +96g +96g native_layer_norm_backward 12x48 bf16 (1152 1152 96 48 48 > 1152 96 96) -1152
    -1152 -48 -48
accumulate_grad; accumulate_grad
pointwise_backward +576t fill 24x12 bf16 (> 576) copy 12x12 bf16 permuted (1152 > 576) +1152t
    fill 48x12 bf16 (> 1152) copy 24x12 bf16 permuted (576 > 1152) -576 +576t fill 24x12 bf16 (> 576)
    copy 12x12 bf16 permuted (1152 > 576) +1152t fill 48x12 bf16 (> 1152) copy 24x12 bf16 permuted (576 > 1152)
    add_ 48x12 bf16,bf16->bf16 (1152 1152 > 1152) -1152 -576 +576t fill 24x12 bf16 (> 576)
    copy 12x12 bf16 permuted (1152 > 576) +1152t fill 48x12 bf16 (> 1152) copy 24x12 bf16 permuted (576 > 1152)
    add_ 48x12 bf16,bf16->bf16 (1152 1152 > 1152) -1152 -576 +576t fill 24x12 bf16 (> 576)
    copy 12x12 bf16 permuted (1152 > 576) +1152t fill 48x12 bf16 (> 1152) copy 24x12 bf16 permuted (576 > 1152)
    add_ 48x12 bf16,bf16->bf16 (1152 1152 > 1152) -1152 -576 -1152
add_backward; view_backward
[backward layers.1.feed_forward]
addmm_backward +1920t mm 48x20x12 nn bf16 (1152 480 > 1920) +480g mm 12x20x48 tn bf16 (1152 1920 > 480) +24g
    sum 48x12 bf16 rows (1152 > 24) -1920
accumulate_grad; view_backward; accumulate_grad; view_backward
pointwise_backward +1920t gelu_backward 48x20 bf16,bf16->bf16 (1920 1920 > 1920) -1920 -1920
view_backward
addmm_backward +1152t mm 48x12x20 nn bf16 (1920 480 > 1152) +480g mm 20x12x48 tn bf16 (1920 1152 > 480) +40g
    sum 48x20 bf16 rows (1920 > 40) -1920 -1152
accumulate_grad; view_backward; accumulate_grad; view_backward
[backward layers.1]
layer_norm_backward +1152t +24g +24g native_layer_norm_backward 48x12 bf16 (1152 1152 24 192 192 > 1152 24 24) -1152
    -1152 -192 -192
accumulate_grad; accumulate_grad; view_backward
fan_in_add +1152t add 48x12 bf16,bf16->bf16 (1152 1152 > 1152) -1152 -1152
add_backward; view_backward
pointwise_backward +1152t roll 48x12 bf16 (1152 > 1152) +1152t roll 48x12 bf16 (1152 > 1152) -1152
view_backward; view_backward; view_backward; view_backward
view_backward_copy +1152t copy 24x24 bf16 permuted (1152 > 1152) -1152
view_backward
[backward layers.1.attention]
addmm_backward +1152t mm 48x12x12 nn bf16 (1152 288 > 1152) +288g mm 12x12x48 tn bf16 (1152 1152 > 288) +24g
    sum 48x12 bf16 rows (1152 > 24) -1152
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward
attention_fused_backward +1152t +1152t +1152t +1536t
    efficient_attention_backward 12x2x4x6 masked bf16 (1152 1152 1152 1152 1152 3072 768 > 1152 1152 1152) -1152
    -1152 -1152 -1152 -3072 -1152 -1536
view_backward
pointwise_backward +1536t fill 96x8 bf16 (> 1536) copy 96x4 bf16 permuted (768 > 1536) -1536
pointwise_backward +1536t copy 1x768 bf16 (1536 > 1536) +1536t sum 1x768 bf16 rows (1536 > 1536) -1536 -1536
add_backward +128t sum 12x64 bf16 rows (1536 > 128) -1536
view_backward; view_backward_copy; view_backward; view_backward; view_backward
pointwise_backward +36g fill 9x2 bf16 (> 36) +128t +128t sort 1x16 int64 (128 > 128 128)
    index_put 16 of 9x2 bf16 added (64 128 > 36) -128 -128 -128 -128
accumulate_grad; view_backward; view_backward; view_backward
addmm_backward +1152t mm 48x12x12 nn bf16 (1152 288 > 1152) +288g mm 12x12x48 tn bf16 (1152 1152 > 288) +24g
    sum 48x12 bf16 rows (1152 > 24) -1152
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward; view_backward
addmm_backward +1152t mm 48x12x12 nn bf16 (1152 288 > 1152) +288g mm 12x12x48 tn bf16 (1152 1152 > 288) +24g
    sum 48x12 bf16 rows (1152 > 24) -1152
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add +1152t add 48x12 bf16,bf16->bf16 (1152 1152 > 1152) -1152 -1152
view_backward; view_backward; view_backward
addmm_backward +1152t mm 48x12x12 nn bf16 (1152 288 > 1152) +288g mm 12x12x48 tn bf16 (1152 1152 > 288) +24g
    sum 48x12 bf16 rows (1152 > 24) -1152 -1152
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add add_ 48x12 bf16,bf16->bf16 (1152 1152 > 1152) -1152
view_backward; view_backward; view_backward; view_backward
[backward layers.1]
view_backward_copy +1152t copy 24x24 bf16 permuted (1152 > 1152) -1152
pointwise_backward +1152t roll 48x12 bf16 (1152 > 1152) +1152t roll 48x12 bf16 (1152 > 1152) -1152 -1152
pointwise_backward +1152t copy 1x576 bf16 (1152 > 1152) -1152
view_backward
layer_norm_backward +1152t +24g +24g native_layer_norm_backward 48x12 bf16 (1152 1152 24 192 192 > 1152 24 24) -1152
    -1152 -192 -192
accumulate_grad; accumulate_grad; view_backward
fan_in_add add_ 48x12 bf16,bf16->bf16 (1152 1152 > 1152) -1152
add_backward; view_backward
[backward layers.0.feed_forward]
addmm_backward +1920t mm 48x20x12 nn bf16 (1152 480 > 1920) +480g mm 12x20x48 tn bf16 (1152 1920 > 480) +24g
    sum 48x12 bf16 rows (1152 > 24) -1920
accumulate_grad; view_backward; accumulate_grad; view_backward
pointwise_backward +1920t gelu_backward 48x20 bf16,bf16->bf16 (1920 1920 > 1920) -1920 -1920
view_backward
addmm_backward +1152t mm 48x12x20 nn bf16 (1920 480 > 1152) +480g mm 20x12x48 tn bf16 (1920 1152 > 480) +40g
    sum 48x20 bf16 rows (1920 > 40) -1920 -1152
accumulate_grad; view_backward; accumulate_grad; view_backward
[backward layers.0]
layer_norm_backward +1152t +24g +24g native_layer_norm_backward 48x12 bf16 (1152 1152 24 192 192 > 1152 24 24) -1152
    -1152 -192 -192
accumulate_grad; accumulate_grad; view_backward
fan_in_add add_ 48x12 bf16,bf16->bf16 (1152 1152 > 1152) -1152
add_backward; view_backward; view_backward; view_backward; view_backward; view_backward
view_backward_copy +1152t copy 24x24 bf16 permuted (1152 > 1152)
view_backward
[backward layers.0.attention]
addmm_backward +1152t mm 48x12x12 nn bf16 (1152 288 > 1152) +288g mm 12x12x48 tn bf16 (1152 1152 > 288) +24g
    sum 48x12 bf16 rows (1152 > 24) -1152
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward
attention_fused_backward +1152t +1152t +1152t +1536t
    efficient_attention_backward 12x2x4x6 masked bf16 (1152 1152 1152 1152 1152 3072 128 > 1152 1152 1152) -1152
    -1152 -1152 -1152 -3072 -1152 -128
view_backward +64t sum 12x32 bf16 rows (768 > 64) -1536
pointwise_backward +128t fill 8x8 bf16 (> 128) copy 8x4 bf16 permuted (64 > 128) -64
pointwise_backward +128t copy 1x64 bf16 (128 > 128) +128t sum 1x64 bf16 rows (128 > 128) -128 -128
view_backward; view_backward_copy; view_backward; view_backward; view_backward
pointwise_backward +36g fill 9x2 bf16 (> 36) +128t +128t sort 1x16 int64 (128 > 128 128)
    index_put 16 of 9x2 bf16 added (64 128 > 36) -128 -128 -128 -128
accumulate_grad; view_backward; view_backward; view_backward
addmm_backward +1152t mm 48x12x12 nn bf16 (1152 288 > 1152) +288g mm 12x12x48 tn bf16 (1152 1152 > 288) +24g
    sum 48x12 bf16 rows (1152 > 24) -1152
accumulate_grad; view_backward; accumulate_grad; view_backward; view_backward; view_backward; view_backward
addmm_backward +1152t mm 48x12x12 nn bf16 (1152 288 > 1152) +288g mm 12x12x48 tn bf16 (1152 1152 > 288) +24g
    sum 48x12 bf16 rows (1152 > 24) -1152
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add +1152t add 48x12 bf16,bf16->bf16 (1152 1152 > 1152) -1152 -1152
view_backward; view_backward; view_backward
addmm_backward +1152t mm 48x12x12 nn bf16 (1152 288 > 1152) +288g mm 12x12x48 tn bf16 (1152 1152 > 288) +24g
    sum 48x12 bf16 rows (1152 > 24) -1152 -1152
accumulate_grad; view_backward; accumulate_grad; view_backward
fan_in_add add_ 48x12 bf16,bf16->bf16 (1152 1152 > 1152) -1152
view_backward; view_backward; view_backward; view_backward
[backward layers.0]
view_backward_copy +1152t copy 24x24 bf16 permuted (1152 > 1152) -1152
pointwise_backward +1152t copy 1x576 bf16 (1152 > 1152) -1152
view_backward
layer_norm_backward +1152t +24g +24g native_layer_norm_backward 48x12 bf16 (1152 1152 24 192 192 > 1152 24 24) -1152
    -1152 -192 -192
accumulate_grad; accumulate_grad; view_backward
fan_in_add add_ 48x12 bf16,bf16->bf16 (1152 1152 > 1152) -1152
view_backward; view_backward
[backward embeddings]
convolution_backward +1152t copy 144x4 bf16 transposed (1152 > 1152) +1920t +480g
    conv2d_backward 3x5x8x8 to 12, 2x2 bf16 (1152 1920 480 > 1920 480) +24g sum 12x48 bf16 cols (1152 > 24) -1152
    -1152 -1920
accumulate_grad
accumulate_grad -2 -2
per_parameter_zero_grad x60 -480 -24 -288 -24 -288 -24 -288 -24 -288 -24 -36 -24 -24 -480 -40 -480 -24 -24 -24 -288
    -24 -288 -24 -288 -24 -288 -24 -36 -24 -24 -480 -40 -480 -24 -24 -24 -2304 -96 -96 -1152 -48 -1152 -48 -1152 -48
    -1152 -48 -54 -48 -48 -1920 -80 -1920 -48 -48 -48 -48 -48 -192 -8
)";

TEST(ComposedWindowsStep, StagesOfWindows) {
  EXPECT_EQ(
      OddStep(odd_composition(
                  "input: image, image_size: 8, patch: 2, channels: 5, causal: false, head: image-classification, "
                  "labels: 4, pooler: mean, stage_layers: [2, 1], stage_heads: [2, 3], window_side: 2"))
          .but([](OddStep& step) { step.training.sequence_length = 16; })
          .text(),
      kComposedWindowsStepListing1);
}

}  // namespace
}  // namespace ridgeline
