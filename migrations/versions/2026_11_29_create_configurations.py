"""Create the table of saved configurations."""

import sqlalchemy as sa
from alembic import op

revision = "20261129_create_configurations"
down_revision = None
branch_labels = None
depends_on = None

UTC_PATTERN = (
    "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z"
)

CHECKS = {
    "slug_sha256_is_digest": "typeof(slug_sha256) = 'blob' AND length(slug_sha256) = 32",
    "edit_token_sha256_is_digest": "typeof(edit_token_sha256) = 'blob' AND length(edit_token_sha256) = 32",
    "title_length": "length(title) <= 120",
    "notes_length": "length(notes) <= 4000",
    "scenario_length": "length(scenario) <= 1048576",
    "headline_length": "length(headline) <= 65536",
    "formula_version_length": "length(formula_version) <= 64",
    "catalog_version_length": "length(catalog_version) <= 64",
    "scenario_is_object": "scenario GLOB '{*}'",
    "headline_is_object": "headline GLOB '{*}'",
    "created_at_is_utc": f"created_at GLOB '{UTC_PATTERN}'",
    "updated_at_is_utc": f"updated_at GLOB '{UTC_PATTERN}'",
    "expires_at_is_utc": f"expires_at GLOB '{UTC_PATTERN}'",
    "revoked_at_is_utc": f"revoked_at GLOB '{UTC_PATTERN}'",
}


def upgrade() -> None:
    op.create_table(
        "configurations",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("slug_sha256", sa.LargeBinary(), nullable=False),
        sa.Column("edit_token_sha256", sa.LargeBinary(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("scenario", sa.Text(), nullable=False),
        sa.Column("headline", sa.Text(), nullable=False),
        sa.Column("formula_version", sa.Text(), nullable=False),
        sa.Column("catalog_version", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.Text(), nullable=True),
        sa.Column("revoked_at", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_configurations")),
        sa.UniqueConstraint("slug_sha256", name=op.f("uq_configurations_slug_sha256")),
        *(sa.CheckConstraint(rule, name=op.f(f"ck_configurations_{name}")) for name, rule in CHECKS.items()),
    )


def downgrade() -> None:
    op.drop_table("configurations")
