"""What the chips allow, by name of the chip. Sources: AWS Neuron SDK, pages named at each table."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    generation: int  # of the NeuronCore: 2, 3, 4
    sbuf_bytes: int  # of one partition: nki/guides/architecture/{trainium_inferentia2,trainium2,trainium3}_arch.rst
    moving_fmax: int  # nki.isa.nc_matmul, "Tile size"
    # The same on all: nki/api/nki.language.tile_size.rst
    partitions: int = 128
    stationary_fmax: int = 128
    psum_bank_bytes: int = 2048
    psum_banks: int = 8
    bn_stats_fmax: int = 512
    # trainium_inferentia2_arch.rst, "Layout & Tile Size"; nki/deep-dives/nki-aps.rst
    sbuf_access: int = 64 * 1024
    psum_access: int = 4 * 1024
    access_dims: int = 4


CHIPS = {
    "trn1": Limits(2, 192 * 1024, 512),
    "trn2": Limits(3, 224 * 1024, 512),
    "trn3": Limits(4, 256 * 1024, 4096),
}


def limits() -> Limits:
    return CHIPS[os.environ.get("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")]


def start_partition_ok(first: int, count: int) -> bool:
    """More than 64 partitions start at 0, more than 32 at 0 or 64, others at 0, 32, 64 or 96.

    Source: trainium_inferentia2_arch.rst, "Accessing SBUF/PSUM tensors".
    """
    unit = 128 if count > 64 else 64 if count > 32 else 32
    return first % unit == 0 and first + count <= 128
