"""Not cupy's linear algebra."""

COMPUTE_TYPE_DEFAULT, COMPUTE_TYPE_TF32 = 1, 7
NOW = {"type": COMPUTE_TYPE_DEFAULT}


def set_compute_type(kind: object, compute_type: int) -> None:
    NOW["type"] = compute_type
