#include "cli/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace medley::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto quick = 500ms;          // work that takes less shows nothing
constexpr auto between_draws = 100ms;  // more often only costs time

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

/// Columns of the terminal; a longer line would wrap, and could not be taken away.
std::size_t columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// The first characters of UTF-8 text.
std::string cut(const std::string& text, std::size_t most) {
  std::size_t bytes = 0, characters = 0;
  for (; bytes < text.size(); ++bytes) {
    const bool begins = (static_cast<unsigned char>(text[bytes]) & 0xC0) != 0x80;
    if (begins && ++characters > most) break;
  }
  return text.substr(0, bytes);
}

}  // namespace

bool on_terminal(std::FILE* stream) {
  const char* kind = std::getenv("TERM");
  return isatty(fileno(stream)) == 1 && kind && std::strcmp(kind, "dumb") != 0;
}

std::string alarming(const std::string& text, std::FILE* stream) {
  if (!on_terminal(stream) || is_set("NO_COLOR")) return text;
  return "\033[1;31m" + text + "\033[0m";
}

std::string bar_text(double done, double of, double seconds, const std::string& now) {
  const double part = of > 0 ? std::clamp(done / of, 0.0, 1.0) : 0;
  std::string bar(30, ' ');
  std::fill_n(bar.begin(), static_cast<std::ptrdiff_t>(part * 30), '#');
  std::string text = fmt::format("[{}] {:3.0f} %", bar, 100 * part);
  if (part > 0.02 && part < 1) text += fmt::format(", {:.0f} s left", seconds * (1 - part) / part);
  return now.empty() ? text : text + ", " + now;
}

ProgressBar::ProgressBar(bool active) : active_(active && on_terminal(stderr)) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::show(double done, double of, const std::string& now) {
  const auto time = Clock::now();
  if (!active_ || time - began_ < quick || time - drawn_ < between_draws) return;
  const double seconds = std::chrono::duration<double>(time - began_).count();
  fmt::print(stderr, "\r{}\033[K", cut(bar_text(done, of, seconds, now), columns() - 1));
  std::fflush(stderr);
  drawn_ = time;
  visible_ = true;
}

std::function<void(std::size_t, std::size_t)> ProgressBar::counting(std::string things) {
  return [this, things = std::move(things)](std::size_t done, std::size_t of) {
    show(static_cast<double>(done), static_cast<double>(of), fmt::format("{} of {} {}", done, of, things));
  };
}

void ProgressBar::clear() {
  if (!visible_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  visible_ = false;
}

}  // namespace medley::cli
