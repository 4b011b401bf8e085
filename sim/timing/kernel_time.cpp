#include "sim/timing/kernel_time.h"

namespace ridgeline {

std::string_view name_of(Limiter limiter) {
  switch (limiter) {
    case Limiter::compute: return "compute";
    case Limiter::dram: return "dram";
    case Limiter::l2: return "l2";
    case Limiter::shared_memory: return "shared_memory";
    case Limiter::latency: return "latency";
    case Limiter::launch: return "launch";
    case Limiter::power: return "power";
    case Limiter::link: return "link";
  }
  return "latency";
}

}  // namespace ridgeline
