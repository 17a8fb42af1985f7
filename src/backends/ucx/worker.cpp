#include "backends/ucx/worker.hpp"

#include <ucs/config/global_opts.h>

#include <algorithm>
#include <cstdlib>

#include "backends/ucx/config.hpp"
#include "backends/ucx/endpoint.hpp"
#include "backends/ucx/lane.hpp"
#include "backends/ucx/notice.hpp"
#include "backends/ucx/status.hpp"
#include "backends/ucx/tag.hpp"

namespace medley::ucx {
namespace {

/// UCX logs errors to the program's standard output, where a result may be; Medley reports them itself.
void keep_quiet() {
  if (!std::getenv("UCX_LOG_LEVEL")) ucs_global_opts_set_value("LOG_LEVEL", "fatal");
}

ucp_context_h make_context(const BackendParams& params, std::size_t& copied) {
  keep_quiet();
  const bool one_host = std::count(params.hosts.begin(), params.hosts.end(), params.hosts.front()) == params.size;
  const Config config = read_config(one_host);
  copied = copied_below(config);
  ucp_params_t ucp_params{};
  ucp_params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME;
  ucp_params.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  ucp_params.estimated_num_eps = static_cast<std::size_t>(params.size);
  ucp_params.name = "medley";
  ucp_context_h context = nullptr;
  require(ucp_init(&ucp_params, config.get(), &context), "start");
  return context;
}

}  // namespace

Worker::Worker(const BackendParams& params) : context_(make_context(params, copied_below_)), event_count_(params) {
  try {
    make_worker();
  } catch (...) {
    if (worker_) ucp_worker_destroy(worker_);
    ucp_cleanup(context_);
    throw;
  }
}

void Worker::make_worker() {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  require(ucp_worker_create(context_, &params, &worker_), "make a worker");
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  require(ucp_worker_get_address(worker_, &address, &bytes), "find its own address");
  address_.assign(reinterpret_cast<const char*>(address), bytes);
  ucp_worker_release_address(worker_, address);
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = notice_id;
  handler.cb = on_notice;
  handler.arg = this;
  require(ucp_worker_set_am_recv_handler(worker_, &handler), "listen to notices");
  event_count_.attach(worker_);
}

Worker::~Worker() {
  // UCX asserts that a worker which is destroyed has nothing under way, and one that was stopped has.
  if (left_ || stopped_) return;
  ucp_worker_destroy(worker_);
  ucp_cleanup(context_);
}

void Worker::poll() {
  if (stopped_) return;
  ++polls_;
  if (ucp_worker_progress(worker_) != 0) {
    moved_ = true;
  } else if (event_count_.arm_wanted() && !event_count_.arm()) {
    moved_ = true;
  }
}

void Worker::route(std::uint16_t comm, UcxLane* lane) {
  const std::lock_guard lock(routes_mutex_);
  if (lane) {
    routes_[comm] = lane;
  } else {
    routes_.erase(comm);
  }
}

void Worker::drop_messages(ucp_tag_t tag, ucp_tag_t mask) {
  ucp_tag_recv_info_t info;
  while (ucp_tag_message_h message = ucp_tag_probe_nb(worker_, tag, mask, 1, &info)) {
    // A zero-length receive: UCX drops the data and completes the waiting sender.
    ucp_request_param_t param{};
    const ucs_status_ptr_t request = ucp_tag_msg_recv_nbx(worker_, nullptr, 0, message, &param);
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
  }
}

void Worker::stop(const Error& why) {
  stopped_ = why;
  const std::lock_guard lock(routes_mutex_);
  for (const auto& [comm, lane] : routes_) lane->wake_all();
}

/// Called by UCX, which is C: must not throw.
ucs_status_t Worker::on_notice(void* self, const void* header, std::size_t header_bytes, void*, std::size_t,
                               const ucp_am_recv_param_t*) noexcept {
  auto& worker = *static_cast<Worker*>(self);
  worker.moved_ = true;
  const std::optional<Notice> notice = Notice::unpack(header, header_bytes);
  if (!notice) return UCS_OK;
  const std::lock_guard lock(worker.routes_mutex_);
  const auto found = worker.routes_.find(notice->comm);
  if (found != worker.routes_.end()) found->second->given_up(*notice);
  return UCS_OK;
}

}  // namespace medley::ucx
