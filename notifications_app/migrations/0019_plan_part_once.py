from django.db import migrations, models


class Migration(migrations.Migration):
    """One constraint takes the other's place, with an index that is there already. No statement of
    the version before refers to the old one, and the new one keeps its planners, whose plans are
    all part 0, from making a plan twice."""

    dependencies = [
        ('notifications_app', '0018_plan_part_indexes'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    'ALTER TABLE "notifications_app_plan" ADD CONSTRAINT "plan_part_once" UNIQUE USING INDEX "plan_part_once"',
                    'ALTER TABLE "notifications_app_plan" DROP CONSTRAINT "plan_part_once"',
                ),
            ],
            state_operations=[
                migrations.AddConstraint(
                    model_name='plan',
                    constraint=models.UniqueConstraint(fields=('notification', 'platform', 'part'), name='plan_part_once'),
                ),
            ],
        ),
        migrations.RemoveConstraint(model_name='plan', name='plan_once_per_platform'),
    ]
