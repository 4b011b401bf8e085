// Positions that compositions turn heads by or add to scores.
#include <gtest/gtest.h>

#include "tests/support/odd_networks.h"

namespace ridgeline {
namespace {

using testing_support::OddStep;

using testing_support::changes_by_keys;
using testing_support::odd_composition;

constexpr char kComposedPositionsStepListing1[] = R"(
[forward positions]
- pointwise x8
+ pointwise x8 +24t add 3x1 int64 (40 > 24) +144t cat 3x3 int64 x2 joined (24 40 > 144) +120t
    add 3x5 int64 (144 > 120) -144 +15t eq 3x5 int64->bool (120 > 15) +120t +120t cast 3x5 bool->int64 (15 > 120)
    pointwise 3x5 int64 (120 > 120) -120 -15 +3t eq 1x3 int64->bool (120 > 3) +1t sum 1x3 bool (3 > 1) -3
    copy_to_host 1x1 bool from gpu (1) sync -1 -24 -120 -120
+ pointwise x8 +20t cast 1x5 int64->fp32 (40 > 20) +60t mm 3x5x1 nn fp32 (12 20 > 60) +120t
    cat 5x3 fp32 x2 joined (60 60 > 120) +120t rope 5x6 fp32 (120 > 120) +120t scale 5x6 fp32 (120 > 120) -120 +120t
    rope 5x6 fp32 (120 > 120) +120t scale 5x6 fp32 (120 > 120) -120 +60 cast 5x6 fp32->bf16 (120 > 60) +60
    cast 5x6 fp32->bf16 (120 > 60) -20 -60 -120 -120 -120 -40
[forward layers.0.attention]
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
- linear
+ linear +360t addmm 15x12x12 nt bf16 (360 288 24 > 360)
+ pointwise x4
+ concatenate +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360) +180t scale 30x3 bf16 strided (180 > 180) +360t
    cat 30x3 bf16 x2 joined (180 180 > 360) -180 +360t mul 6x30 bf16,bf16->bf16 rows (360 60 > 360) -360 +360
    add 30x6 bf16,bf16->bf16 strided (360 360 > 360) -360 -360
+ pointwise x4
+ concatenate +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360) +180t scale 30x3 bf16 strided (180 > 180) +360t
    cat 30x3 bf16 x2 joined (180 180 > 360) -180 +360t mul 6x30 bf16,bf16->bf16 rows (360 60 > 360) -360 +360
    add 30x6 bf16,bf16->bf16 strided (360 360 > 360) -360 -360 -360 -360
[backward]
- backward_first x34
+ backward_first x40
[backward layers.0.attention]
+ add_backward
+ pointwise_backward +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360)
+ pointwise_backward +180t scale 30x3 bf16 strided (180 > 180)
+ pointwise_backward +360t fill 30x6 bf16 (> 360) copy 30x3 bf16 permuted (180 > 360) -180
+ pointwise_backward +360t fill 30x6 bf16 (> 360) copy 30x3 bf16 permuted (180 > 360) -360
+ fan_in_add add_ 30x6 bf16,bf16->bf16 (360 360 > 360) -360
+ pointwise_backward +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360) -360
+ fan_in_add add_ 30x6 bf16,bf16->bf16 strided (360 360 > 360) -360
+ add_backward
+ pointwise_backward +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360) -60
+ pointwise_backward +180t scale 30x3 bf16 strided (180 > 180)
+ pointwise_backward +360t fill 30x6 bf16 (> 360) copy 30x3 bf16 permuted (180 > 360) -180
+ pointwise_backward +360t fill 30x6 bf16 (> 360) copy 30x3 bf16 permuted (180 > 360) -360
+ fan_in_add add_ 30x6 bf16,bf16->bf16 (360 360 > 360) -360
+ pointwise_backward +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360) -360 -60
+ fan_in_add add_ 30x6 bf16,bf16->bf16 strided (360 360 > 360) -360
+ view_backward; view_backward
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
+ view_backward_copy +360t copy 30x6 bf16 permuted (360 > 360) -360
)";

