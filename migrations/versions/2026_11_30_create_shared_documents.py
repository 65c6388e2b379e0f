"""Create the table of shared snapshots and calibrations."""

import sqlalchemy as sa
from alembic import op

revision = "20261130_create_shared_documents"
down_revision = "20261129_guard_revoked"
branch_labels = None
depends_on = None

TABLE = "shared_documents"
UTC_PATTERN = (
    "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z"
)

CHECKS = {
    "slug_sha256_is_digest": "typeof(slug_sha256) = 'blob' AND length(slug_sha256) = 32",
    "edit_token_sha256_is_digest": "typeof(edit_token_sha256) = 'blob' AND length(edit_token_sha256) = 32",
    "title_length": "length(title) <= 120",
    "formula_version_length": "length(formula_version) <= 64",
    "catalog_version_length": "length(catalog_version) <= 64",
    "created_at_is_utc": f"created_at GLOB '{UTC_PATTERN}'",
    "expires_at_is_utc": f"expires_at GLOB '{UTC_PATTERN}'",
    "revoked_at_is_utc": f"revoked_at GLOB '{UTC_PATTERN}'",
    "revoked_is_wiped": "revoked_at IS NULL OR (title = '' AND document = '{}')",
    "kind_is_known": "kind IN ('snapshot', 'calibration')",
    "document_length": "length(document) <= 262144",
    "document_is_object": "document GLOB '{*}'",
}


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("slug_sha256", sa.LargeBinary(), nullable=False),
        sa.Column("edit_token_sha256", sa.LargeBinary(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("formula_version", sa.Text(), nullable=False),
        sa.Column("catalog_version", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.Text(), nullable=True),
        sa.Column("revoked_at", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{TABLE}")),
        sa.UniqueConstraint("slug_sha256", name=op.f(f"uq_{TABLE}_slug_sha256")),
        *(sa.CheckConstraint(rule, name=op.f(f"ck_{TABLE}_{name}")) for name, rule in CHECKS.items()),
    )
    op.create_index(op.f(f"ix_{TABLE}_expires_at"), TABLE, ["expires_at"])
    op.create_index(op.f(f"ix_{TABLE}_revoked_at"), TABLE, ["revoked_at"])


def downgrade() -> None:
    op.drop_table(TABLE)
