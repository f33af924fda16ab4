// Memory of a problem: aligned, filled with seeded normal values or with NaN.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/problem.hpp"

namespace bench {

struct Tensor {
  std::string name;
  Type type = Type::f32;
  std::vector<std::int64_t> shape;
  std::shared_ptr<char> data;

  std::int64_t elements() const;
  /// The product of all dimensions but the last; a tensor is checked as this many rows.
  std::int64_t rows() const { return elements() / shape.back(); }
  float at(std::int64_t row, std::int64_t col) const;
};

/// mean + scale * a standard normal, rounded to the type; the same for the same name and shape.
Tensor normal(std::string name, Type type, std::vector<std::int64_t> shape, double scale = 1,
              double mean = 0);

/// All NaN, so that an element that nobody writes is found.
Tensor unwritten(Type type, std::vector<std::int64_t> shape);

}  // namespace bench
