from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """So that a worker finds the small batches that it claims together without reading all plans."""

    # Batches go on being written while the index is built.
    atomic = False

    dependencies = [
        ('notifications_app', '0030_trail'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='batch',
            index=models.Index(condition=models.Q(('recipient_count__lte', 500), ('status', 'ready')), fields=['channel', 'platform', 'push_service', 'due_at', 'id'], name='batch_ready_small'),
        ),
    ]
