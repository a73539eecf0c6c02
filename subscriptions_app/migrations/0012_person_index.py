from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Devices go on subscribing while the index is built.
    atomic = False

    dependencies = [
        ('subscriptions_app', '0011_people'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='subscription',
            index=models.Index(condition=models.Q(('person__isnull', False)), fields=['person'], name='subscription_person'),
        ),
    ]
