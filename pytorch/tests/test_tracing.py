"""The operators under FakeTensor, opcheck and torch.compile."""

import pytest
import torch
import torch._dynamo.testing
from calls import NAMES, calls, ops, tensors
from references import normal
from torch._subclasses.fake_tensor import FakeTensorMode

each_call = pytest.mark.parametrize("name", NAMES)


@each_call
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_opcheck(name):
    operator, arguments = calls()[name]
    torch.library.opcheck(operator.default, arguments)
    wanting = [a.clone().requires_grad_() if isinstance(a, torch.Tensor) else a for a in arguments]
    torch.library.opcheck(operator.default, wanting)


def test_opcheck_matmul_into():
    arguments = (torch.zeros(6, 5), normal(6, 7, seed=1), normal(7, 5, seed=2))
    torch.library.opcheck(ops.matmul_into.default, arguments)


@each_call
def test_fake_results_equal_real_ones(name):
    for batch in (0, 1, 3):
        operator, arguments = calls(batch)[name]
        for change in (lambda t: t, lambda t: t.transpose(-1, -2).contiguous().transpose(-1, -2)):
            changed = [change(a) if isinstance(a, torch.Tensor) and a.dim() > 1 else a for a in arguments]
            real = tensors(operator(*changed))
            with FakeTensorMode() as mode:
                fake = operator(*(mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in changed))
            for r, f in zip(real, tensors(fake), strict=True):
                assert (r.shape, r.dtype, r.stride(), r.storage_offset()) == (
                    f.shape, f.dtype, f.stride(), f.storage_offset(),
                )  # fmt: skip


@each_call
def test_meta_device(name):
    operator, arguments = calls()[name]
    real = tensors(operator(*arguments))
    meta = operator(*(a.to("meta") if isinstance(a, torch.Tensor) else a for a in arguments))
    assert [(t.shape, t.stride()) for t in tensors(meta)] == [(t.shape, t.stride()) for t in real]


@each_call
def test_one_graph_for_every_batch(name):
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    operator = calls()[name][0]
    compiled = torch.compile(
        lambda *a: [2 * t for t in tensors(operator(*a))], fullgraph=True, dynamic=True, backend=counter
    )
    graphs = []
    for batch in (5, 7, 3, 11):  # unlike any other size, which PyTorch would take for the same
        arguments = calls(batch)[name][1]
        for got, want in zip(compiled(*arguments), tensors(operator(*arguments)), strict=True):
            assert torch.equal(got, 2 * want)
        graphs.append(counter.frame_count)
    assert len(set(graphs)) == 1, graphs  # none after the first batch


def test_compiled_training_step():
    torch._dynamo.reset()
    operator, arguments = calls()["gated_mlp_silu"]

    def gradients(function):
        a = [t.clone().requires_grad_() if isinstance(t, torch.Tensor) else t for t in arguments]
        function(*a).square().sum().backward()
        return [t.grad for t in a if isinstance(t, torch.Tensor)]

    compiled = torch.compile(operator, fullgraph=True, backend="aot_eager")
    for got, want in zip(gradients(compiled), gradients(operator), strict=True):
        torch.testing.assert_close(got, want)


def test_writing_into_a_view_survives_compilation():
    def step(memory, a, b):
        row = memory[:, 1]
        before = row.sum()
        ops.matmul_into(row, a, b)
        return before, row.sum(), memory * 1

    torch._dynamo.reset()
    a, b = normal(4, 7, seed=1), normal(7, 5, seed=2)
    eager, compiled = normal(4, 3, 5, seed=3), normal(4, 3, 5, seed=3)
    want = step(eager, a, b)
    got = torch.compile(step, fullgraph=True, backend="aot_eager")(compiled, a, b)
    assert torch.equal(compiled, eager)
    assert all(torch.equal(x, y) for x, y in zip(got, want, strict=True))