constexpr char kComposedPositionsStepListing2[] = R"(
[forward positions]
- pointwise x8
+ pointwise x8 +20t cast 1x5 int64->fp32 (40 > 20) +60t mm 3x5x1 nn fp32 (12 20 > 60) +120t
    cat 5x3 fp32 x2 joined (60 60 > 120) +120t rope 5x6 fp32 (120 > 120) +120t scale 5x6 fp32 (120 > 120) -120 +120t
    rope 5x6 fp32 (120 > 120) +120t scale 5x6 fp32 (120 > 120) -120 +60t cast 5x6 fp32->bf16 (120 > 60) +60t
    cast 5x6 fp32->bf16 (120 > 60) -20 -60 -120 -120 -120 -40
[forward layers.0.attention]
- pointwise x4; concatenate; pointwise x4; concatenate
+ contiguous x2 +60 copy 15x2 bf16 transposed (60 > 60) +60 copy 15x2 bf16 transposed (60 > 60)
+ pointwise x3 +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360)
+ pointwise x3
+ concatenate +180t scale 30x3 bf16 strided (180 > 180) +360t cat 90x1 bf16 x2 joined strided (180 180 > 360) -180
    +360t mul 6x30 bf16,bf16->bf16 rows (360 60 > 360) -360 +360 add 30x6 bf16,bf16->bf16 strided (360 360 > 360)
    -360 -360
+ pointwise x3 +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360)
+ pointwise x3
+ concatenate +180t scale 30x3 bf16 strided (180 > 180) +360t cat 90x1 bf16 x2 joined strided (180 180 > 360) -180
    +360t mul 6x30 bf16,bf16->bf16 rows (360 60 > 360) -360 +360 add 30x6 bf16,bf16->bf16 strided (360 360 > 360)
    -360 -360 -360 -360
[forward layers.0]
- pointwise
+ pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -60 -60
[backward layers.0.attention]
+ view_backward; view_backward; view_backward; view_backward; view_backward; view_backward
)";

constexpr char kComposedPositionsStepListing3[] = R"(
[forward positions]
- pointwise x8
+ pointwise x8 +20t cast 1x5 int64->fp32 (40 > 20) +40t mm 2x5x1 nn fp32 (8 20 > 40) +80t
    cat 5x2 fp32 x2 joined (40 40 > 80) +80t rope 5x4 fp32 (80 > 80) +80t scale 5x4 fp32 (80 > 80) -80 +80t
    rope 5x4 fp32 (80 > 80) +80t scale 5x4 fp32 (80 > 80) -80 +40 cast 5x4 fp32->bf16 (80 > 40) +40
    cast 5x4 fp32->bf16 (80 > 40) -20 -40 -80 -80 -80 -40
[forward layers.0.attention]
+ concatenate
- concatenate
+ concatenate +240t mul 30x4 bf16,bf16->bf16 strided (240 40 > 240) +120t scale 30x2 bf16 strided (120 > 120) +240t
    cat 30x2 bf16 x2 joined (120 120 > 240) -120 +240t mul 6x20 bf16,bf16->bf16 rows (240 40 > 240) -240 +240t
    add 30x4 bf16,bf16->bf16 strided (240 240 > 240) -240 -240 +360 cat 30x3 bf16 x2 joined strided (240 120 > 360)
    -240
+ concatenate
- concatenate
+ concatenate +240t mul 30x4 bf16,bf16->bf16 strided (240 40 > 240) +120t scale 30x2 bf16 strided (120 > 120) +240t
    cat 30x2 bf16 x2 joined (120 120 > 240) -120 +240t mul 6x20 bf16,bf16->bf16 rows (240 40 > 240) -240 +240t
    add 30x4 bf16,bf16->bf16 strided (240 240 > 240) -240 -240 +360 cat 30x3 bf16 x2 joined strided (240 120 > 360)
    -240 -360 -360
- view
+ contiguous +360 copy 30x6 bf16 permuted (360 > 360)
[backward layers.0.attention]
- addmm_backward
+ addmm_backward +360t mm 15x12x12 nn bf16 (360 288 > 360) +288g mm 12x12x15 tn bf16 (360 360 > 288) +24g
    sum 15x12 bf16 rows (360 > 24) -360
