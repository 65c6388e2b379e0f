"""Keys that say nothing about sizes: names, token ids, dropout, rotary settings, generation settings."""

import re

from app.catalog.importing.errors import quoted
from app.catalog.importing.keys import Keys
from app.catalog.importing.structural import STRUCTURAL
from app.catalog.importing.words import words

EXACT = words("noise")
PATTERN = re.compile(
    r".*(dropout|_pdrop|_token_id|_token_ids|_token_index|_token|_loss_coef|jitter)$|^(summary_|hc_sinkhorn|hc_eps|time_step_)"
)
MOST_NAMED = 200


def unread_keys(keys: Keys) -> list[str]:
    """Full paths of the keys of a block that nothing has looked at and that might have meant something."""
    found = []
    for key, value in keys.values.items():
        if value is None or key in EXACT or PATTERN.match(key) or (not value and key in STRUCTURAL):
            continue
        if keys.path(key) not in keys.ledger.used:
            found.append(quoted(keys.path(key)))
        if len(found) >= MOST_NAMED:
            break
    return found
