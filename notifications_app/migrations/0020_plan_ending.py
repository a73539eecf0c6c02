from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Ticks used `plan_open`, which holds the parts that wait for their release, too, and which the
    next release removes."""

    # Plans go on being written while the index is built.
    atomic = False

    dependencies = [
        ('notifications_app', '0019_plan_part_once'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='plan',
            index=models.Index(condition=models.Q(('status__in', ['delivering', 'settling'])), fields=['id'], name='plan_ending'),
        ),
    ]