+ view_backward; view_backward
- pointwise_backward
+ pointwise_backward +240t mul 6x20 bf16,bf16->bf16 strided (240 40 > 240)
- pointwise_backward; pointwise_backward; pointwise_backward
+ pointwise_backward +120t scale 30x2 bf16 strided (120 > 120)
+ pointwise_backward +240t fill 30x4 bf16 (> 240) copy 30x2 bf16 permuted (120 > 240) -120
+ pointwise_backward +240t fill 30x4 bf16 (> 240) copy 30x2 bf16 permuted (120 > 240) -240
+ fan_in_add add_ 30x4 bf16,bf16->bf16 (240 240 > 240) -240
+ pointwise_backward +240t mul 6x20 bf16,bf16->bf16 strided (240 40 > 240)
+ fan_in_add add_ 30x4 bf16,bf16->bf16 (240 240 > 240) -240
+ pointwise_backward +360t fill 30x6 bf16 (> 360) copy 30x2 bf16 permuted (120 > 360) -360
+ pointwise_backward +360t fill 30x6 bf16 (> 360) copy 30x4 bf16 permuted (240 > 360) -240
- pointwise_backward; fan_in_add
+ view_backward
- pointwise_backward
+ pointwise_backward +240t mul 6x20 bf16,bf16->bf16 strided (240 40 > 240) -40
- pointwise_backward; pointwise_backward; pointwise_backward
+ pointwise_backward +120t scale 30x2 bf16 strided (120 > 120)
+ pointwise_backward +240t fill 30x4 bf16 (> 240) copy 30x2 bf16 permuted (120 > 240) -120
+ pointwise_backward +240t fill 30x4 bf16 (> 240) copy 30x2 bf16 permuted (120 > 240) -240
+ fan_in_add add_ 30x4 bf16,bf16->bf16 (240 240 > 240) -240
+ pointwise_backward +240t mul 6x20 bf16,bf16->bf16 strided (240 40 > 240) -40
+ fan_in_add add_ 30x4 bf16,bf16->bf16 (240 240 > 240) -240
+ pointwise_backward +360t fill 30x6 bf16 (> 360) copy 30x2 bf16 permuted (120 > 360) -360
+ pointwise_backward +360t fill 30x6 bf16 (> 360) copy 30x4 bf16 permuted (240 > 360) -240
- pointwise_backward; fan_in_add
)";

constexpr char kComposedPositionsStepListing4[] = R"(
[forward layers.0.attention]
- pointwise x4; concatenate; pointwise x4; concatenate
+ pointwise x3 +720t cast 30x6 bf16->fp32 (360 > 720) +720t mul 30x6 fp32,bf16->fp32 broadcast (720 60 > 720) -720
    +720t cast 30x6 bf16->fp32 (360 > 720)
+ pointwise x2
+ concatenate +360t scale 30x3 fp32 strided (360 > 360) +720t cat 30x3 fp32 x2 joined (360 360 > 720) -360 +720t
    mul 6x30 fp32,bf16->fp32 rows (720 60 > 720) -720 -720 +720t add 30x6 fp32,fp32->fp32 strided (720 720 > 720)
    -720 -720 +360 cast 30x6 fp32->bf16 (720 > 360) -720
+ pointwise x3 +720t cast 30x6 bf16->fp32 (360 > 720) +720t mul 30x6 fp32,bf16->fp32 broadcast (720 60 > 720) -720
    +720t cast 30x6 bf16->fp32 (360 > 720)
+ pointwise x2
+ concatenate +360t scale 30x3 fp32 strided (360 > 360) +720t cat 30x3 fp32 x2 joined (360 360 > 720) -360 +720t
    mul 6x30 fp32,bf16->fp32 rows (720 60 > 720) -720 -720 +720t add 30x6 fp32,fp32->fp32 strided (720 720 > 720)
    -720 -720 +360 cast 30x6 fp32->bf16 (720 > 360) -720 -360 -360
