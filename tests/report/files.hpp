// A folder as Medley's commands leave it, with small made-up figures: for the tests of the collector, and for
// the page that the browser test opens.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <stdexcept>
#include <string>

#include "trace/files.hpp"

namespace medley::report::test {

namespace fs = std::filesystem;

/// A folder that is deleted with the test.
class Scratch {
 public:
  Scratch() {
    std::string pattern = fs::temp_directory_path() / "medley-report-XXXXXX";
    if (!mkdtemp(pattern.data())) throw std::runtime_error("no folder " + pattern);
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

inline void write(const fs::path& file, std::string_view text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

/// One file of each command that measures, by name. Times are chosen so that auto is 1.25× faster on "moe" and no
/// faster on "dense".
inline const std::map<std::string, std::string>& samples() {
  static const std::map<std::string, std::string> all{
      {"info.json",
       R"({"version": "0.1.0", "cores": 2, "operations": ["send", "all_reduce"], "dtypes": ["f32"], "reductions": ["sum"],
 "backends": [
  {"name": "shm", "available": true, "reason": "", "version": "with direct reads", "memory": ["host"], "ops": {"send": "native", "all_reduce": "native"}},
  {"name": "nccl", "available": false, "reason": "this machine has no NVIDIA driver", "version": "", "memory": [], "ops": {}}]})"},
      {"bench.json", R"({"ranks": 2, "hosts": 1, "clock": "common", "table": "", "rows": [
 {"op": "all_reduce", "backend": "shm", "algorithm": "native", "memory": "host", "dtype": "f32", "counts": "", "bytes": 64, "median_us": 0.5, "mad_us": 0.1, "p99_us": 1, "algbw": 0.1, "busbw": 0.1, "iterations": 100, "batch": 1, "fastest": true},
 {"op": "all_reduce", "backend": "shm", "algorithm": "native", "memory": "host", "dtype": "f32", "counts": "", "bytes": 65536, "median_us": 20, "mad_us": 2, "p99_us": 30, "algbw": 3, "busbw": 3, "iterations": 100, "batch": 1, "fastest": true},
 {"op": "all_reduce", "backend": "mpi", "algorithm": "ring", "memory": "host", "dtype": "f32", "counts": "", "bytes": 64, "median_us": 2, "mad_us": 0.1, "p99_us": 3, "algbw": 0.1, "busbw": 0.1, "iterations": 100, "batch": 1, "fastest": false},
 {"op": "all_reduce", "backend": "mpi", "algorithm": "ring", "memory": "host", "dtype": "f32", "counts": "", "bytes": 65536, "median_us": 30, "mad_us": 3, "p99_us": 50, "algbw": 2, "busbw": 2, "iterations": 100, "batch": 1, "fastest": false},
 {"op": "all_to_all", "backend": "shm", "algorithm": "native", "memory": "host", "dtype": "f32", "counts": "", "bytes": 64, "median_us": 0.7, "mad_us": 0.1, "p99_us": 1, "algbw": 0.1, "busbw": 0.1, "iterations": 100, "batch": 1, "fastest": true}]})"},
      {"mixes.json", R"({"ranks": 4, "hosts": 2, "table": "1c473a1e063ed516", "mixes": [
 {"mix": "moe", "backend": "mpi", "memory": "host", "median_us": 1000, "mad_us": 10, "p99_us": 1200, "iterations": 50, "speedup": 1},
 {"mix": "moe", "backend": "gloo", "memory": "host", "median_us": 9000, "mad_us": 900, "p99_us": 12000, "iterations": 50, "speedup": 0.1},
 {"mix": "moe", "backend": "shm+mpi", "memory": "host", "median_us": 900, "mad_us": 10, "p99_us": 1200, "iterations": 50, "speedup": 1.1},
 {"mix": "moe", "backend": "auto", "memory": "host", "median_us": 800, "mad_us": 10, "p99_us": 1000, "iterations": 50, "speedup": 1.25},
 {"mix": "dense", "backend": "mpi", "memory": "host", "median_us": 500, "mad_us": 5, "p99_us": 600, "iterations": 50, "speedup": 1},
 {"mix": "dense", "backend": "auto", "memory": "host", "median_us": 500, "mad_us": 5, "p99_us": 600, "iterations": 50, "speedup": 1}]})"},
      {"routes.json",
       R"({"medley_routes": 2, "machine": {"cpu": "a processor", "cores": 2, "gpu": "", "fabric": "", "libraries": {"shm": "1", "mpi": "Open MPI 4.1.4"}},
 "step": {"mpi": 1000, "shm": 1300}, "auto_us": 800,
 "tuned_for": {"step": "moe", "operations": "f6b88ae4b7e67417", "hosts": 1, "ranks_per_host": 2, "memory": "host", "library": "", "gain": 1.25, "gain_low": 1.2, "gain_high": 1.3,
  "confidence": 0.99, "settled": true,
  "times": [{"name": "auto", "median_us": 800, "low_us": 790, "high_us": 820, "samples": 60}, {"name": "mpi", "median_us": 1000, "low_us": 980, "high_us": 1010, "samples": 60},
   {"name": "shm", "median_us": 1300, "low_us": 1200, "high_us": 1400, "samples": 20}],
  "routes": [{"op": "all_reduce", "dtype": "float", "hosts": 1, "ranks_per_host": 2, "from": 0, "to": 9223372036854775807, "backend": "shm", "algorithm": "native"},
   {"op": "all_to_all", "dtype": "any", "hosts": 1, "ranks_per_host": 2, "from": 0, "to": 9223372036854775807, "backend": "mpi", "algorithm": "native"}]},
 "cells": [
 {"op": "all_reduce", "bytes": 64, "hosts": 1, "ranks_per_host": 2, "memory": "host", "dtype": "float", "confidence": 0.99, "routes": [
   {"backend": "shm", "algorithm": "native", "median_us": 0.5, "low_us": 0.4, "high_us": 0.6, "samples": 200, "slower": 0.0},
   {"backend": "mpi", "algorithm": "native", "median_us": 2.0, "low_us": 1.8, "high_us": 2.2, "samples": 180, "slower": 1.0}]},
 {"op": "all_reduce", "bytes": 4096, "hosts": 1, "ranks_per_host": 2, "memory": "host", "dtype": "float", "confidence": 0.9, "routes": [
   {"backend": "mpi", "algorithm": "ring", "median_us": 3.0, "low_us": 2.8, "high_us": 3.2, "samples": 180, "slower": 0.0},
   {"backend": "shm", "algorithm": "native", "median_us": 3.3, "low_us": 3.1, "high_us": 3.5, "samples": 200, "slower": 0.9}]},
 {"op": "broadcast", "bytes": 64, "hosts": 1, "ranks_per_host": 2, "memory": "host", "dtype": "any", "confidence": 0.99, "routes": [
   {"backend": "shm", "algorithm": "native", "median_us": 0.3, "low_us": 0.2, "high_us": 0.4, "samples": 200, "slower": 0.0}]}],
 "fusion": [{"memory": "host", "hosts": 1, "ranks_per_host": 2, "sizes": [
   {"bytes": 64, "separate_us": 40, "fused_us": 10}, {"bytes": 1024, "separate_us": 45, "fused_us": 20}, {"bytes": 16384, "separate_us": 90, "fused_us": 120}]}]})"},
      {"replay.json",
       R"({"schedule": "</script><img src=x onerror=alert(1)>.json", "ranks": 2, "scale": 1.0, "step_us": {"shm": 20000, "auto": 18000},
 "predicted_us": {"shm": 21000}, "calibrated_us": {"shm": 19000, "auto": 18500}, "rank": 0, "rows": [], "totals": {}})"},
      {"reconcile.json",
       R"({"source": "/data/trace/", "format": "medley", "matched": 3, "unexplained": 1, "differences": [
 {"rank": 0, "steps": [1], "verdict": "field", "op": "all_reduce", "group": "dp", "expected": {"bytes": 4096, "count": 1}, "observed": {"bytes": 2048, "count": 1}, "cause": "ZeRO stage 0 ran, not 1"},
 {"rank": 1, "steps": [1], "verdict": "field", "op": "all_reduce", "group": "dp", "expected": {"bytes": 4096, "count": 1}, "observed": {"bytes": 2048, "count": 1}, "cause": "ZeRO stage 0 ran, not 1"},
 {"verdict": "ranks", "op": "", "group": "", "expected": null, "observed": null, "detail": "rank 3 left no trace", "cause": ""}],
 "hypotheses": [{"hypothesis": "ZeRO stage 0 ran, not 1", "parameters": 1, "rows": 2, "accepted": true}], "ranks": [],
 "time": [], "exposed": [{"cause": "late_rank", "us": 900, "exposed": true, "sentence": "the program waits 0.90 ms a step because rank 1 is late"},
  {"cause": "slow", "us": 100, "exposed": true, "sentence": "the all_reduces of 4096 B on dp take 1.4 times as long as predicted"}],
 "time_summary": {"expected_by": "dgx-h200", "ranks": 2, "steps": 3, "step_us": 4000, "exposed_us": 1000,
  "causes": {"late_rank": 900, "queue": 0, "order": 0, "slow": 100, "overlap": 0, "blocking": 0, "unknown": 0}, "remarks": ["3 operations have no expected time"]}})"},
      {"plan.json",
       R"({"model": {"name": "pythia-70m", "hidden": 512}, "layout": {"world": 8, "dp": 4, "tp": 2, "pp": 1, "cp": 1, "ep": 1, "zero": 1}, "framework": "neox",
 "world": 8, "rank": 0, "rows": [], "totals": {"dp": {"bytes": 4096, "wire_bytes": 6144, "count": 2}, "tp": {"bytes": 64, "wire_bytes": 64, "count": 4}},
 "histogram": [{"low": 16, "count": 4, "bytes": 64}, {"low": 2048, "count": 2, "bytes": 4096}], "small": {"limit": 65536, "share_of_count": 1, "share_of_bytes": 1},
 "textbook": {"dp": 4096}, "machine": "dgx-h200", "step_us": 1000, "breakdown": {"compute": 900, "tp": 60, "dp": 40}})"},
      {"shape.json",
       R"({"model": "gpt2-xl", "gpu": "h200-sxm", "calibrated": true, "step_us": 80000, "tflops_per_gpu": 117, "efficiency": 0.14, "gemms": [
 {"name": "logits forward", "block": "head", "pass": "forward", "count": 1, "m": 1024, "n": 50257, "k": 1600, "batch": 1, "layout": "TN", "predicted_us": 1700, "tflops": 96, "efficiency": 0.11, "lost_to": "alignment", "lost_us": {"alignment": 1400, "tile": 10}},
 {"name": "qkv forward", "block": "layer", "pass": "forward", "count": 48, "m": 1024, "n": 4800, "k": 1600, "batch": 1, "layout": "TN", "predicted_us": 25, "tflops": 618, "efficiency": 0.72, "lost_to": "launch", "lost_us": {"alignment": 0, "tile": 2}}],
 "advice": [{"rule": "vocabulary divisible by 64", "rule_number": 1, "knob": "vocab", "was": 50257, "now": 50304, "gain": 0.04, "gain_text": "4.0 % faster", "parameters_change": 0.001, "why": "the logits lose less"}]})"},
      {"vocab.json", R"({"gpu": "h200-sxm", "sustained": false, "calibrated": true, "model": "fit", "rows": [
 {"m": 2048, "n": 50257, "k": 1600, "predicted_us": 3000, "tflops": 100, "efficiency": 0.1, "lost_to": "alignment"},
 {"m": 2048, "n": 50304, "k": 1600, "predicted_us": 400, "tflops": 790, "efficiency": 0.8, "lost_to": "wave"}]})"},
      {"lint.json",
       R"({"file": "gpt2-xl", "gpu": "h200-sxm", "calibrated": true, "allow": 0.05, "findings": [{"file": "gpt2-xl", "key": "vocab_size", "value": 50257, "better": 50264, "waste": 0.14, "why": "the logits lose less"}]})"},
      {"search.json", R"({"model": "gpt3-2.7b", "gpu": "h200-sxm", "calibrated": true, "candidates": 3691,
 "given": {"hidden": 2560, "heads": 32, "head_dim": 80, "layers": 32, "ffn": 10240, "vocab": 50257, "parameters_change": 0, "gain": 0, "gain_text": "0.0 % faster", "efficiency": 0.5},
 "pareto": [{"hidden": 2816, "heads": 22, "head_dim": 128, "layers": 26, "ffn": 11296, "vocab": 50264, "parameters_change": -0.009, "gain": 0.26, "gain_text": "26.0 % faster", "efficiency": 0.7}],
 "best_per_parameter": {"hidden": 2816, "heads": 22, "head_dim": 128, "layers": 26, "ffn": 11296, "vocab": 50304, "parameters_change": 0.003, "gain": 0.25, "gain_text": "25.0 % faster", "efficiency": 0.7}})"}};
  return all;
}

