import django.contrib.postgres.indexes
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # The table may hold millions: devices go on subscribing while the index is built.
    atomic = False

    dependencies = [
        ('subscriptions_app', '0002_segment'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='subscription',
            index=django.contrib.postgres.indexes.GinIndex(condition=models.Q(('expired_at__isnull', True)), fields=['attributes'], name='subscription_attributes', opclasses=['jsonb_path_ops']),
        ),
    ]
