#include "backends/ucx/endpoint.hpp"

#include <memory>
#include <utility>

#include "backends/ucx/status.hpp"

namespace medley::ucx {

Endpoint::Endpoint(ucp_worker_h worker, const std::string& address, bool watched) : watched_(watched) {
  ucp_ep_params_t params{};
  params.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = watched ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
  params.err_handler.cb = on_error;
  params.err_handler.arg = this;
  require(ucp_ep_create(worker, &params, &endpoint_), "connect");
}

void Endpoint::on_error(void* self, ucp_ep_h, ucs_status_t) { static_cast<Endpoint*>(self)->failed_ = true; }

void Endpoint::tell(const std::string& notice) noexcept {
  if (failed_ || !endpoint_) return;
  auto kept = std::make_unique<std::string>(notice);  // UCX reads it until it is sent
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.user_data = kept.get();
  param.cb.send = [](void* request, ucs_status_t, void* text) {
    delete static_cast<std::string*>(text);
    ucp_request_free(request);
  };
  if (UCS_PTR_IS_PTR(ucp_am_send_nbx(endpoint_, notice_id, kept->data(), kept->size(), nullptr, 0, &param))) {
    static_cast<void>(kept.release());
  }
}

bool Endpoint::over(void*& request) noexcept {
  if (request == nullptr) return true;
  if (ucp_request_check_status(request) == UCS_INPROGRESS) return false;
  ucp_request_free(std::exchange(request, nullptr));
  return true;
}

bool Endpoint::flushed() noexcept {
  if (failed_ || !endpoint_) return true;
  if (!over(flush_)) return false;
  // The last flush did not cover what was sent after it began.
  ucp_request_param_t param;
  param.op_attr_mask = 0;
  const ucs_status_ptr_t result = ucp_ep_flush_nbx(endpoint_, &param);
  if (UCS_PTR_IS_PTR(result)) flush_ = result;
  connected_ = connected_ || result == nullptr;
  return flush_ == nullptr;
}

void Endpoint::close() noexcept {
  if (!endpoint_) return;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = watched_ ? UCP_EP_CLOSE_FLAG_FORCE : 0;
  const ucs_status_ptr_t result = ucp_ep_close_nbx(endpoint_, &param);
  if (UCS_PTR_IS_PTR(result)) close_ = result;
  endpoint_ = nullptr;
  failed_ = true;
}

void Endpoint::let_go() noexcept {
  if (flush_) ucp_request_free(std::exchange(flush_, nullptr));
  if (close_) ucp_request_free(std::exchange(close_, nullptr));
}

}  // namespace medley::ucx
