"""Let no revoked row keep its contents, and index the two moments by which rows are purged."""

from alembic import op

revision = "20261129_guard_revoked"
down_revision = "20261129_create_configurations"
branch_labels = None
depends_on = None

NAME = "ck_configurations_revoked_is_wiped"
RULE = "revoked_at IS NULL OR (title = '' AND notes = '' AND scenario = '{}' AND headline = '{}')"


def upgrade() -> None:
    op.execute(
        "UPDATE configurations SET title = '', notes = '', scenario = '{}', headline = '{}' "
        "WHERE revoked_at IS NOT NULL"
    )
    with op.batch_alter_table("configurations") as table:
        table.create_check_constraint(op.f(NAME), RULE)
        table.create_index(op.f("ix_configurations_expires_at"), ["expires_at"])
        table.create_index(op.f("ix_configurations_revoked_at"), ["revoked_at"])


def downgrade() -> None:
    with op.batch_alter_table("configurations") as table:
        table.drop_index(op.f("ix_configurations_revoked_at"))
        table.drop_index(op.f("ix_configurations_expires_at"))
        table.drop_constraint(op.f(NAME), type_="check")
