"""Contestants as on another processor: what each library offers to leave instructions unused."""

from __future__ import annotations

import ctypes
import glob
import os
import sys

PROCESSORS = ("native", "avx2")
ASKED = "UNMIX_BENCHMARK_PROCESSOR"
ONEDAL_AVX2 = 4  # oneDAL's number for it
LIMITED = (
    "Numba (haswell), OpenBLAS (Haswell), NumPy's dispatched loops, MKL (AVX2), faiss and tomotopy (avx2) are limited, "
    "and oneDAL where the notes of its rows say so. Not limited, and the same in both columns: code that packages "
    "compile for every processor (scikit-learn's, SciPy's, gensim's, kmedoids'), and the C library."
)


def pretend(processor: str) -> None:
    """Set what processes started from now on read."""
    if processor == "native":
        return
    from numpy._core._multiarray_umath import __cpu_dispatch__ as dispatched

    wide = [name for name in dispatched if name.startswith("AVX512") or name == "X86_V4"]
    os.environ |= {
        ASKED: processor,
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "",  # without it the host's own stay on
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": " ".join(wide),
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "FAISS_OPT_LEVEL": "AVX2",
        "TOMOTOPY_ISA": "avx2",
    }


def limit_onedal() -> str:
    """Keep oneDAL, which reads no variable, from wider instructions in this process; say whether that was done."""
    if os.environ.get(ASKED) is None:
        return ""
    try:
        import daal4py  # noqa: F401

        core = ctypes.CDLL(glob.glob(os.path.join(sys.prefix, "lib", "libonedal_core.so.*"))[0])
        environment = "_ZN4daal8services10interface111Environment"
        instance, choose = core[f"{environment}11getInstanceEv"], core[f"{environment}8setCpuIdEi"]
    except (ImportError, IndexError, OSError, AttributeError) as error:  # not installed, or other names inside
        return f"oneDAL was not limited ({type(error).__name__})"
    instance.restype, choose.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_int)
    choose(instance(), ONEDAL_AVX2)
    return "oneDAL was limited"
