from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Planners of the version before find their plans by `plan_due`, too. Their workers need
    `plan_open`, so it stays until the next release."""

    # Plans go on being written while the indexes are built.
    atomic = False

    dependencies = [
        ('notifications_app', '0017_plan_parts'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='plan',
            index=models.Index(condition=models.Q(models.Q(('status', 'done'), _negated=True), ('recipient_count__gt', 0)), fields=['platform', 'id'], name='plan_with_recipients'),
        ),
        AddIndexConcurrently(
            model_name='plan',
            index=models.Index(condition=models.Q(('status', 'planning')), fields=['due_at'], name='plan_due'),
        ),
        RemoveIndexConcurrently(model_name='plan', name='plan_planning'),
        # Becomes the constraint in the next migration.
        migrations.RunSQL(
            'CREATE UNIQUE INDEX CONCURRENTLY "plan_part_once" ON "notifications_app_plan" ("notification_id", "platform", "part")',
            'DROP INDEX CONCURRENTLY IF EXISTS "plan_part_once"',
        ),
    ]
