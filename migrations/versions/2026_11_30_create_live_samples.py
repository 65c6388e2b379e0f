"""Create the table of recorded readings, and the one row that says until when they are recorded."""

import sqlalchemy as sa
from alembic import op

revision = "20261130_create_live_samples"
down_revision = "20261130_create_shared_documents"
branch_labels = None
depends_on = None

UTC_PATTERN = (
    "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z"
)

SAMPLE_CHECKS = {
    "taken_at_is_utc": f"taken_at GLOB '{UTC_PATTERN}'",
    "source_is_plain": "length(source) <= 24 AND source GLOB '[a-z]*' AND source NOT GLOB '*[^a-z0-9/-]*'",
    "figures_length": "length(figures) <= 4096",
    "figures_is_object": "figures GLOB '{*}'",
}

RECORDER_CHECKS = {
    "id_is_only": "id = 1",
    "since_is_utc": f"since GLOB '{UTC_PATTERN}'",
    "until_is_utc": f"until GLOB '{UTC_PATTERN}'",
    "both_or_neither": "(since IS NULL) = (until IS NULL)",
}


def upgrade() -> None:
    op.create_table(
        "live_samples",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("taken_at", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("figures", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_live_samples")),
        sa.UniqueConstraint("taken_at", "source", name=op.f("uq_live_samples_taken_at")),
        *(sa.CheckConstraint(rule, name=op.f(f"ck_live_samples_{name}")) for name, rule in SAMPLE_CHECKS.items()),
    )
    op.create_table(
        "recorder",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("since", sa.Text(), nullable=True),
        sa.Column("until", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recorder")),
        *(sa.CheckConstraint(rule, name=op.f(f"ck_recorder_{name}")) for name, rule in RECORDER_CHECKS.items()),
    )


def downgrade() -> None:
    op.drop_table("recorder")
    op.drop_table("live_samples")
