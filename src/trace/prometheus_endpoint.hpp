// Serves the latest text to Prometheus on a port of this host. Used by `medley watch`.
#pragma once

#include <functional>
#include <string>

namespace medley::trace {

class PrometheusEndpoint {
 public:
  /// 0: no port; serve() then only waits. Throws Error(invalid) when the port cannot be had.
  explicit PrometheusEndpoint(int port);
  ~PrometheusEndpoint();
  PrometheusEndpoint(const PrometheusEndpoint&) = delete;
  PrometheusEndpoint& operator=(const PrometheusEndpoint&) = delete;

  /// Answers every request of the next `seconds` with `text`, or until `stop` says so.
  void serve(double seconds, const std::string& text, const std::function<bool()>& stop);

 private:
  void answer(const std::string& text);
  int socket_ = -1;
};

}  // namespace medley::trace