[backward layers.0.attention]
+ cast_backward +720t cast 30x6 bf16->fp32 (360 > 720) -360
- pointwise_backward
+ pointwise_backward +720t mul 30x6 fp32,bf16->fp32 broadcast (720 60 > 720)
- pointwise_backward; pointwise_backward; pointwise_backward; fan_in_add; pointwise_backward
+ pointwise_backward +360t scale 30x3 fp32 strided (360 > 360)
+ pointwise_backward +720t fill 30x6 fp32 (> 720) copy 30x3 fp32 permuted (360 > 720) -360
+ pointwise_backward +720t fill 30x6 fp32 (> 720) copy 30x3 fp32 permuted (360 > 720) -720
+ fan_in_add add_ 30x6 fp32,fp32->fp32 (720 720 > 720) -720
+ cast_backward +360t cast 30x6 fp32->bf16 (720 > 360) -720
+ pointwise_backward +720t mul 30x6 fp32,bf16->fp32 broadcast (720 60 > 720) -720
+ cast_backward +360t cast 30x6 fp32->bf16 (720 > 360) -720
+ cast_backward +720t cast 30x6 bf16->fp32 (360 > 720) -360
- pointwise_backward
+ pointwise_backward +720t mul 30x6 fp32,bf16->fp32 broadcast (720 60 > 720) -60
- pointwise_backward; pointwise_backward; pointwise_backward; fan_in_add; pointwise_backward
+ pointwise_backward +360t scale 30x3 fp32 strided (360 > 360)
+ pointwise_backward +720t fill 30x6 fp32 (> 720) copy 30x3 fp32 permuted (360 > 720) -360
+ pointwise_backward +720t fill 30x6 fp32 (> 720) copy 30x3 fp32 permuted (360 > 720) -720
+ fan_in_add add_ 30x6 fp32,fp32->fp32 (720 720 > 720) -720
+ cast_backward +360t cast 30x6 fp32->bf16 (720 > 360) -720
+ pointwise_backward +720t mul 30x6 fp32,bf16->fp32 broadcast (720 60 > 720) -720 -60
+ cast_backward +360t cast 30x6 fp32->bf16 (720 > 360) -720
)";

constexpr char kComposedPositionsStepListing5[] = R"(
[forward positions]
- pointwise x8; pointwise x8
+ pointwise x8 +24t add 3x1 int64 (40 > 24) +144t cat 3x3 int64 x2 joined (24 40 > 144) +120t
    add 3x5 int64 (144 > 120) -144 +15t eq 3x5 int64->bool (120 > 15) +120t +120t cast 3x5 bool->int64 (15 > 120)
    pointwise 3x5 int64 (120 > 120) -120 -15 +3t eq 1x3 int64->bool (120 > 3) +1t sum 1x3 bool (3 > 1) -3
    copy_to_host 1x1 bool from gpu (1) sync -1 -24 -120 -120 +40t arange 1x5 int64 (> 40) +60
    embedding 5 of 7x6 bf16 (84 40 > 60) -40 -40
[backward layers.0.attention]
- pointwise_backward
+ pointwise_backward +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360)
)";

constexpr char kComposedPositionsStepListing6[] = R"(
[forward layers.0.attention]
- concatenate
+ concatenate +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360) +180t scale 30x3 bf16 strided (180 > 180) +360t
    cat 30x3 bf16 x2 joined (180 180 > 360) -180 +360t mul 6x30 bf16,bf16->bf16 rows (360 60 > 360) -360 +360t
    add 30x6 bf16,bf16->bf16 strided (360 360 > 360) -360 -360
+ pointwise x8 +20t div 5x1 fp32 (> 20) +20t pointwise 5x1 fp32 (20 > 20) -20 +20t add 5x1 fp32 (20 > 20) -20 +20t
    pointwise 5x1 fp32 (20 > 20) -20 +20t scale 5x1 fp32 (20 > 20) -20 +20t add 5x1 fp32 (20 > 20) -20 +10
    cast 5x1 fp32->bf16 (20 > 10) +360 mul 30x6 bf16,bf16->bf16 broadcast (360 10 > 360) -20 -360
[backward layers.0.attention]
+ pointwise_backward +360t mul 30x6 bf16,bf16->bf16 broadcast (360 10 > 360) -360 -10
)";

