#include "tensors.hpp"

#include "torch_error.hpp"

namespace medley::torch {

Element moved_as(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return {DType::f64};
    case at::kFloat:
      return {DType::f32};
    case at::kHalf:
      return {DType::f16};
    case at::kBFloat16:
      return {DType::bf16};
    case at::kLong:
    case at::kUInt64:
      return {DType::i64};
    case at::kInt:
    case at::kUInt32:
      return {DType::i32};
    case at::kShort:
    case at::kUInt16:
      return {DType::i16};
    case at::kChar:
      return {DType::i8};
    case at::kByte:
      return {DType::u8};
    case at::kBool:
      return {DType::boolean};
    case at::kComplexFloat:
      return {DType::f32, 2};
    case at::kComplexDouble:
      return {DType::f64, 2};
    default:
      return {DType::u8, static_cast<std::int64_t>(c10::elementSize(type))};
  }
}

Element reduced_as(const char* operation, at::ScalarType type, ReduceOp op) {
  const bool linear = op == ReduceOp::sum || op == ReduceOp::avg;
  const bool bitwise = op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
  const Element element = moved_as(type);
  bool defined = element.dtype != DType::u8 || type == at::kByte;
  if (element.factor == 2) defined = linear;  // the parts of complex numbers add separately
  // Two's complement adds and multiplies unsigned numbers correctly, but does not order them.
  if (type == at::kUInt64 || type == at::kUInt32 || type == at::kUInt16)
    defined = op == ReduceOp::sum || op == ReduceOp::product || bitwise;
  require(defined, operation, ": ", name(op), " is not defined for tensors of type ", c10::toString(type));
  return element;
}

ReduceOp reduction(const c10d::ReduceOp& op) {
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
    case c10d::ReduceOp::PREMUL_SUM:
      return ReduceOp::sum;
    case c10d::ReduceOp::AVG:
      return ReduceOp::avg;
    case c10d::ReduceOp::PRODUCT:
      return ReduceOp::product;
    case c10d::ReduceOp::MIN:
      return ReduceOp::min;
    case c10d::ReduceOp::MAX:
      return ReduceOp::max;
    case c10d::ReduceOp::BAND:
      return ReduceOp::band;
    case c10d::ReduceOp::BOR:
      return ReduceOp::bor;
    case c10d::ReduceOp::BXOR:
      return ReduceOp::bxor;
    default:
      throw TorchError(
          Error(ErrorKind::invalid, c10::str("unknown reduction ", static_cast<int>(op.op_))));
  }
}

void premultiply(const at::Tensor& tensor, const c10d::ReduceOp& op) {
  const at::NoGradGuard no_grad;
  const auto* factor = static_cast<const c10d::NCCLPreMulSumSupplement*>(
      op.supplement_.get());  // torch 2.11 has only this name
  if (factor->tensor_factor.defined()) {
    tensor.mul_(factor->tensor_factor);
  } else {
    tensor.mul_(factor->double_factor);
  }
}

Buffer buffer_of(const at::Tensor& tensor, Element element) {
  return {tensor.data_ptr(), tensor.numel() * element.factor, element.dtype,
          tensor.is_cuda() ? Memory::cuda : Memory::host,
          tensor.is_cuda() ? static_cast<int>(tensor.get_device()) : 0};
}

ConstBuffer const_buffer_of(const at::Tensor& tensor, Element element) {
  return {tensor.const_data_ptr(), tensor.numel() * element.factor, element.dtype,
          tensor.is_cuda() ? Memory::cuda : Memory::host,
          tensor.is_cuda() ? static_cast<int>(tensor.get_device()) : 0};
}

namespace {

bool one_after_another(const std::vector<at::Tensor>& tensors) {
  const char* end = static_cast<const char*>(tensors.front().const_data_ptr());
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.is_contiguous() || !tensor.storage().is_alias_of(tensors.front().storage()) ||
        tensor.const_data_ptr() != end)
      return false;
    end += tensor.nbytes();
  }
  return true;
}

at::Tensor flat_view(const std::vector<at::Tensor>& tensors) {
  std::int64_t count = 0;
  for (const at::Tensor& tensor : tensors) count += tensor.numel();
  return tensors.front().as_strided({count}, {1});
}

}  // namespace

at::Tensor Staging::keep(at::Tensor tensor) {
  kept_.push_back(tensor);
  return tensor;
}

at::Tensor Staging::in(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  return keep(tensor.contiguous().resolve_conj().resolve_neg());
}

at::Tensor Staging::out(const at::Tensor& tensor, bool keep_content) {
  if (tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg()) return keep(tensor);
  const at::NoGradGuard no_grad;
  at::Tensor staged = keep_content ? tensor.resolve_conj().resolve_neg().contiguous()
                                   : at::empty(tensor.sizes(), tensor.options());
  copies_.emplace_back(keep(tensor), keep(staged));
  return staged;
}

at::Tensor Staging::flat_in(const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  if (one_after_another(tensors)) return keep(flat_view(tensors));
  std::vector<at::Tensor> rows;
  for (const at::Tensor& tensor : tensors) rows.push_back(tensor.reshape({-1}));
  return keep(at::cat(rows));
}

at::Tensor Staging::flat_out(const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  if (one_after_another(tensors)) return keep(flat_view(tensors));
  std::int64_t count = 0, at = 0;
  for (const at::Tensor& tensor : tensors) count += tensor.numel();
  const at::Tensor flat = keep(at::empty({count}, tensors.front().options()));
  for (const at::Tensor& tensor : tensors) {
    copies_.emplace_back(keep(tensor), flat.narrow(0, at, tensor.numel()).view(tensor.sizes()));
    at += tensor.numel();
  }
  return flat;
}

std::function<void()> Staging::finish() const {
  if (copies_.empty()) return {};
  return [copies = copies_] {
    const at::NoGradGuard no_grad;
    for (const auto& [to, from] : copies) to.copy_(from);
  };
}

void check_tensors(const char* operation, const std::vector<at::Tensor>& tensors) {
  require(!tensors.empty(), operation, ": needs at least one tensor");
  for (const at::Tensor& tensor : tensors) {
    require(tensor.layout() == at::kStrided, operation, ": takes dense tensors, not ",
            tensor.layout());
    require(tensor.is_cpu() || tensor.is_cuda(), operation,
            ": takes CPU and CUDA tensors, not ", tensor.device());
    require(tensor.scalar_type() == tensors.front().scalar_type(), operation,
            ": got tensors of types ", tensors.front().scalar_type(), " and ", tensor.scalar_type());
    require(tensor.device() == tensors.front().device(), operation, ": got tensors on ",
            tensors.front().device(), " and ", tensor.device());
  }
}

const at::Tensor& single(const char* operation, const std::vector<at::Tensor>& tensors) {
  require(tensors.size() == 1, operation, ": takes one tensor per rank, got ", tensors.size());
  check_tensors(operation, tensors);
  return tensors.front();
}

}  // namespace medley::torch
