// to_json(program): a Program as one JSON document; docs/program.md describes it, json.hpp reads it.
//
// Needs nothing but the standard library, so that kernels which write themselves down compile fast.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

#include "neuron_kernels/core/error.hpp"
#include "neuron_kernels/record/json_fields.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

/// Appends text in quotes.
inline void append_quoted(std::string& out, std::string_view s) {
  out += '"';
  for (const char c : s) {
    if (static_cast<unsigned char>(c) < 32) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  out += '"';
}

class JsonWriter {
 public:
  /// One object on one line.
  template <class T>
  static void append(std::string& out, const T& value) {
    JsonWriter writer(out);
    out += '{';
    fields(writer, value, value);
    out += '}';
  }

  template <class T>
  void operator()(std::string_view key, const T& value) {
    out_ += first_ ? "\"" : ", \"";
    first_ = false;
    out_ += key;
    out_ += "\": ";
    put(value);
  }
  template <class T>
  void operator()(std::string_view key, const T& value, const T& otherwise) {
    if (!same(value, otherwise)) (*this)(key, value);
  }

 private:
  explicit JsonWriter(std::string& out) : out_(out) {}

  // These two say nothing about what a Program does, and therefore are always equal.
  static bool same(const SourceLine& a, const SourceLine& b) { return a.file == b.file; }
  static bool same(const Placement& a, const Placement& b) { return a.buffers == b.buffers; }
  template <class T>
  static bool same(const T& a, const T& b) {
    return a == b;
  }

  template <class T>
  void put(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      append_quoted(out_, spelled<T>[static_cast<std::size_t>(value)]);
    } else if constexpr (std::is_same_v<T, bool>) {
      out_ += value ? "true" : "false";
    } else if constexpr (std::is_integral_v<T>) {
      neuron_kernels::append(out_, value);
    } else {
      append(out_, value);
    }
  }
  void put(const std::string& value) { append_quoted(out_, value); }
  void put(float v) {
    if (std::isnan(v)) {
      out_ += "\"nan\"";
    } else if (std::isinf(v)) {
      out_ += v < 0 ? "\"-inf\"" : "\"inf\"";
    } else if (v == 0.f) {
      out_ += std::signbit(v) ? "-0.0" : "0";
    } else {
      char digits[32];
      const auto [end, error] = std::to_chars(digits, digits + sizeof digits, v);
      out_.append(digits, end);
    }
  }
  void put(const Scalar& k) { k.tile.given() ? put(k.tile) : put(k.value); }
  void put(const Condition& c) {
    if (c.op == Compare::never || c.op == Compare::always) return put(c.op == Compare::always);
    append(out_, c);
  }
  void put(const SourceLine& w) {
    const int pair[] = {w.file, w.line};
    put(pair, 2);
  }
  template <class Array, class Int>
  void put(const Prefix<Array, Int>& p) {
    put(p.values, p.n);
  }
  template <class Int>
  void put(const Pair<Int>& p) {
    const std::int64_t pair[] = {p.first, p.second};
    put(pair, 2);
  }
  template <class Array>
  void put(const Array& values, int n) {
    out_ += '[';
    for (int i = 0; i < n; ++i) {
      if (i != 0) out_ += ", ";
      put(values[static_cast<std::size_t>(i)]);
    }
    out_ += ']';
  }

  std::string& out_;
  bool first_ = true;
};

template <class T>
void append_list(std::string& out, const char* key, const std::vector<T>& list) {
  append(out, text(",\n\"", key, "\": ["));
  for (std::size_t i = 0; i < list.size(); ++i) {
    out += i == 0 ? "\n  " : ",\n  ";
    if constexpr (std::is_same_v<T, std::string>) {
      append_quoted(out, list[i]);
    } else {
      JsonWriter::append(out, list[i]);
    }
  }
  out += ']';
}

}  // namespace record

/// One document, one line for each element of a list. Tensors, tiles, loops and expressions are named by position.
inline std::string to_json(const Program& program) {
  std::string out = text("{\n\"schema\": ", record::program_schema, ",\n\"chip\": ");
  record::append_quoted(out, program.chip);
  record::append_list(out, "files", program.files);
  record::append_list(out, "tensors", program.tensors);
  record::append_list(out, "tiles", program.tiles);
  record::append_list(out, "exprs", program.exprs);
  record::append_list(out, "loops", program.loops);
  record::append_list(out, "ops", program.ops);
  out += "\n}\n";
  return out;
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
