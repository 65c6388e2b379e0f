"""The worker is given what a card needs, and no secret."""

from hypothesis import given, settings
from hypothesis import strategies as st

from app.machine.peaks.runner import worker_environment

OWN = {
    "PATH": "/bin",
    "HOME": "/home/o",
    "LD_LIBRARY_PATH": "/opt/cuda/lib",
    "PYTHONPATH": "/here",
    "LC_ALL": "C.UTF-8",
    "CUDA_VISIBLE_DEVICES": "1",
    "ROCM_PATH": "/opt/rocm",
    "TOKENROOF_OPERATOR_TOKEN": "hush",
    "TOKENROOF_SERVER_TOKENS": "hush",
    "TOKENROOF_DATA_DIR": "/data",
    "HF_TOKEN": "hush",
    "AWS_SECRET_ACCESS_KEY": "hush",
    "NVIDIA_API_KEY": "hush",
    "CUDA_PASSWORD": "hush",
    "SSH_AUTH_SOCK": "/run/agent",
    "HTTPS_PROXY": "http://user:hush@proxy",
    "LD_PRELOAD": "/x.so",
}


def test_what_is_kept() -> None:
    given_to = worker_environment(OWN, None)
    assert given_to == {
        **{name: OWN[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH", "PYTHONPATH", "LC_ALL", "ROCM_PATH")},
        "CUDA_VISIBLE_DEVICES": "1",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }


def test_one_card_is_pinned_by_its_key() -> None:
    assert worker_environment(OWN, "GPU-1234")["CUDA_VISIBLE_DEVICES"] == "GPU-1234"


@settings(max_examples=40)
@given(
    st.dictionaries(st.sampled_from(["TOKENROOF_", "CUDA_", "NVIDIA_", "LC_", ""]), st.text("AKEY_TOKN", max_size=9))
)
def test_no_name_of_ours_and_none_of_a_secret(parts: dict[str, str]) -> None:
    own = {prefix + rest: "hush" for prefix, rest in parts.items()}
    for name in worker_environment(own, None).keys() - worker_environment({}, None).keys():
        assert not name.startswith("TOKENROOF_")
        assert "TOKEN" not in name
        assert "KEY" not in name
