"""Which way to compute Tiny's first layer is fastest: the same function in several forms, timed side by side.

    OMP_WAIT_POLICY=PASSIVE OMP_NUM_THREADS=1 python benchmarks/encoder_speed.py [--side 112] [--batch 256]

Forward and backward of one encoder from uint8 frames (patch forms: from patches that were made once per rollout), one
thread, micro-batches as PPO works them off. Each round times every form; the table gives the median of 5 rounds, per
second of CPU time, which other work on the machine hardly disturbs. bfloat16 pays only on CPUs that compute in it (AMX,
AVX512_BF16); elsewhere it is emulated.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gameagent.contract import ObsSpace
from gameagent.learn.memory import keep_memory
from gameagent.nets.encoders import Tiny

Form = Callable[[Tensor], Tensor]


def plain_conv(module: nn.Module, patch: int, colours: int) -> nn.Conv2d:
    """The ordinary p×p stride-p convolution with the weights of `module.first`."""
    first = module.first
    conv = nn.Conv2d(colours, first.out_channels, patch, patch)
    weight = first.weight.detach().reshape(-1, patch, patch, colours).permute(0, 3, 1, 2)
    conv.weight.data, conv.bias.data = weight.contiguous(), first.bias.detach().clone()
    return conv


def forms(module: nn.Module, patch: int, colours: int) -> dict[str, tuple[str, Form]]:
    """Name -> which input it reads, and the function from it to the latent vector."""
    conv, nhwc = plain_conv(module, patch, colours), plain_conv(module, patch, colours)
    nhwc = nhwc.to(memory_format=torch.channels_last)
    first, rest = module.first, module.rest
    half = torch.bfloat16

    def linear(x: Tensor) -> Tensor:
        x = x.to(half if torch.is_autocast_enabled("cpu") else torch.float32)
        bias = first.bias - first.weight.sum((1, 2, 3))
        return rest(F.linear(x, first.weight.flatten(1) / 127.5, bias).relu().permute(0, 3, 1, 2))

    def one_by_one(x: Tensor) -> Tensor:
        bias = first.bias - first.weight.sum((1, 2, 3))
        x = x.to(half if torch.is_autocast_enabled("cpu") else torch.float32)
        return rest(F.conv2d(x.permute(0, 3, 1, 2), first.weight / 127.5, bias).relu_())

    def folded(x: Tensor) -> Tensor:
        bias = nhwc.bias - nhwc.weight.sum((1, 2, 3))
        return rest(F.conv2d(x.permute(0, 3, 1, 2).float(), nhwc.weight / 127.5, bias, patch).relu_())

    return {
        "conv, NCHW, centred pixels": ("nchw", lambda x: rest(conv(x.float() / 127.5 - 1).relu_())),
        "conv, NHWC view, centred pixels": (
            "nhwc",
            lambda x: rest(nhwc(x.permute(0, 3, 1, 2).float() / 127.5 - 1).relu_()),
        ),
        "conv, NHWC view, centred in the weights": ("nhwc", folded),
        "patches, matrix product": ("patches", linear),
        "patches, 1×1 conv": ("patches", one_by_one),
        "patches cast once, 1×1 conv": ("cast", one_by_one),
        "patches in blocks (Tiny)": ("patches", lambda x: module({"frame": x})),
    }


def inputs(module: nn.Module, frames: Tensor, bf16: bool) -> dict[str, Tensor]:
    """The same frames in each layout."""
    patches = module.prepare({"frame": frames})["frame"]
    cast = patches.to(torch.bfloat16 if bf16 else torch.float32)
    return {"nchw": frames.permute(0, 3, 1, 2).contiguous(), "nhwc": frames, "patches": patches, "cast": cast}


def sweep(form: Form, data: Tensor, batch: int, bf16: bool) -> float:
    """Samples per CPU second of forward + backward over `data` in shuffled micro-batches, as PPO draws them."""
    order = torch.randperm(len(data))
    start = time.process_time()
    for index in order.split(batch):
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            latent = form(data[index])
        latent.float().square().mean().backward()
    return len(data) / (time.process_time() - start)


def compare(args: argparse.Namespace, bf16: bool) -> None:
    """Print one table."""
    torch.manual_seed(0)
    frames = torch.randint(0, 256, (args.samples, args.side, args.side, args.colours), dtype=torch.uint8)
    module = Tiny().build(ObsSpace(frame=(args.side, args.side, args.colours)))
    patch = module.patch
    data, table = inputs(module, frames, bf16), forms(module, patch, args.colours)
    rates: dict[str, list[float]] = {name: [] for name in table}
    for _ in range(args.rounds + 1):
        for name, (layout, form) in table.items():
            rates[name].append(sweep(form, data[layout], args.batch, bf16))
    print(
        f"\n{'bfloat16' if bf16 else 'float32'}, {args.side}×{args.side}×{args.colours}, patch {patch}, "
        f"batch {args.batch}, {torch.backends.cpu.get_cpu_capability()}"
    )
    base = statistics.median(rates["conv, NCHW, centred pixels"][1:])
    for name, found in rates.items():
        rate = statistics.median(found[1:])
        print(f"  {name:42} {rate:8,.0f} samples/cpu-s  {rate / base:5.2f}×")


def main() -> None:
    """Read the command line, print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=112, help="frame side in pixels")
    parser.add_argument("--colours", type=int, default=3, help="channels of a frame")
    parser.add_argument("--batch", type=int, default=256, help="samples in a micro-batch")
    parser.add_argument("--samples", type=int, default=1024, help="samples per round")
    parser.add_argument("--rounds", type=int, default=5, help="rounds; the median is shown")
    args = parser.parse_args()
    torch.set_num_threads(1)
    keep_memory()
    for bf16 in (False, True):
        compare(args, bf16)


if __name__ == "__main__":
    main()
