// Fitted constants of collectives (data/laws/network.yaml), by the generation of the links. Times are microseconds.
#pragma once

#include "sim/hardware/gpu.h"
#include "sim/network/collective_time.h"

namespace ridgeline {

struct NetworkConstants {
  double call_us = 4;             ///< events around one call on idle devices, and its launch
  double loop_us = 2;             ///< from one kernel to the next of calls back to back, as nccl-tests times them
  double start_us = 3;            ///< LL: a kernel of the smallest blocks (128 threads)
  double wide_us = 0.3;           ///< LL: more where blocks have 512 threads
  double ll_step_us = 0.6;        ///< one rank to the next, LL, of the smallest blocks
  double ll_channel_gb_s = 8;     ///< payload that one channel works on, LL
  double bulk_start_us = 10;      ///< a collective of LL128 or Simple
  double ll128_step_us = 0.8;     ///< one rank to the next, LL128
  double ll128_share = 0.8;       ///< of the links' payload rate that one rank works on, LL128
  double simple_step_us = 3.6;    ///< one rank to the next, Simple
  double simple_share = 1.0;      ///< of the links' payload rate that is sent, Simple
  double reduce_share = 2.5;      ///< rate of what an all_reduce works on and does not send, over the links'
  double gather_share = 1.8;      ///< the same of all_gather and reduce_scatter
  double ramp_us = 0.01;          ///< times the square root of the microseconds on the wire: pipelines that fill
  double unaligned = 1.0;         ///< all_gather, all_to_all of shares that are no multiple of 16 bytes: times longer
  double nvls_start_us = 45;      ///< NVLS
  double nvls_share = 0.73;       ///< of the links' payload rate that a buffer goes through the switches with
  double nvls_ramp_us = 3;        ///< as ramp_us
  double pair_start_us = 4.2;     ///< a send and its receive, LL
  double pair_bulk_us = 2;        ///< more with Simple, of more than 16 KiB a peer
  double pair_fill_us = 6;        ///< times the square root of the microseconds on the wire, as ramp_us
  double pair_share = 1.0;        ///< of the links' payload rate
  double pair_channel_gb_s = 32;  ///< payload of one channel of a pair
  double peer_us = 0;             ///< all_to_all: each peer beyond the first
  double exchange_share = 0.91;   ///< all_to_all, of pair_share
};

/// Of NVLinks of GPUs of this architecture.
const NetworkConstants& network_constants(Architecture architecture);

/// Of a group whose slowest links are these: PCIe and the host's memory have classes of their own.
const NetworkConstants& network_constants(Architecture architecture, CollectiveLimiter links);

}  // namespace ridgeline
