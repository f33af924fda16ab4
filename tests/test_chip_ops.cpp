// Ops that shape a kernel for the chip's engines, on Host: their scalar meaning, by dtype and page, and the
// errors of Host and Recorder.
#include "recording.hpp"

namespace test {
namespace {

using nk::Host;
using nk::TileError;

/// Runs body(nc, hbms of x, y, z) on Host, on each page; x is normal, y and z are written.
template <class Body, class Want>
void on_host(const std::string& op, DType dtype, const Shape& x_shape, const Shape& y_shape, const Body& body,
             const Want& want) {
  for (const nk::host::Page* page : nk::host::all_pages()) {
    Random random(3);
    Tensor x = Tensor::normal(random, dtype, x_shape), y(dtype, y_shape), z(DType::f32, {x_shape[0], 1});
    nk::host::ArenaScope scope;
    Host nc(*page, scope.arena);
    body(nc, Host::Hbm(nk::ConstView(x.view())), Host::Hbm(y.view()), Host::Hbm(z.view()));
    check(y.outside_untouched() && z.outside_untouched(), op, nk::text(page->name, ": wrote outside"));
    want(x.rows(), y.rows(), z);
  }
}

const std::vector<Shape> shapes = {{1, 1}, {1, 7}, {5, 1}, {3, 8}, {13, 33}};

TEST_CASE("transpose: into SBUF and PSUM, whole and as a part") {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const Shape& s : shapes) {
      for (const bool psum : {false, true}) {
        const int p = static_cast<int>(s[0]), f = static_cast<int>(s[1]);
        on_host(
            "transpose", dtype, s, {s[1], s[0]},
            [&](Host& nc, const Host::Hbm& x, const Host::Hbm& y, const Host::Hbm&) {
              auto array =
                  psum ? nc.psum_array("t", 2, f, 2 * p, dtype) : nc.sbuf_array("t", 2, f, 2 * p, dtype);
              const auto dst = array[1].free(p, p);
              nc.transpose(dst, nc.load("x", x));
              auto copied = nc.sbuf("copied", f, p, dtype);
              nc.copy(copied, dst, {.engine = nk::Engine::scalar});
              nc.store(y, copied, {.dge = nk::Dge::none});
            },
            [&](const Matrix& x, const Matrix& y, const Tensor&) { CHECK(y == x.transpose()); });
      }
    }
  }
}

TEST_CASE("scan: a running value along each row, from a number or a column") {
  for (const Shape& s : shapes) {
    for (const bool column : {false, true}) {
      const int p = static_cast<int>(s[0]), f = static_cast<int>(s[1]);
      on_host(
          "scan", DType::f32, s, s,
          [&](Host& nc, const Host::Hbm& x, const Host::Hbm& y, const Host::Hbm&) {
            const auto a = nc.load("a", x);
            auto half = nc.sbuf("half", p, f, DType::f32), first = nc.sbuf("first", p, 1, DType::f32);
            nc.tensor_scalar(half, a, Alu::multiply, 0.5f, {.engine = nk::Engine::gpsimd});
            nc.copy(first, a.free(0, 1));
            nc.scan(half, half, Alu::multiply, column ? nk::Operand<Host::Tile>(first) : 2.f, Alu::add, a);
            nc.store(y, half);
          },
          [&](const Matrix& x, const Matrix& y, const Tensor&) {
            for (Eigen::Index i = 0; i < x.rows(); ++i) {
              float last = column ? static_cast<float>(x(i, 0)) : 2.f;
              for (Eigen::Index j = 0; j < x.cols(); ++j) {
                const auto v = static_cast<float>(x(i, j));
                const volatile float product = 0.5f * v * last;  // no contraction
                last = product + v;
                CHECK(static_cast<float>(y(i, j)) == last);
              }
            }
          });
    }
  }
}

TEST_CASE("tensor_scalar_reduce: the result and its maximum, minimum or sum before rounding") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Alu op : {Alu::max, Alu::min, Alu::add}) {
      for (const Shape& s : shapes) {
        on_host(
            "tensor_scalar_reduce", dtype, s, s,
            [&](Host& nc, const Host::Hbm& x, const Host::Hbm& y, const Host::Hbm& z) {
              const int p = static_cast<int>(s[0]), f = static_cast<int>(s[1]);
              auto dst = nc.sbuf("dst", p, f, dtype), column = nc.sbuf("column", p, 1, DType::f32);
              nc.tensor_scalar_reduce(dst, nc.load("x", x), Alu::multiply, 3.f, op, column);
              nc.store(y, dst);
              nc.store(z, column);
            },
            [&](const Matrix& x, const Matrix& y, const Tensor& z) {
              for (Eigen::Index i = 0; i < x.rows(); ++i) {
                const Eigen::RowVectorXd row = 3. * x.row(i);
                const double want = op == Alu::max   ? row.maxCoeff()
                                    : op == Alu::min ? row.minCoeff()
                                                     : row.sum();
                const double slack =
                    op == Alu::add ? 1e-6 * (row.cwiseAbs().sum() + 1) : 1e-6 * std::abs(want);
                CHECK(std::abs(z.at(i) - want) <= slack);
                const double eps = dtype == DType::f32 ? 0x1p-23 : 0x1p-8;
                for (Eigen::Index j = 0; j < x.cols(); ++j)
                  CHECK(std::abs(y(i, j) - row(j)) <= eps * std::abs(row(j)));
              }
            });
      }
    }
  }
}

template <class F>
void rejected(const F& f, const char* message) {
  const auto on = [&](auto& nc) {
    try {
      f(nc);
      FAIL_CHECK("accepted, wanted: " << message);
    } catch (const TileError& error) {
      CHECK_THAT(error.what(), contains_text(message));
    }
  };
  Recorder recorder(nk::trn2);
  on(recorder);
  nk::host::ArenaScope scope;
  Host host(*nk::host::all_pages().front(), scope.arena);
  on(host);
}

TEST_CASE("chip ops: what both targets reject") {
  rejected([](auto& nc) { nc.transpose(nc.sbuf("d", 4, 3, DType::f32), nc.sbuf("s", 4, 3, DType::f32)); },
           "it must be [3, 4] f32");
  rejected([](auto& nc) { nc.transpose(nc.sbuf("d", 3, 4, DType::bf16), nc.sbuf("s", 4, 3, DType::f32)); },
           "it must be [3, 4] f32");
  rejected([](auto& nc) { nc.transpose(nc.sbuf("d", 3, 4, DType::f32), nc.psum("s", 4, 3)); },
           "a transpose reads SBUF");
  rejected(
      [](auto& nc) {
        auto t = nc.sbuf("t", 4, 3, DType::f32);
        nc.tensor_scalar_reduce(t, t, Alu::add, 1.f, Alu::subtract, nc.sbuf("c", 4, 1, DType::f32));
      },
      "operator subtract; allowed are add, max and min");
  rejected(
      [](auto& nc) {
        auto t = nc.sbuf("t", 4, 3, DType::f32);
        nc.scan(t, t, Alu::add, nc.sbuf("c", 4, 2, DType::f32), Alu::add, t);
      },
      "it must be [4, 1] f32");
}

}  // namespace
}  // namespace test
