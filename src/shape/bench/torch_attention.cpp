// Runs the PyTorch part of the measurements (bench/shape/torch_bench.py, compiled in) for `medley shape
// bench`.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <medley/error.hpp>
#include <string_view>

#include "shape/bench/gpu_bench.hpp"

namespace medley::embedded {
extern const std::string_view torch_bench_py, timing_py;
}
namespace medley::shape {
namespace {

/// A temporary folder, removed afterwards.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "medley-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw Error(ErrorKind::system, "cannot make a temporary folder");
    path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

bool measure_attention(const std::string& csv, double seconds) {
  const ScratchFolder folder;
  std::ofstream(folder.path() / "torch_bench.py") << embedded::torch_bench_py;
  std::ofstream(folder.path() / "timing.py") << embedded::timing_py;
  const std::string command =
      fmt::format("python3 '{0}/torch_bench.py' --out '{0}' --only attention --seconds {1} >/dev/null",
                  folder.path().string(), seconds);
  const auto measured = folder.path() / "attention.csv";
  if (std::system(command.c_str()) != 0 || !std::filesystem::exists(measured) ||
      std::filesystem::file_size(measured) < 100) {
    fmt::print(stderr, "attention was not measured: python3 with torch on this GPU is needed\n");
    return false;
  }
  std::filesystem::copy_file(measured, csv, std::filesystem::copy_options::overwrite_existing);
  return true;
}

}  // namespace medley::shape