/// A recording of `ranks` ranks with this many operations each: consecutive all_reduces, every eighth an all_to_all,
/// with sizes that have no period: the whole is one step.
inline void write_trace(const fs::path& folder, int ranks, std::size_t operations) {
  fs::create_directories(folder);
  for (int rank = 0; rank < ranks; ++rank) {
    trace::test::File file;
    file.header.rank = rank;
    file.header.size = ranks;
    file.header.capacity = operations;
    file.header.start_monotonic_ns = 1000;
    file.records.reserve(operations);
    std::mt19937 random(1);  // every rank the same sizes
    for (std::size_t i = 0; i < operations; ++i) {
      const std::int64_t count = std::int64_t{16} << random() % 12;
      file.add(i % 8 == 7 ? Op::all_to_all : Op::all_reduce, count, count);
    }
    const std::vector<std::byte> bytes = file.bytes();
    write(folder / ("rank-000" + std::to_string(rank) + ".trace"),
          {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
}

inline void write_all(const fs::path& folder, std::size_t operations) {
  for (const auto& [name, text] : samples()) write(folder / name, text);
  write_trace(folder / "trace", 2, operations);
  write(folder / "skipped.txt", "-- skipped: two hosts made of network namespaces: it needs root\n");
}

}  // namespace medley::report::test
