from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Devices go on subscribing while the index is built.
    atomic = False

    dependencies = [
        ('subscriptions_app', '0007_is_proven'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='subscription',
            index=models.Index(condition=models.Q(('is_proven', False)), fields=['channel', 'id'], name='subscription_unproven'),
        ),
    ]
