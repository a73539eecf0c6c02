from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Outcomes go on being counted while the index is built.
    atomic = False

    dependencies = [
        ('notifications_app', '0004_outcome_minutes_and_tests'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='hourlystat',
            index=models.Index(fields=['hour'], name='hourly_hour'),
        ),
    ]
