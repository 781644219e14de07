"""bfloat16 only where the machine has instructions for it."""

from pathlib import Path

import pytest

from harness_adapters.config import ModelSettings, Settings
from harness_adapters.engine import precision
from harness_adapters.engine.precision import cpu_flags, native_dtype, settled

INTEL = "processor\t: 0\nflags\t\t: fpu avx2 avx512f avx512_bf16 amx_bf16\n\nprocessor\t: 1\n"
OLDER = "processor\t: 0\nflags\t\t: fpu fma avx avx2\nbugs\t\t: bf16\n"
ARM = "processor\t: 0\nFeatures\t: fp asimd sve bf16\n"


@pytest.mark.parametrize(
    ("cpuinfo", "dtype"),
    [(INTEL, "bfloat16"), (OLDER, "float32"), (ARM, "bfloat16"), ("", "float32")],
)
def test_a_cpu_that_would_imitate_bfloat16_gets_float32(
    cpuinfo: str, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(cpuinfo)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    flags = cpu_flags(file)
    monkeypatch.setattr(precision, "cpu_flags", lambda: flags)
    assert native_dtype() == dtype
    assert settled(Settings()).model.dtype == dtype


@pytest.mark.parametrize("able", [True, False])
def test_a_gpu_decides_where_there_is_one(able: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda: able)
    assert native_dtype() == ("bfloat16" if able else "float32")


def test_a_chosen_format_stays() -> None:
    chosen = Settings(model=ModelSettings(dtype="bfloat16"))
    assert settled(chosen) is chosen


def test_no_cpuinfo_is_no_instructions(tmp_path: Path) -> None:
    assert cpu_flags(tmp_path / "none") == set()