constexpr char kComposedPositionsStepListing7[] = R"(
[forward positions]
- pointwise x8
+ pointwise x8 +20t cast 1x5 int64->fp32 (40 > 20) +60t mm 3x5x1 nn fp32 (12 20 > 60) +120t
    cat 5x3 fp32 x2 joined (60 60 > 120) +120t rope 5x6 fp32 (120 > 120) +120t scale 5x6 fp32 (120 > 120) -120 +120t
    rope 5x6 fp32 (120 > 120) +120t scale 5x6 fp32 (120 > 120) -120 +60t cast 5x6 fp32->bf16 (120 > 60) +60t
    cast 5x6 fp32->bf16 (120 > 60) -20 -60 -120 -120 -120 -40
[forward layers.0.attention]
- transpose; transpose
+ pointwise x2 +60t index 5x6 bf16 (> 60)
+ contiguous x2 +60 copy 15x2 bf16 transposed (60 > 60) +60 copy 15x2 bf16 transposed (60 > 60)
+ pointwise x3 +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360)
+ pointwise x3
+ concatenate +180t scale 30x3 bf16 strided (180 > 180) +360t cat 90x1 bf16 x2 joined strided (180 180 > 360) -180
    +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360) -360 +360 add 30x6 bf16,bf16->bf16 (360 360 > 360) -360
    -360
+ contiguous x2 +60 copy 15x2 bf16 transposed (60 > 60) +60 copy 15x2 bf16 transposed (60 > 60)
+ pointwise x3 +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360)
+ pointwise x3
+ concatenate +180t scale 30x3 bf16 strided (180 > 180) +360t cat 90x1 bf16 x2 joined strided (180 180 > 360) -180
    +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360) -360 +360 add 30x6 bf16,bf16->bf16 (360 360 > 360) -360
    -360 -360 -360 -60
- pointwise x4; concatenate; pointwise x4; concatenate
+ transpose; transpose
[forward layers.0]
- pointwise
+ pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -60 -60
[backward layers.0.attention]
+ view_backward; view_backward; view_backward
- pointwise_backward
+ pointwise_backward +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360) -60
+ view_backward; view_backward; view_backward
- pointwise_backward; fan_in_add
+ pointwise_backward +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360) -360 -60
+ fan_in_add add_ 30x6 bf16,bf16->bf16 (360 360 > 360) -360
+ view_backward; view_backward; view_backward
- fan_in_add; view_backward
+ fan_in_add add_ 30x6 bf16,bf16->bf16 (360 360 > 360) -360
- view_backward_copy; view_backward; view_backward_copy; view_backward
)";

TEST(ComposedPositionsStep, PairsOfNumbersAreTurned) {
  EXPECT_EQ(changes_by_keys("positions: rotary"), kComposedPositionsStepListing1);
  EXPECT_EQ(changes_by_keys("rotary_style: pairs", "positions: rotary"), kComposedPositionsStepListing2);
  EXPECT_EQ(changes_by_keys("rotary_width: 4", "positions: rotary"), kComposedPositionsStepListing3);
  EXPECT_EQ(changes_by_keys("rotary_fp32: true", "positions: rotary"), kComposedPositionsStepListing4);
  EXPECT_EQ(changes_by_keys("rotary_table: true", "positions: rotary"), kComposedPositionsStepListing5);
  EXPECT_EQ(changes_by_keys("queries_by_position: true", "positions: rotary"), kComposedPositionsStepListing6);
  EXPECT_EQ(changes_by_keys("rotary_style: pairs, turned_in_place: true", "positions: rotary"),
            kComposedPositionsStepListing7);
}

TEST(ComposedPositionsStep, NotAllLayersTurn) {
  EXPECT_EQ(changes_by_keys("rotary_kinds: [plain, turned]", "layers: 2, positions: rotary"), R"(
[forward layers.0.attention]
- linear
+ linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
- linear
+ linear +360 addmm 15x12x12 nt bf16 (360 288 24 > 360)
- pointwise x4; concatenate; pointwise x4; concatenate
[backward layers.1.attention]
- pointwise_backward
+ pointwise_backward +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360) -60
- pointwise_backward
+ pointwise_backward +360t mul 30x6 bf16,bf16->bf16 broadcast (360 60 > 360) -360 -60
[backward layers.0.attention]
- add_backward; pointwise_backward; pointwise_backward; pointwise_backward; pointwise_backward; fan_in_add;
    pointwise_backward; fan_in_add; add_backward; pointwise_backward; pointwise_backward; pointwise_backward;
    pointwise_backward; fan_in_add; pointwise_backward; fan_in_add; view_backward; view_backward; view_backward_copy;
    view_backward_copy
)");
}

