from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Batches go on being written while the index is built.
    atomic = False

    dependencies = [
        ('notifications_app', '0006_bounce_again_at'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='batch',
            index=models.Index(
                fields=['notification'],
                condition=models.Q(('lapses__gte', 3), models.Q(('status', 'done'), _negated=True)),
                name='batch_breaking',
            ),
        ),
    ]
