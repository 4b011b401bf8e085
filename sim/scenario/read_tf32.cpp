#include "sim/scenario/read_tf32.h"

namespace ridgeline {

void read_tf32(const config::Mapping& mapping, const Software& software, TrainingDescription& t) {
  t.cudnn_tf32 = mapping["cudnn_tf32"].boolean(t.cudnn_tf32);
  const bool said = t.precision == Precision::fp32 || t.precision == Precision::tf32;
  t.tf32 = mapping["tf32"].boolean(said ? t.precision == Precision::tf32 : software.matmul_tf32);
  if (t.precision == Precision::tf32 && !t.tf32) mapping["tf32"].fail("contradicts precision: tf32: expected true");
  if (t.precision == Precision::fp32 && t.tf32) t.precision = Precision::tf32;
}

}  // namespace ridgeline