TEST(ComposedPositionsStep, SlopesAreAddedToScores) {
  EXPECT_EQ(changes_by_keys("positions: alibi"), R"(
[forward positions]
- pointwise x8
+ pointwise x8 +24t add 3x1 int64 (40 > 24) +144t cat 3x3 int64 x2 joined (24 40 > 144) +120t
    add 3x5 int64 (144 > 120) -144 +15t eq 3x5 int64->bool (120 > 15) +120t +120t cast 3x5 bool->int64 (15 > 120)
    pointwise 3x5 int64 (120 > 120) -120 -15 +3t eq 1x3 int64->bool (120 > 3) +1t sum 1x3 bool (3 > 1) -3
    copy_to_host 1x1 bool from gpu (1) sync -1 -24 -120 -120
+ pointwise x6 +40t arange 1x5 int64 (> 40) +8t fill 2x1 fp32 (> 8) +60
    mul 6x5 fp32,int64->bf16 broadcast (8 40 > 60) -8 -40 -40
[forward layers.0.attention]
- attention_fused
+ attention_fused +360 +768 efficient_attention 3x2x5x6 masked bf16 (360 360 360 60 > 360 768)
[backward]
- backward_first x34
+ backward_first x37
[backward layers.0.attention]
- attention_fused_backward
+ attention_fused_backward +360t +360t +360t
    efficient_attention_backward 3x2x5x6 masked bf16 (360 360 360 360 360 768 60 > 360 360 360) -360 -360 -360 -360
    -768 -360 -60
)");
  EXPECT_EQ(changes_by_keys("positions: alibi", "attention_code: written-out"), R"(
[forward positions]
- pointwise x10
+ pointwise x10 +24t arange 1x3 int64 (> 24) +8t arange 1x1 int64 (> 8) +40t arange 1x5 int64 (> 40) +40t
    add 1x5 int64 (40 > 40) -40 +40t arange 1x5 int64 (> 40) +40t add 1x5 int64 (40 > 40) -40 +25t
    pointwise 5x5 int64,int64->bool rows (40 40 > 25) -24 -8 -40 -40 +2t fill 1x1 bf16 (> 2) +2t
    copy_to_device 1x1 bf16 to gpu (> 2) +150t pointwise 3x25 bool->bf16 rows (25 > 150) -2 -2 -25
+ pointwise x6 +40t arange 1x5 int64 (> 40) +8t fill 2x1 fp32 (> 8) +60t
    mul 6x5 fp32,int64->bf16 broadcast (8 40 > 60) -8 -40 -60 -40
)");
  EXPECT_EQ(changes_by_keys("positions: alibi, alibi_added: true", "attention_code: written-out"), R"(
[forward positions]
- pointwise x10
+ pointwise x10 +24t arange 1x3 int64 (> 24) +8t arange 1x1 int64 (> 8) +40t arange 1x5 int64 (> 40) +40t
    add 1x5 int64 (40 > 40) -40 +40t arange 1x5 int64 (> 40) +40t add 1x5 int64 (40 > 40) -40 +25t
    pointwise 5x5 int64,int64->bool rows (40 40 > 25) -24 -8 -40 -40 +2t fill 1x1 bf16 (> 2) +2t
    copy_to_device 1x1 bf16 to gpu (> 2) +150t pointwise 3x25 bool->bf16 rows (25 > 150) -2 -2 -25
+ pointwise x6 +40t arange 1x5 int64 (> 40) +8t fill 2x1 fp32 (> 8) +60t
    mul 6x5 fp32,int64->bf16 broadcast (8 40 > 60) -8 -40 -40
[forward layers.0.attention]
+ pointwise +300t add 30x5 bf16,bf16->bf16 broadcast (300 60 > 300) -300
[forward layers.0]
- pointwise
+ pointwise +360 add 15x12 bf16,bf16->bf16 (360 360 > 360) -360 -60 -150
[backward layers.0.attention]
+ add_backward
)");
}

}  // namespace
}  // namespace ridgeline
