// Pictures of a simulation: how active each engine is over time, and where the kernel stands under the roofline.
#pragma once

#include <cmath>

#include "neuron_kernels/sim/report.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace sim {

/// Activity of the engines in `columns` equal parts of a run, whose latency is known from a run before.
class Activity {
 public:
  Activity(double latency_ns, int columns = 480)
      : width_ns_(std::max(latency_ns, 1.0) / columns), columns_(static_cast<std::size_t>(columns)) {
    for (auto& engine : busy_) engine.resize(columns_);
  }
  void add(const Event& e) {
    double begin = e.start_ns;
    const double end = e.end_ns, weight = end > begin ? e.busy_ns / (end - begin) : 0;
    while (begin < end) {
      const auto column = std::min(static_cast<std::size_t>(begin / width_ns_), columns_ - 1);
      const double next =
          column + 1 == columns_ ? end : std::min(end, static_cast<double>(column + 1) * width_ns_);
      busy_[static_cast<std::size_t>(e.engine)][column] += weight * std::max(next - begin, 0.0);
      begin = std::max(next, std::nextafter(begin, end));
    }
  }
  double share(Engine e, int column) const {
    return std::min(1.0, busy_[static_cast<std::size_t>(e)][static_cast<std::size_t>(column)] / width_ns_);
  }
  int columns() const { return static_cast<int>(columns_); }

 private:
  double width_ns_;
  std::size_t columns_;
  std::array<std::vector<double>, engine_count> busy_{};
};

inline std::string svg_text(double x, double y, const std::string& s, const char* anchor = "start") {
  return text("<text x=\"", number(x), "\" y=\"", number(y), "\" text-anchor=\"", anchor, "\">", s,
              "</text>\n");
}
inline std::string svg_open(int width, int height) {
  return text("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width, "\" height=\"", height,
              "\" viewBox=\"0 0 ", width, " ", height,
              "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
              "fill=\"white\"/>\n");
}

/// One row per engine; the height of a column is the share of its time that the engine is active.
inline std::string timeline_svg(const Report& r, const Activity& activity) {
  constexpr int left = 80, top = 30, row = 46, bar = 36, width = 960;
  const double column = static_cast<double>(width) / activity.columns();
  std::string s = svg_open(left + width + 20, top + 5 * row + 30);
  s += svg_text(left, 18, text(r.chip, ", ", duration(r.latency_ns), ", MFU ", number(100 * r.mfu()), " %"));
  int y = top;
  for (const Engine e : all_engines) {
    s += svg_text(left - 8, y + bar / 2 + 4, name_of(e), "end");
    s += text("<rect x=\"", left, "\" y=\"", y, "\" width=\"", width, "\" height=\"", bar,
              "\" fill=\"#eee\"/>\n<path fill=\"#1f6fb2\" d=\"");
    for (int i = 0; i < activity.columns(); ++i) {
      const double h = bar * activity.share(e, i);
      if (h > 0.05)
        s += text("M", number(left + i * column, "%.2f"), " ", number(y + bar - h, "%.2f"), "h",
                  number(column, "%.2f"), "v", number(h, "%.2f"), "h", number(-column, "%.2f"), "z");
    }
    s += "\"/>\n";
    y += row;
  }
  s += svg_text(left, y + 12, "0") + svg_text(left + width, y + 12, duration(r.latency_ns), "end");
  return s + "</svg>\n";
}

/// Both axes logarithmic: FLOPs per byte of HBM traffic, TFLOPS.
inline std::string roofline_svg(const Report& r, const Limits& limits) {
  constexpr double left = 70, top = 30, width = 480, height = 320;
  const double peak = r.peak_flops_per_ns / 1e3, bandwidth = limits.dma_gb_per_s() / 1e3;  // TFLOPS, TB/s
  const double x_min = -1, x_max = 5, y_min = -2, y_max = std::ceil(std::log10(peak) + 0.1);
  const auto x = [&](double v) {
    return left + width * (std::clamp(std::log10(std::max(v, 1e-9)), x_min, x_max) - x_min) / (x_max - x_min);
  };
  const auto y = [&](double v) {
    return top + height * (y_max - std::clamp(std::log10(std::max(v, 1e-9)), y_min, y_max)) / (y_max - y_min);
  };
  std::string s = svg_open(static_cast<int>(left + width + 30), static_cast<int>(top + height + 50));
  s += svg_text(
      left, 18,
      text(r.chip, ": ", number(peak), " TFLOPS, ", number(1e3 * bandwidth, "%.0f"), " GB/s per core"));
  for (int e = static_cast<int>(x_min); e <= x_max; ++e) {
    const double at = x(std::pow(10, e));
    s += text("<path stroke=\"#ddd\" d=\"M", number(at), " ", number(top), "v", number(height), "\"/>\n",
              svg_text(at, top + height + 16, number(std::pow(10, e), "%g"), "middle"));
  }
  for (int e = static_cast<int>(y_min); e <= y_max; ++e) {
    const double at = y(std::pow(10, e));
    s += text("<path stroke=\"#ddd\" d=\"M", number(left), " ", number(at), "h", number(width), "\"/>\n",
              svg_text(left - 6, at + 4, number(std::pow(10, e), "%g"), "end"));
  }
  const double knee = peak / bandwidth, first = std::pow(10, x_min);
  s += text("<path fill=\"none\" stroke=\"#333\" stroke-width=\"2\" d=\"M", number(x(first)), " ",
            number(y(first * bandwidth)), "L", number(x(knee)), " ", number(y(peak)), "L",
            number(left + width), " ", number(y(peak)), "\"/>\n");
  const double reached = r.latency_ns > 0 ? r.useful_flops / r.latency_ns / 1e3 : 0;
  s += text("<circle r=\"5\" fill=\"#c0392b\" cx=\"", number(x(intensity(r))), "\" cy=\"", number(y(reached)),
            "\"/>\n");
  s += svg_text(x(intensity(r)) + 8, y(reached) + 16, text(number(reached), " TFLOPS"));
  s += svg_text(left + width / 2, top + height + 36, "FLOP per byte of HBM traffic", "middle");
  return s + svg_text(8, 18, "TFLOPS") + "</svg>\n";
}

}  // namespace sim
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
