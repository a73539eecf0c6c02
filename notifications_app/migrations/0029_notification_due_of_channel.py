from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """So that a planner starts notifications of each channel in turn."""

    # Notifications go on being written while the index is built.
    atomic = False

    dependencies = [
        ('notifications_app', '0028_target_own_vars'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='notification',
            index=models.Index(condition=models.Q(('status', 'pending')), fields=['channel', 'scheduled_at'], name='notification_due_of_channel'),
        ),
    ]
