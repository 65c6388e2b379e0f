"""The tests of the outbound client run on the event loop that the server has."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
