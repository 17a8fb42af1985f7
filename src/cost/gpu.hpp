// A GPU's datasheet, one row of gpus.csv (compiled in). The GPU model starts from it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace medley::cost {

/// Properties of a GPU's kernels that its numbers do not give.
enum class Architecture : std::uint8_t { volta, ampere, ada, hopper, blackwell, cdna };

struct Gpu {
  std::string name;  ///< such as "h200-sxm"
  Architecture architecture = Architecture::ampere;
  int sms = 0;  ///< multiprocessors (compute units on AMD)
  double boost_mhz = 0;
  double bf16_tflops = 0;  ///< dense, by the datasheet; fp16 where there is no bf16
  double hbm_gb = 0;
  double hbm_gb_per_s = 0;
  double link_gb_per_s = 0;  ///< per direction
  double l2_mb = 0;
  double measured_tflops = 0;  ///< best published bf16 GEMM rate; 0 where unknown
  double power_share = 1;      ///< its power limit, relative to the one its architecture was measured with
  std::string notes;

  /// A multiple of this many fp16 elements fills the tensor cores: 128 bytes on A100 and newer, 16 on V100.
  int full_alignment() const noexcept { return architecture == Architecture::volta ? 8 : 64; }
  /// Whether matrix products copy with TMA, which needs rows of 16 bytes: misaligned ones fall back to older
  /// kernels.
  bool tma() const noexcept { return architecture == Architecture::hopper || architecture == Architecture::blackwell; }
  /// Whether frameworks use cuDNN's fused attention rather than FlashAttention 2.
  bool newest_attention() const noexcept { return tma(); }
};

/// Every GPU of the table, in table order.
const std::vector<Gpu>& all_gpus();
/// The GPU called `name`; throws medley::Error (invalid) that lists the names.
const Gpu& find_gpu(std::string_view name);

}  // namespace medley::cost
