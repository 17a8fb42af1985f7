#include "shape/bench/cublaslt.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <medley/error.hpp>

namespace medley::shape {

struct CublasLt::Table {
  void* library = nullptr;
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetVersion) version = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) layout_set = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) config = nullptr;
};

namespace {

void* open_library() {
  // MEDLEY_CUBLASLT names a copy outside the loader's path, such as that of a Python package
  if (const char* named = std::getenv("MEDLEY_CUBLASLT"))
    if (void* library = dlopen(named, RTLD_NOW | RTLD_LOCAL)) return library;
  for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"})
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  throw Error(ErrorKind::unavailable,
              "cuBLASLt was not found: install CUDA's cublas, or name the file in MEDLEY_CUBLASLT");
}

template <typename F>
void resolve(void* library, const char* symbol, F& function) {
  function = reinterpret_cast<F>(dlsym(library, symbol));
  if (!function)
    throw Error(ErrorKind::unavailable, fmt::format("cuBLASLt lacks {}: version 12 or newer is needed", symbol));
}

void require(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(ErrorKind::system, fmt::format("cuBLASLt: {} failed with status {}", what, int(status)));
}

cudaDataType_t data_type(GemmType type) {
  constexpr std::array<cudaDataType_t, 3> types{CUDA_R_16BF, CUDA_R_16F, CUDA_R_8F_E4M3};
  return types[std::size_t(type)];
}

}  // namespace

CublasLt::CublasLt() : lib_(std::make_unique<Table>()) {
  Table& t = *lib_;
  t.library = open_library();
  resolve(t.library, "cublasLtCreate", t.create);
  resolve(t.library, "cublasLtDestroy", t.destroy);
  resolve(t.library, "cublasLtGetVersion", t.version);
  resolve(t.library, "cublasLtMatmul", t.matmul);
  resolve(t.library, "cublasLtMatmulDescCreate", t.desc_create);
  resolve(t.library, "cublasLtMatmulDescDestroy", t.desc_destroy);
  resolve(t.library, "cublasLtMatmulDescSetAttribute", t.desc_set);
  resolve(t.library, "cublasLtMatrixLayoutCreate", t.layout_create);
  resolve(t.library, "cublasLtMatrixLayoutDestroy", t.layout_destroy);
  resolve(t.library, "cublasLtMatrixLayoutSetAttribute", t.layout_set);
  resolve(t.library, "cublasLtMatmulPreferenceCreate", t.preference_create);
  resolve(t.library, "cublasLtMatmulPreferenceDestroy", t.preference_destroy);
  resolve(t.library, "cublasLtMatmulPreferenceSetAttribute", t.preference_set);
  resolve(t.library, "cublasLtMatmulAlgoGetHeuristic", t.heuristic);
  resolve(t.library, "cublasLtMatmulAlgoConfigGetAttribute", t.config);
  require(t.create(&handle_), "creating a handle");
}

CublasLt::~CublasLt() {
  if (handle_) lib_->destroy(handle_);
}

std::string CublasLt::version() const {
  const std::size_t v = lib_->version();  // 130100 is 13.1.0; 12 and older used 120805 likewise
  return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

PreparedGemm::PreparedGemm(const CublasLt& lib, const Gemm& g, int wanted, std::size_t workspace_bytes) : lib_(lib) {
  const auto& t = *lib.lib_;
  const bool fp8 = g.type == GemmType::fp8;
  const cudaDataType_t in = data_type(g.type), out = fp8 ? CUDA_R_16BF : in;
  const cublasOperation_t op_a = g.layout == GemmLayout::TN ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t op_b = g.layout == GemmLayout::NT ? CUBLAS_OP_T : CUBLAS_OP_N;
  require(t.desc_create(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describing a product");
  require(t.desc_set(operation_, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a), "setting the layout of A");
  require(t.desc_set(operation_, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof op_b), "setting the layout of B");
  const std::int8_t fast_sums = fp8;  // what fp8 training uses in forward
  if (fp8) require(t.desc_set(operation_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast_sums, 1), "setting fast accumulation");

  const auto describe = [&](cublasLtMatrixLayout_t& layout, cudaDataType_t type, std::int64_t rows, std::int64_t cols) {
    require(t.layout_create(&layout, type, std::uint64_t(rows), std::uint64_t(cols), rows), "describing a matrix");
    const std::int32_t batch = std::int32_t(g.batch);
    const std::int64_t stride = rows * cols;
    require(t.layout_set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch), "setting the batch");
    require(t.layout_set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
            "setting the stride");
  };
  describe(a_, in, op_a == CUBLAS_OP_T ? g.k : g.m, op_a == CUBLAS_OP_T ? g.m : g.k);
  describe(b_, in, op_b == CUBLAS_OP_T ? g.n : g.k, op_b == CUBLAS_OP_T ? g.k : g.n);
  describe(c_, out, g.m, g.n);

  cublasLtMatmulPreference_t preference = nullptr;
  require(t.preference_create(&preference), "making a preference");
  t.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes, sizeof workspace_bytes);
  found_.resize(std::size_t(wanted));
  int returned = 0;
  const auto status =
      t.heuristic(lib.handle_, operation_, a_, b_, c_, c_, preference, wanted, found_.data(), &returned);
  t.preference_destroy(preference);
  found_.resize(status == CUBLAS_STATUS_SUCCESS ? std::size_t(returned) : 0);
}

PreparedGemm::~PreparedGemm() {
  const auto& t = *lib_.lib_;
  if (c_) t.layout_destroy(c_);
  if (b_) t.layout_destroy(b_);
  if (a_) t.layout_destroy(a_);
  if (operation_) t.desc_destroy(operation_);
}

GemmAlgorithm PreparedGemm::algorithm(int i) const {
  const auto get = [&](cublasLtMatmulAlgoConfigAttributes_t attribute, std::size_t bytes) {
    std::uint32_t value = 0;  // little endian: a 16-bit attribute fills the low half
    lib_.lib_->config(&found_[std::size_t(i)].algo, attribute, &value, bytes, nullptr);
    return int(value);
  };
  return {.id = get(CUBLASLT_ALGO_CONFIG_ID, 4),
          .tile = get(CUBLASLT_ALGO_CONFIG_TILE_ID, 4),
          .stages = get(CUBLASLT_ALGO_CONFIG_STAGES_ID, 4),
          .split = get(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4),
          .cluster = get(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2),
          .swizzle = get(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4)};
}

void PreparedGemm::launch(int i, const void* a, const void* b, void* c, void* workspace, std::size_t workspace_bytes,
                          CUstream_st* stream) const {
  const float one = 1, zero = 0;
  require(lib_.lib_->matmul(lib_.handle_, operation_, &one, a, a_, b, b_, &zero, c, c_, c, c_,
                            &found_[std::size_t(i)].algo, workspace, workspace_bytes, stream),
          "a matrix product");
}

}  // namespace medley::shape
